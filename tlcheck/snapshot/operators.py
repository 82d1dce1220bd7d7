"""Define what each operator of an expression computes: the one table for all that interpret expressions.

An operator is written with Python's operators and the few words of `Numbers`, so that it computes with Python's
integers and with NumPy's arrays alike. Those who compute with anything else (polynomials, intervals) ask for its
family.

C leaves some results open. Here they are what compilers and GPUs make of them, so that two forms of one kernel agree:

- Sums, differences, products and quotients that a type does not have wrap.
- A number divided by zero is 0, rounded down -1 if it is negative; the remainder is the number.
- A shift by a negative number, or by all bits and more, leaves no bit: 0, to the right -1 of a negative number.
- A float becomes the nearest integer that the type has, and NaN 0 (PTX, "cvt").
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, Protocol

from tlcheck.snapshot.dtypes import DType, dtype_of, whole_numbers
from tlcheck.snapshot.ir import Expr

Apply = Callable[..., Any]
Family = Literal["ring", "division", "extremum", "comparison", "logic", "bits", "shift", "choice", "same"]


class Numbers(Protocol):
    """A representation of numbers that have Python's operators."""

    def __hash__(self) -> int:
        """Keep what is made for a representation."""

    def every(self, value: Any) -> bool:
        """Whether no number is zero."""

    def choose(self, condition: Any, then: Any, other: Any) -> Any:
        """One of two, by a condition."""

    def least(self, a: Any, b: Any) -> Any:
        """The smaller of two."""

    def greatest(self, a: Any, b: Any) -> Any:
        """The larger of two."""

    def holding(self, dtype: DType) -> Apply:
        """Return what a type holds of the exact result of an operation."""

    def converted(self, value: Any, source: DType, target: DType) -> Any:
        """A cast."""


class Scalars:
    """Python's own numbers."""

    def every(self, value: Any) -> bool:
        return bool(value)

    def choose(self, condition: Any, then: Any, other: Any) -> Any:
        return then if condition else other

    def least(self, a: Any, b: Any) -> Any:
        return a if a <= b else b

    def greatest(self, a: Any, b: Any) -> Any:
        return a if a >= b else b

    def holding(self, dtype: DType) -> Apply:
        if dtype.kind == "bool":
            return bool
        if not dtype.is_integral:
            return _same
        least, most = whole_numbers(dtype.name)
        return lambda value: value if least <= value <= most else wrapped(int(value), least, most)

    def converted(self, value: Any, source: DType, target: DType) -> Any:
        if target.kind == "float":
            return float(value)
        if source.kind != "float" or target.kind == "bool":
            return self.holding(target)(value)
        least, most = whole_numbers(target.name)
        return 0 if math.isnan(value) else least if value <= least else most if value >= most else int(value)


def wrapped(value: Any, least: int, most: int) -> Any:
    """A whole number, or an array of int64, as two's complement between these holds it."""
    return ((value - least) & (most - least)) + least


def _same(value: Any) -> Any:
    return value


@dataclass(frozen=True, slots=True)
class Operator:
    """An operator.

    make: what it computes with numbers, as operands of a type. symbol: what stands between its operands in Python.
    mirrored, opposite: of a comparison, the one with its sides exchanged, and the one that holds where it does not.
    commutes: its operands may be exchanged.
    """

    family: Family
    make: Callable[[Numbers, DType], Apply]
    symbol: str = ""
    mirrored: str = ""
    opposite: str = ""
    commutes: bool = False


def meaning(e: Expr, numbers: Numbers) -> Apply | None:
    """Return what the operator of an expression computes with the values of its operands; None if it is none of the
    table.
    """
    if e.op == "cast":
        source, target = dtype_of(e.args[0].dtype), dtype_of(e.dtype)
        return lambda value: numbers.converted(value, source, target)
    name = name_of(e)
    found = OPERATORS.get(name)
    dtype = dtype_of(e.args[0].dtype if found is not None and found.family == "comparison" else e.dtype)
    if found is None or (dtype.kind == "float" and found.family in ("division", "bits", "shift")):
        return None
    return _computation(name, numbers, dtype)


def exact(name: str, numbers: Numbers) -> Apply:
    """Return what an operator computes with whole numbers of no type."""
    return OPERATORS[name].make(numbers, _WHOLE)


@lru_cache(maxsize=512)
def _computation(name: str, numbers: Numbers, dtype: DType) -> Apply:
    """Return what an operator computes; made once, since a kernel has thousands of operators of a few types."""
    return OPERATORS[name].make(numbers, dtype)


def name_of(e: Expr) -> str:
    """The name of an expression's operator, empty for a call that is none."""
    return e.op if e.op != "call" else str(e.value) if e.value in _CALLED else ""


def _plain(apply: Apply) -> Callable[[Numbers, DType], Apply]:
    """An operator whose result its type always has."""
    return lambda numbers, dtype: apply


def _ring(apply: Apply) -> Callable[[Numbers, DType], Apply]:
    def make(numbers: Numbers, dtype: DType) -> Apply:
        held = numbers.holding(dtype)
        return (lambda a, b: held(apply(a, b))) if dtype.is_integral else apply

    return make


