"""Operators on NumPy's arrays. Nothing that runs in a toolchain's interpreter imports this."""

from __future__ import annotations

from typing import Any

import numpy as np

from tlcheck.snapshot.dtypes import DType, whole_numbers
from tlcheck.snapshot.operators import Apply, Scalars, wrapped


class ArrayNumbers(Scalars):
    """Arrays of int64, whatever the type of the numbers, and of uint64 for that type; beside Python's numbers."""

    def every(self, value: Any) -> bool:
        return bool(value.all()) if isinstance(value, np.ndarray) else bool(value)

    def choose(self, condition: Any, then: Any, other: Any) -> Any:
        if isinstance(condition, np.ndarray):
            return np.where(condition, array_like(then), array_like(other))
        return then if condition else other

    def least(self, a: Any, b: Any) -> Any:
        return np.minimum(a, b) if _is_array(a, b) else super().least(a, b)

    def greatest(self, a: Any, b: Any) -> Any:
        return np.maximum(a, b) if _is_array(a, b) else super().greatest(a, b)

    def holding(self, dtype: DType) -> Apply:
        scalar = super().holding(dtype)
        if not dtype.is_integral:
            return scalar
        least, most = whole_numbers(dtype.name)

        def held(value: Any) -> Any:
            if not isinstance(value, np.ndarray):
                return scalar(value)
            if dtype.kind == "bool":
                return value != 0
            return value.astype(dtype.name) if dtype.bits == 64 else wrapped(value.astype(np.int64), least, most)

        return held

    def converted(self, value: Any, source: DType, target: DType) -> Any:
        if not isinstance(value, np.ndarray):
            return super().converted(value, source, target)
        if target.kind == "float":
            return value.astype(np.float64)
        if source.kind == "float" and target.kind != "bool":
            form = np.dtype(np.uint64 if target.name == "uint64" else np.int64)
            return saturated(value, *whole_numbers(target.name), form)
        return self.holding(target)(value)


def array_like(value: Any) -> Any:
    """Return the value as `np.where` takes it: NumPy 2.5 refuses a Python int above 2**63 - 1 there."""
    return np.uint64(value) if isinstance(value, int) and value >= 1 << 63 else value


def saturated(values: Any, least: int, most: int, form: np.dtype[Any]) -> Any:
    """Floats without their fractions, as the nearest integers between two; 0 for NaN."""
    whole = np.trunc(np.where(np.isnan(values), 0.0, values))
    inside = np.where((whole > least) & (whole < most), whole, 0.0).astype(form)
    return np.where(whole >= most, form.type(most), np.where(whole <= least, form.type(least), inside))


def _is_array(a: Any, b: Any) -> bool:
    return isinstance(a, np.ndarray) or isinstance(b, np.ndarray)
