"""The operators on values of lanes: arrays of their own type, which wraps as C's does, and Python scalars."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tlcheck.execute.memory.values import kind_of, maximum, minimum, within
from tlcheck.snapshot.arrays import ArrayNumbers
from tlcheck.snapshot.dtypes import DType, whole_numbers
from tlcheck.snapshot.ir import Expr
from tlcheck.snapshot.operators import Apply, meaning


class _Lanes(ArrayNumbers):
    """Values of lanes; floats are ordered as `minimum` and `maximum` say."""

    def least(self, a: Any, b: Any) -> Any:
        if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
            return minimum(a, b)
        return a if a <= b else b if b < a else minimum(a, b).item()

    def greatest(self, a: Any, b: Any) -> Any:
        if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
            return maximum(a, b)
        return a if a >= b else b if b > a else maximum(a, b).item()

    def holding(self, dtype: DType) -> Apply:
        scalar, kind = super().holding(dtype), kind_of(dtype.name)
        form, narrow = kind.array, kind.bits < 8
        least, most = whole_numbers(dtype.name) if dtype.is_integral and dtype.kind != "bool" else (0, -1)

        def held(value: Any) -> Any:
            if value.__class__ is int and least <= value <= most:
                return value
            if not isinstance(value, np.ndarray):
                return scalar(value)
            if value.dtype is not form:
                value = value.astype(form, copy=False)
            return within(value, kind) if narrow else value

        return held


_LANES = _Lanes()


def applied(e: Expr) -> Callable[..., Any] | None:
    """Return what an operator of the table does with the values of its operands; floats are not rounded."""
    return meaning(e, _LANES)
