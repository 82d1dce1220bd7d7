"""Sizes and indices: plain Python integers or NumPy arrays of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from tlcheck.execute.stops import NotModelled
from tlcheck.snapshot.arrays import ArrayNumbers
from tlcheck.snapshot.ir import Expr
from tlcheck.snapshot.operators import meaning
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
        value = values[str(e.value)]
        return value.astype(np.uint64) if isinstance(value, np.ndarray) and e.dtype == "uint64" else value
    apply = meaning(e, _ARRAYS)
    if apply is None:
        raise NotModelled(f"{e.value or e.op} in a size")
    return apply(*args)


_ARRAYS = ArrayNumbers()
