"""Integer expressions as polynomials over atoms, with // and % pushed through the coefficients that they divide.

`(k*32 + i) // 8` becomes `4*k + i//8`, so that an address separates into a part of the blocks and outer loops and a
part of the threads, lanes and inner loops. Every rewrite is an identity of integers within the variables' ranges.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from math import gcd

import numpy as np
import numpy.typing as npt

from tlcheck.algebra.polynomial import Monomial, Poly, add, as_constant, constant, scale, split_multiples
from tlcheck.snapshot.dtypes import DType, dtype_of, keeps, whole_numbers
from tlcheck.snapshot.ir import Expr
from tlcheck.snapshot.operators import INTEGER_DIVISIONS, Scalars, exact, named
from tlcheck.snapshot.walk import postorder

Interval = tuple[int | None, int | None]  # inclusive; None is unbounded
UNBOUNDED: Interval = (None, None)
MAX_TERMS = 64
OPAQUE = 61
_MOST = whole_numbers("int64")[1]
DEEP = 100  # expressions nested deeper are not normalized by recursion
ADDRESSES = frozenset(("address_of", "access_ptr", "tvm_access_ptr"))
MADE = -1_000_000  # uids below are of variables made here
_RING = named("ring")  # a number that wraps on the way is the same in the end
BITWISE = named("bits", "shift")
_DIVISIONS = {name: exact(name, Scalars()) for name in INTEGER_DIVISIONS}


@dataclass(frozen=True, slots=True)
class FragmentTable:
    """A fragment read backwards: `elements[thread * registers + local]` is the logical element (row-major) held
    there, or -1.
    """

    registers: int
    threads: int
    elements: npt.NDArray[np.int64]

    def at(self, thread: npt.NDArray[np.int64], local: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """The elements held by registers `local` of `thread`; where there is none, a negative number of its own."""
        inside = (thread >= 0) & (thread < self.threads) & (local >= 0) & (local < self.registers)
        slot = np.where(inside, thread * self.registers + local, 0)
        held = np.where(inside, self.elements[slot], -1)
        return np.where(held >= 0, held, -1 - np.abs(thread * (1 << 20) + local))


@dataclass(frozen=True, slots=True, eq=False)
class Atom:
    """A part that a polynomial does not see into.

    kind: `var`, `//`, `%`, `min`, `max`, `load`, `select`, or another operator's name. `detail` tells apart atoms of
    one kind: the variable's uid, the divisor, the buffer's root. args: polynomials. vars: the uids in it.
    holds: the type that all its values are of; empty where that says nothing.
    """

    kind: str
    detail: int | str
    args: tuple[Poly, ...]
    vars: frozenset[int]
    range: Interval
    holds: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Content:
    """The cell that a load reads: `element` of `root`, or the register `element` of `thread` (`table` inverts a
    fragment).

    dtype: of what is there, where that is not the load's.
    """

    root: str
    element: Poly
    thread: Poly = field(default_factory=dict)
    table: FragmentTable | None = None
    dtype: str = ""


class Algebra:
    """The atoms of one comparison. Polynomials of one algebra are equal as expressions if they are equal as dicts.

    ranges: inclusive range of each variable. names: variable -> the uid that stands for it (blocks and threads are
    matched by tag). bindings, values: variables that stand for an expression or a polynomial. read: what a load
    reads or an address points to, the same for all aliases and layouts. opaque: number of distinct values that the
    content of memory takes when it is evaluated; numbers: those values where they are not the first from 0 on; salt:
    tells apart contents of the same numbers. fits: polynomials that are >= 0 where floats that are cast to integers
    fit: C++ gives the others no value.
    """

    def __init__(self, read: Callable[[Expr], Content]) -> None:
        self.atoms: list[Atom] = []
        self.ranges: dict[int, Interval] = {}
        self.bindings: dict[int, Expr] = {}
        self.names: dict[int, int] = {}
        self.values: dict[int, Poly] = {}
        self.tables: dict[str, FragmentTable] = {}
        self.opaque = OPAQUE
        self.numbers: tuple[int, ...] = ()
        self.salt = 0
        self.read = read
        self.fits: list[Poly] = []
        self._numbers: dict[object, int] = {}
        self._memo: dict[Expr, tuple[Poly, Poly]] = {}
        self._made = 0
        self._depth = 0

    def fresh(self) -> int:
        """The uid of a new variable: of none of the kernel's, and of none made before."""
        self._made += 1
        return MADE - self._made

    def forget(self) -> None:
        """Drop memoized expressions: bindings, names or ranges have changed."""
        self._memo.clear()

    def poly(self, expr: Expr) -> Poly:
        """The normal form of an integer (or boolean) expression."""
        known = self._memo.get(expr)
        if known is None:
            if self._depth == DEEP:  # a sum of thousands of terms: its parts first
                # its normal form is made of those of its parts, from the innermost on
                self._depth = 0
                try:
                    for part in postorder([expr]):
                        found = self.poly(part)
                finally:
                    self._depth = DEEP
                return found
            self._depth += 1
            try:
                exact = self._normalize(expr)
            finally:
                self._depth -= 1
            held = self._held(exact, expr.dtype) if expr.op in _RING else exact
            known = self._memo[expr] = (held, exact)
        return known[0]

    def _exact(self, expr: Expr) -> Poly:
        """The same as if no type of a sum or product ended: a machine's numbers may wrap on the way."""
        self.poly(expr)
        return self._memo[expr][1]

    def _held(self, p: Poly, dtype: str) -> Poly:
        """Return what a type holds of a number: it wraps where it is known that some do not fit. Sizes are taken to
        fit.
        """
        if not dtype_of(dtype).is_integral or dtype_of(dtype).bits == 64:
            return p
        (low, high), (least, most) = self.bounds(p), whole_numbers(dtype)
        if low is None or high is None or least <= low <= high <= most:
            return p
        return self._opaque("wrap", dtype_of(dtype).name, [p], (least, most))

    def instantiate(self, expr: Expr, values: Mapping[int, Poly]) -> Poly:
        """The normal form of an expression with polynomials for some of its variables."""
        memo, kept = self._memo, self.values
        self._memo, self.values = {}, {**kept, **values}
        try:
            return self.poly(expr)
        finally:
            self._memo, self.values = memo, kept

    def _normalize(self, e: Expr) -> Poly:
        op = e.op
        if op == "int":
            return constant(int(e.value or 0))
        if op == "var":
            bound = self.bindings.get(e.uid)
            if bound is not None:
                return self.poly(bound)
            return self.variable(self.names.get(e.uid, e.uid))
        if op == "cast":
            return self._cast(e)
        if op in _RING:
            return self._arithmetic(op, self._exact(e.args[0]), self._exact(e.args[1]))
        if op in _DIVISIONS:
            return self._arithmetic(op, self.poly(e.args[0]), self.poly(e.args[1]))
        if op == "load" and e.buffer is not None:
            content = self.read(e)
            dtype = content.dtype or dtype_of(e.dtype).name
            if content.table is not None:
                self.tables[content.root] = content.table
                where = [content.thread, content.element]
                return self._opaque("register", content.root, where, _dtype_range(dtype), dtype)
            own = [content.thread] if content.thread else []
            return self._opaque("load", content.root, [content.element, *own], _dtype_range(dtype), dtype)
        if op == "broadcast":
            return self.poly(e.args[0])
        if op in ("min", "max"):
            return self._extremum(op, self.poly(e.args[0]), self.poly(e.args[1]))
        return self._call(e) if op == "call" else self._unseen(op, e)

    def _call(self, e: Expr) -> Poly:
        if e.value in ADDRESSES:
            content = self.read(e)
            return self._opaque("address", content.root, [content.element], UNBOUNDED)
        if e.value in BITWISE and dtype_of(e.dtype).is_integral:
            # an operation on bits: of numbers below 2^n it is one itself, shifts excepted
            args = [self.poly(a) for a in e.args]
            name, dtype = str(e.value), dtype_of(e.dtype)
            if name == "bitwise_not" and dtype.name != "uint64":
                return add(constant(-1 if dtype.kind == "int" else whole_numbers(dtype.name)[1]), args[0], -1)
            bounds = [self.bounds(a) for a in args]
            if name == "shift_left":
                return self._held(self._opaque(name, "", args, _shifted(bounds[0], bounds[1], dtype.bits)), e.dtype)
            highs = [high for low, high in bounds if low is not None and low >= 0 and high is not None]
            known = len(highs) == len(args) and name != "shift_right"
            range_ = (0, (1 << max(highs).bit_length()) - 1) if known else UNBOUNDED
            return self._opaque(name, "", args, range_)
        return self._unseen("call", e)

    def _unseen(self, op: str, e: Expr) -> Poly:
        """An operator that is an atom of its own: of its name, its type and its operands."""
        detail, args = e.value if isinstance(e.value, str) else repr(e.value), e.args
        if detail == "call_extern" and args and args[0].op == "str":
            detail, args = str(args[0].value), args[1:]
        values = [self.poly(a) for a in args]
        return self._opaque(op, f"{detail}:{e.dtype}", values, _dtype_range(e.dtype), dtype_of(e.dtype).name)

    def _cast(self, e: Expr) -> Poly:
        """A cast: none where all values stay, an atom of its own where some may not."""
        source, target = dtype_of(e.args[0].dtype), dtype_of(e.dtype)
        if keeps(source.name, target.name):
            return self.poly(e.args[0])
        if source.kind == "float" and target.kind in ("int", "uint"):
            # a float without its fraction: the same number in all types that have it, in others their nearest
            whole = self._opaque("cast", "whole", [self.poly(e.args[0])], UNBOUNDED, "int64")
            if target.bits == 64:
                return whole
            least, most = whole_numbers(target.name)
            self.fits += [add(whole, constant(least), -1), add(constant(most), whole, -1)]
            return self._opaque("clip", target.name, [whole], _range_of(target), target.name)
        if not (source.is_integral and target.is_integral):
            return self._unseen("cast", e)
        value = self.poly(e.args[0])
        if target.bits == 64 or self._fits(value, target):
            return value
        if target.kind == "bool":
            return self._opaque("ne", "", [value, {}], (0, 1))
        return self._opaque("wrap", target.name, [value], _range_of(target), target.name)

    def _fits(self, p: Poly, target: DType) -> bool:
        """Whether a type has all values of a polynomial. Sizes are taken to fit types of indices."""
        (low, high), (least, most) = self.bounds(p), whole_numbers(target.name)
        if low is not None and high is not None:
            return least <= low <= high <= most
        return target.bits == 32 and self._is_held(p, target.name)

    def _is_held(self, p: Poly, dtype: str) -> bool:
        """Whether all that memory holds of a polynomial is of types whose values another one has."""
        inside = [self.atoms[n] for m in p for n in m]
        return all(keeps(a.holds, dtype) if a.holds else all(self._is_held(q, dtype) for q in a.args) for a in inside)

    def variable(self, uid: int) -> Poly:
        """The polynomial of a variable given by its uid."""
        value = self.values.get(uid)
        if value is not None:
            return value
        return {(self._intern("var", uid, (), frozenset((uid,)), self.ranges.get(uid, UNBOUNDED)),): 1}

    def _arithmetic(self, op: str, a: Poly, b: Poly) -> Poly:
        if op == "add":
            return add(a, b)
        if op == "sub":
            return add(a, b, -1)
        if op == "mul":
            return self.product(a, b)
        dividend, divisor = as_constant(a), as_constant(b)
        if dividend is not None and divisor is not None:
            return constant(_DIVISIONS[op](dividend, divisor))
        if op in ("truncdiv", "truncmod"):  # C's: as floor where both are known not to be negative
            low = self.bounds(a)[0]
            if low is None or low < 0 or divisor is None or divisor <= 0:
                return self._opaque(op, "", [a, b], UNBOUNDED)
            op = "floordiv" if op == "truncdiv" else "floormod"
        if divisor is None or not 0 < divisor <= _MOST:
            return self._opaque(op, "", [a, b], UNBOUNDED)
        return self.floordiv(a, divisor) if op == "floordiv" else self.floormod(a, divisor)

    def product(self, a: Poly, b: Poly) -> Poly:
        """a * b, expanded."""
        if len(a) * len(b) > MAX_TERMS:
            return self._opaque("mul", "", [a, b], UNBOUNDED)
        out: Poly = {}
        for m, c in a.items():
            for n, d in b.items():
                key = tuple(sorted(m + n))
                out[key] = out.get(key, 0) + c * d
        return {m: c for m, c in out.items() if c}

    def _extremum(self, op: str, a: Poly, b: Poly) -> Poly:
        low, high = self.bounds(add(a, b, -1))
        if low is not None and low >= 0:
            return a if op == "max" else b
        if high is not None and high <= 0:
            return b if op == "max" else a
        (al, ah), (bl, bh) = self.bounds(a), self.bounds(b)
        pick = max if op == "max" else min
        either = op == "max"
        lows = [x for x in (al, bl) if x is not None]
        highs = [x for x in (ah, bh) if x is not None]
        range_: Interval = (
            pick(lows) if len(lows) == 2 or (lows and either) else None,
            pick(highs) if len(highs) == 2 or (highs and not either) else None,
        )
        first, second = sorted((a, b), key=lambda p: sorted(p.items()))
        return self._opaque(op, "", [first, second], range_)

    def floordiv(self, p: Poly, c: int) -> Poly:
        """floor(p / c) for c > 0: what c divides leaves the quotient, the rest stays inside."""
        if c == 1:
            return p
        whole, rest = split_multiples(p, c)
        low, high = self.bounds(rest)
        if low is not None and high is not None and low // c == high // c:
            return add(whole, constant(low // c))
        g = gcd(c, *(v for m, v in rest.items() if m))
        inner = {m: v // g for m, v in rest.items()}  # floor((g*r + k) / c) = floor(r / (c/g)) for 0 <= k < g
        inner = {m: v for m, v in inner.items() if v}
        c //= g
        if c == 1:
            return add(whole, inner)
        nested = self._single(inner, "//")
        if nested is not None:
            inner, c = nested.args[0], c * int(nested.detail)
        return add(whole, self._opaque("//", c, [inner], _divide(self.bounds(inner), c)))

    def floormod(self, p: Poly, c: int) -> Poly:
        """p mod c in [0, c) for c > 0."""
        if c == 1:
            return {}
        _, rest = split_multiples(p, c)
        low, high = self.bounds(rest)
        if low is not None and high is not None and low // c == high // c:
            return add(rest, constant(-(low // c) * c))
        g = gcd(c, *(v for m, v in rest.items() if m))
        k = rest.get((), 0) % g  # (g*r + k) % c = g * (r % (c/g)) + k for 0 <= k < g
        inner = {m: v // g for m, v in rest.items()}
        inner = {m: v for m, v in inner.items() if v}
        if c == g:
            return constant(k)
        nested = self._single(inner, "%")
        if nested is not None and int(nested.detail) % (c // g) == 0:
            return add(scale(self.floormod(nested.args[0], c // g), g), constant(k))
        modulus = self._opaque("%", c // g, [inner], (0, c // g - 1))
        return add(scale(modulus, g), constant(k))

    def without_quotient(self, condition: Poly, quotient: Monomial) -> Poly:
        """A condition `>= 0` without one of its terms, plus or minus a quotient: x // d <= m says x <= d*m + d - 1, and
        x // d >= m says x >= d*m.
        """
        atom, sign = self.atoms[quotient[0]], condition[quotient]
        divisor = int(atom.detail)
        rest = scale({m: c for m, c in condition.items() if m != quotient}, divisor)
        return add(add(rest, atom.args[0], sign), constant(divisor - 1 if sign < 0 else 0))

    def _single(self, p: Poly, kind: str) -> Atom | None:
        if len(p) == 1:
            ((monomial, coefficient),) = p.items()
            if coefficient == 1 and len(monomial) == 1 and self.atoms[monomial[0]].kind == kind:
                return self.atoms[monomial[0]]
        return None

    def _opaque(self, kind: str, detail: int | str, args: Iterable[Poly], range_: Interval, holds: str = "") -> Poly:
        polys = tuple(args)
        return {(self._intern(kind, detail, polys, self.variables(*polys), range_, holds),): 1}

    def _intern(
        self,
        kind: str,
        detail: int | str,
        args: tuple[Poly, ...],
        variables: frozenset[int],
        range_: Interval,
        holds: str = "",
    ) -> int:
        # A variable with another range is another atom: what was simplified for one site must not serve another.
        key = (kind, detail, tuple(tuple(sorted(p.items())) for p in args), range_ if kind == "var" else holds)
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self.atoms)
            self.atoms.append(Atom(kind, detail, args, variables, range_, holds))
        return number

    def variables(self, *polys: Poly) -> frozenset[int]:
        """The uids of all variables in the polynomials, inside their atoms too."""
        return frozenset().union(*(self.atoms[a].vars for p in polys for m in p for a in m))

    def bounds(self, p: Poly) -> Interval:
        """An interval that contains every value of p."""
        low: int | None = 0
        high: int | None = 0
        for monomial, c in p.items():
            least, most = self._monomial_bounds(monomial)
            if c < 0:
                least, most = most, least
            low = None if low is None or least is None else low + c * least
            high = None if high is None or most is None else high + c * most
        return low, high

    def _monomial_bounds(self, monomial: Monomial) -> Interval:
        low, high = 1, 1
        for number in monomial:
            least, most = self.atoms[number].range
            if least is None or most is None:
                return self._unbounded_product(monomial)
            corners = (low * least, low * most, high * least, high * most)
            low, high = min(corners), max(corners)
        return low, high

    def _unbounded_product(self, monomial: Monomial) -> Interval:
        lows = [self.atoms[n].range[0] for n in monomial]
        product = 1
        for low in lows:
            if low is None or low < 0:
                return UNBOUNDED
            product *= low
        return product, None

    def separate(self, p: Poly, inner: frozenset[int]) -> tuple[Poly, Poly] | None:
        """p as (part without the inner variables, part of them and the constant); None where a term mixes both."""
        outside: Poly = {}
        inside: Poly = {}
        for monomial, c in p.items():
            touched = [bool(self.atoms[n].vars & inner) for n in monomial]
            if monomial and not any(touched):
                outside[monomial] = c
            elif all(self.atoms[n].vars <= inner for n in monomial):
                inside[monomial] = c
            else:
                return None
        return outside, inside

    def factor(self, p: Poly, inner: frozenset[int]) -> tuple[Poly, dict[Monomial, Poly]] | None:
        """p as (part without the inner variables, outer monomial -> its inner coefficient): `N*i + j` for a symbolic
        pitch N is
        {N: i, (): j}. The constant is with the inner part. None where an atom mixes both."""
        outside: Poly = {}
        factors: dict[Monomial, Poly] = {(): {}}
        for monomial, c in p.items():
            within = tuple(n for n in monomial if self.atoms[n].vars & inner)
            if any(not self.atoms[n].vars <= inner for n in within):
                return None
            if within or not monomial:
                without = tuple(n for n in monomial if n not in within)
                factors.setdefault(without, {})[within] = c
            else:
                outside[monomial] = c
        return outside, factors


def unread(load: Expr) -> Content:
    """Return this algebra for expressions that hold no loads."""
    raise ValueError(f"an index map reads memory ({load.buffer.name if load.buffer else '?'})")


def _divide(bounds: Interval, c: int) -> Interval:
    low, high = bounds
    return (None if low is None else low // c, None if high is None else high // c)


def _shifted(value: Interval, by: Interval, bits: int) -> Interval:
    """The bounds of numbers that are shifted to the left."""
    (low, high), (least, most) = value, by
    if low is None or high is None or least is None or most is None:
        return UNBOUNDED
    amounts = (max(least, 0), min(most, bits - 1))
    ends = [x << y for x in (low, high) for y in amounts] if amounts[0] <= amounts[1] else [0]
    beyond = [0] if least < 0 or most >= bits else []
    return min(ends + beyond), max(ends + beyond)


def _range_of(dtype: DType) -> Interval:
    """The bounds of what is cut to a type. Those of 32 bits stay open, as of memory: sums of such are taken to fit."""
    return _dtype_range(dtype.name) if dtype.bits == 32 else whole_numbers(dtype.name)


def _dtype_range(dtype: str) -> Interval:
    if dtype.startswith("bool"):
        return 0, 1
    if dtype.startswith("uint"):
        return 0, None
    return UNBOUNDED
