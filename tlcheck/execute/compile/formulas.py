"""Define what operators and functions are where floats are elements of a field (`execute.field`).

Sums, differences and products are those of numbers, reduced afterwards as others are rounded. The other operators and
the calls that may be made are here; any other raises NotModelled, which ends the attempt.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from tlcheck.execute.compile import registry
from tlcheck.execute.compile.functions import NAMED
from tlcheck.execute.field import Field, inverse, reduced, scaled, times
from tlcheck.execute.memory.values import kind_of, require_wide
from tlcheck.execute.stops import NotModelled
from tlcheck.snapshot.ir import Bind, Expr, Function
from tlcheck.snapshot.walk import expressions, postorder, statements

Apply = Callable[..., Any]
_EXPONENTIALS = ("exp", "exp2", "exp10")
_OPAQUE = frozenset(
    "log log2 log10 log1p expm1 cbrt sin cos tan asin acos atan atan2 sinh cosh tanh asinh acosh atanh erf erfc "
    "pow __powf ldexp nextafter floor ceil trunc roundf round fmod hypot copysign".split()
)
_ARITHMETIC = ("mul", "div", "truncdiv", "floordiv", "floormod")
# `__powf(x, y)` is exp2(y * log2(x)), which no negative number has: another function than pow.
_CANONICAL = {name: first for first, (_, others) in NAMED.items() for name in (first, *others)} | {"__powf": "__powf"}


def require_handler(handler: registry.CallHandler, name: str) -> None:
    """Raise NotModelled for a call whose handler is not known to keep elements of the field apart from numbers."""
    if handler not in registry.FORMULAS:
        raise NotModelled(f"{name}, of which nobody knows whether it is the same formula")


def operation(e: Expr, field: Field, kernel: Function) -> Apply | None:
    """Return what an operator of a kernel does; None where it is as with numbers, and its result to be reduced."""
    kinds = [kind_of(a.dtype) for a in e.args if a.op != "str"]
    if not any(kind.is_float for kind in (*kinds, kind_of(e.dtype))):
        return None
    if not kind_of(e.dtype).is_float:
        raise NotModelled("numbers of tensors are compared")
    if e.op in _ARITHMETIC:
        require_wide(kind_of(e.dtype))
    if e.op == "mul":
        return _product(e, _signs(kernel))
    if e.op in ("div", "truncdiv"):
        return _quotient
    if e.op in ("min", "max"):
        return lambda *terms: field.extremum(e.op, terms)
    if e.op in ("add", "sub", "broadcast"):
        return None  # its result is rounded, or NotModelled where that is meant
    if e.op in ("floordiv", "floormod"):
        return lambda *args: field.function(e.op, *args)
    raise NotModelled(f"{e.op} of {kinds[0].name}")


def function(name: str, e: Expr, field: Field) -> Apply | None:
    """Return what a function does; None for one of integers alone."""
    kinds = [kind_of(a.dtype) for a in e.args if a.op != "str"]
    if not any(kind.is_float for kind in (*kinds, kind_of(e.dtype))):
        return None
    if not kind_of(e.dtype).is_float or not all(kind.is_float for kind in kinds[: _arity(_CANONICAL[name])]):
        raise NotModelled(f"{name} of {kinds[0].name}")
    if name not in ("__ldg", "likely"):
        require_wide(kind_of(e.dtype))
    return _function(_CANONICAL[name], e, field)


def _arity(name: str) -> int:
    return {"pow_of_int": 1, "pow": 1, "__powf": 1, "ldexp": 1}.get(name, 3)


def _function(name: str, e: Expr, field: Field) -> Apply:
    if name in _EXPONENTIALS:
        return lambda value: _exponential(name, value, field)
    if name in _OPAQUE:
        return lambda *args: field.function(name, *_numbers(e, args))
    known: dict[str, Apply] = {
        "sqrt": lambda value, *mode: field.function("sqrt", value),
        "rsqrt": lambda value, *mode: inverse(field.function("sqrt", value)),
        "sigmoid": lambda value: inverse(reduced(1.0 + _exponential("exp", reduced(-value), field))),
        "fast_rcp": lambda value, *mode: inverse(value),
        "fma": lambda a, b, c, *mode: reduced(times(a, b) + c),
        "fabs": field.absolute,
        "ieee_add": lambda a, b, *mode: reduced(np.add(a, b)),
        "ieee_sub": lambda a, b, *mode: reduced(np.subtract(a, b)),
        "ieee_mul": lambda a, b, *mode: times(a, b),
        "ieee_fdiv": lambda a, b, *mode: times(a, inverse(b)),
        "max2": lambda a, b: field.extremum("max", (a, b)),
        "min2": lambda a, b: field.extremum("min", (a, b)),
        "clamp": lambda value, low, high: field.extremum("min", (field.extremum("max", (value, low)), high)),
        "__saturatef": lambda value: field.extremum("min", (field.extremum("max", (value, 0.0)), 1.0)),
        "infinity": lambda *ignored: math.inf,
        "__ldg": lambda value: value,
        "likely": lambda value: value,
    }
    if name not in known:
        raise NotModelled(f"{name} of {e.args[0].dtype}" if e.args else name)
    return known[name]


def _numbers(e: Expr, args: tuple[Any, ...]) -> list[Any]:
    """The arguments; an integer, such as an exponent, as the element that stands for it."""
    kinds = [kind_of(a.dtype) for a in e.args]
    return [a if kind.is_float else reduced(np.asarray(a, np.float64)) for a, kind in zip(args, kinds, strict=True)]


def _exponential(name: str, value: Any, field: Field) -> Any:
    """A random function that is 0 of minus infinity."""
    found = field.function(name, value)
    nothing = np.equal(value, -np.inf)
    return np.where(nothing, 0.0, found) if np.any(nothing) else found


def _quotient(a: Any, b: Any) -> Any:
    return times(a, inverse(b))


def _product(e: Expr, signs: Mapping[int, int]) -> Apply:
    """A product. Of one with a constant the sign is known where the other factor is infinite."""
    first, second = (_sign(a, signs) for a in e.args)
    if second:
        return lambda a, b: scaled(a, b, second)
    return (lambda a, b: scaled(b, a, first)) if first else times


def _sign(e: Expr, signs: Mapping[int, int]) -> int:
    """Return the sign of a constant; 0 where it is none, or nobody knows."""
    while e.op in ("cast", "broadcast"):
        e = e.args[0]
    if e.op == "var":
        return signs.get(e.uid, 0)
    if e.op not in ("float", "int") or not isinstance(e.value, (int, float)) or not math.isfinite(e.value):
        return 0
    return (e.value > 0) - (e.value < 0)


@lru_cache(maxsize=8)
def _signs(kernel: Function) -> Mapping[int, int]:
    """Return the signs of variables that are constants wherever they are bound."""
    found: dict[int, set[int]] = {}
    for stmt in statements(kernel.body):
        if isinstance(stmt, Bind):
            found.setdefault(stmt.var.uid, set()).add(_sign(stmt.value, {}))
        for e in postorder(expressions(stmt)):
            if e.op == "let":
                found.setdefault(e.args[0].uid, set()).add(0)
    return {uid: signs.pop() for uid, signs in found.items() if len(signs) == 1}


def reduction(combine: np.ufunc, field: Field) -> Callable[[Any, int], Any]:
    """Return how floats along an axis are combined."""
    if combine is np.add:
        return lambda terms, axis: terms.sum(axis=axis)
    if combine not in (np.maximum, np.minimum):
        raise NotModelled(f"{combine.__name__} of floats")
    name = "max" if combine is np.maximum else "min"
    return lambda terms, axis: field.extremum(name, list(np.moveaxis(terms, axis, 0)))


def require_sum(combine: np.ufunc, field: Field | None) -> None:
    """Raise NotModelled where elements of a field are combined one after the other by anything but a sum."""
    if field is not None and combine is not np.add:
        raise NotModelled(f"a running {combine.__name__}")


def combination(name: str, combine: Apply, field: Field | None) -> Apply:
    """Return how two floats are combined, by the name of a reduction of threads."""
    if field is None or name == "Sum":
        return combine
    extremum = {"Max": "max", "Min": "min", "MaxNan": "max", "MinNan": "min"}.get(name)
    if extremum is None:
        raise NotModelled(f"{name} of floats")
    return lambda *terms: field.extremum(extremum, terms)