def _quotient(numbers: Numbers, a: Any, b: Any) -> Any:
    """Rounded down, whether or not the type has it."""
    if b.__class__ is int and b > 0:
        return a >> (b.bit_length() - 1) if b & (b - 1) == 0 else a // b
    if numbers.every(b):
        return a // b
    zero = b == 0
    return numbers.choose(zero, _sign(a), a // numbers.choose(zero, 1, b))


def _truncated(numbers: Numbers, a: Any, b: Any) -> Any:
    """Rounded down, and one more where that is negative and not exact."""
    quotient = _quotient(numbers, a, b)
    if quotient.__class__ is int:
        return quotient + (quotient < 0 and quotient * b != a)
    return quotient + ((quotient < 0) & (quotient * b != a))


def _floordiv(numbers: Numbers, dtype: DType) -> Apply:
    held = numbers.holding(dtype)

    def divide(a: Any, b: Any) -> Any:
        found = _quotient(numbers, a, b)
        return found if b.__class__ is int and b > 0 else held(found)

    return divide


def _floormod(numbers: Numbers, dtype: DType) -> Apply:
    def rest(a: Any, b: Any) -> Any:
        if b.__class__ is int and b > 0:
            return a & (b - 1) if b & (b - 1) == 0 else a % b
        if numbers.every(b):
            return a % b
        zero = b == 0
        return numbers.choose(zero, a, a % numbers.choose(zero, 1, b))

    return rest


def _truncdiv(numbers: Numbers, dtype: DType) -> Apply:
    held = numbers.holding(dtype)
    return lambda a, b: held(_truncated(numbers, a, b))


def _truncmod(numbers: Numbers, dtype: DType) -> Apply:
    return lambda a, b: a - _truncated(numbers, a, b) * b


def _sign(a: Any) -> Any:
    """-1 of a negative number, else 0."""
    return a >> 63 >> 1


def _shift_left(numbers: Numbers, dtype: DType) -> Apply:
    """The type loses what numbers of arrays may hold, and Python's do."""
    held, bits = numbers.holding(dtype), dtype.bits

    def shift(a: Any, by: Any) -> Any:
        if by.__class__ is int:
            return held(a << by if 0 <= by < bits else a & 0)
        return held(numbers.choose((by >= 0) & (by < bits), a << by, a & 0))

    return shift


def _shift_right(numbers: Numbers, dtype: DType) -> Apply:
    held, bits = numbers.holding(dtype), dtype.bits  # the number of bits may be of a wider type

    def shift(a: Any, by: Any) -> Any:
        return held(a >> by if by.__class__ is not int or 0 <= by < bits else _sign(a))

    return shift


def _not(a: Any) -> Any:
    """The other truth value; of a number, 0 or 1."""
    return a ^ True


def _complement(numbers: Numbers, dtype: DType) -> Apply:
    held = numbers.holding(dtype)
    return _not if dtype.kind == "bool" else lambda a: held(~a)


def _choice(numbers: Numbers, dtype: DType) -> Apply:
    held = numbers.holding(dtype)
    return lambda condition, then, other: held(numbers.choose(condition, then, other))


def _comparison(apply: Apply, symbol: str, mirrored: str, opposite: str) -> Operator:
    return Operator("comparison", _plain(apply), symbol, mirrored, opposite, commutes=symbol in ("==", "!="))


_MIN = Operator("extremum", lambda numbers, dtype: numbers.least, commutes=True)
_MAX = Operator("extremum", lambda numbers, dtype: numbers.greatest, commutes=True)

OPERATORS: dict[str, Operator] = {
    "add": Operator("ring", _ring(operator.add), "+", commutes=True),
    "sub": Operator("ring", _ring(operator.sub), "-"),
    "mul": Operator("ring", _ring(operator.mul), "*", commutes=True),
    "floordiv": Operator("division", _floordiv, "//"),
    "floormod": Operator("division", _floormod, "%"),
    "truncdiv": Operator("division", _truncdiv),
    "truncmod": Operator("division", _truncmod),
    "div": Operator("division", _truncdiv, "/"),
    "mod": Operator("division", _truncmod),
    "min": _MIN,
    "max": _MAX,
    "eq": _comparison(operator.eq, "==", "eq", "ne"),
    "ne": _comparison(operator.ne, "!=", "ne", "eq"),
    "lt": _comparison(operator.lt, "<", "gt", "ge"),
    "le": _comparison(operator.le, "<=", "ge", "gt"),
    "gt": _comparison(operator.gt, ">", "lt", "le"),
    "ge": _comparison(operator.ge, ">=", "le", "lt"),
    "and": Operator("logic", _plain(operator.and_), "and", commutes=True),
    "or": Operator("logic", _plain(operator.or_), "or", commutes=True),
    "not": Operator("logic", _plain(_not)),
    "select": Operator("choice", _choice),
    "if_then_else": Operator("choice", _choice),
    "bitwise_and": Operator("bits", _plain(operator.and_), commutes=True),
    "bitwise_or": Operator("bits", _plain(operator.or_), commutes=True),
    "bitwise_xor": Operator("bits", _plain(operator.xor), commutes=True),
    "bitwise_not": Operator("bits", _complement),
    "shift_left": Operator("shift", _shift_left),
    "shift_right": Operator("shift", _shift_right),
    "likely": Operator("same", _plain(_same)),
}
_WHOLE = DType("whole", "", 64)
_CALLED = frozenset(
    ("if_then_else", "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not", "shift_left", "shift_right", "likely")
)


def named(*families: Family) -> frozenset[str]:
    """The names of the operators of some families."""
    return frozenset(name for name, each in OPERATORS.items() if each.family in families)


BINARY = named("ring", "division", "extremum", "comparison", "logic") - {"not"}
INTEGER_DIVISIONS = named("division") - {"div", "mod"}
COMMUTING = frozenset(name for name, each in OPERATORS.items() if each.commutes)
MIRRORED = {name: each.mirrored for name, each in OPERATORS.items() if each.mirrored}
OPPOSITE = {name: each.opposite for name, each in OPERATORS.items() if each.opposite}
ORDER = {"lt": (0, 1, 1), "le": (0, 1, 0), "gt": (1, 0, 1), "ge": (1, 0, 0)}
"""The positions of the smaller and the larger side of an order, and how far apart integers are at least."""
