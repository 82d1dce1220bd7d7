"""Sizes and indices: plain Python integers or NumPy arrays of them."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from tlcheck.execute.reasons import NotModelled
from tlcheck.snapshot.ir import Expr
from tlcheck.snapshot.walk import postorder

Elements = TypeVar("Elements", int, npt.NDArray[Any])


def index_of(element: Elements, shape: Sequence[int]) -> tuple[Elements, ...]:
    """The index of an element of a row-major tensor, or of an array of elements.

    np.unravel_index of NumPy 2.4 is wrong for large arrays of three dimensions.
    """
    found: list[Elements] = []
    for extent in reversed(shape):
        found.insert(0, element % extent)
        element = element // extent
    return tuple(found)


def evaluated(e: Expr, values: Mapping[str, Any]) -> Any:
    """The value of an expression for variables by name. Raises NotModelled for what is no arithmetic of them."""
    known: dict[Expr, Any] = {}
    for x in postorder([e]):
        args = [known[a] for a in x.args]
        known[x] = _one(x, args, values)
    return known[e]


def _one(e: Expr, args: list[Any], values: Mapping[str, Any]) -> Any:
    if e.op in ("int", "float"):
        return e.value
    if e.op == "var" and str(e.value) in values:
        return values[str(e.value)]
    if e.op == "cast":
        return args[0]
    if e.op == "select" or (e.op == "call" and e.value == "if_then_else"):
        return np.where(*args) if any(isinstance(a, np.ndarray) for a in args) else args[1] if args[0] else args[2]
    if e.op == "call" and e.value in ("shift_left", "shift_right", "bitwise_and", "bitwise_or", "bitwise_xor"):
        return _BITS[str(e.value)](*args)
    if e.op == "call" and e.value == "likely":
        return args[0]
    if e.op in _OPERATORS:
        return _OPERATORS[e.op](*args)
    raise NotModelled(f"{e.value or e.op} in a size")


def _divided(a: Any, b: Any) -> Any:
    return a // b if np.all(b) else 0


def _rest(a: Any, b: Any) -> Any:
    return a % b if np.all(b) else 0


_BITS: dict[str, Callable[[Any, Any], Any]] = {
    "shift_left": operator.lshift,
    "shift_right": operator.rshift,
    "bitwise_and": operator.and_,
    "bitwise_or": operator.or_,
    "bitwise_xor": operator.xor,
}
_OPERATORS: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "floordiv": _divided,
    "floormod": _rest,
    "truncdiv": _divided,
    "truncmod": _rest,
    "min": np.minimum,
    "max": np.maximum,
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
    "and": np.logical_and,
    "or": np.logical_or,
    "not": np.logical_not,
}
