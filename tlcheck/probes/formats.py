"""Number formats of TVM's scalar types: from bits to numbers and back, rounded to nearest even."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np

from tlcheck.snapshot.dtypes import dtype_of

_FORMATS: dict[str, Any] = {
    "float16": np.float16,
    "bfloat16": ml_dtypes.bfloat16,
    "float32": np.float32,
    "float64": np.float64,
}
FLOATS = tuple(_FORMATS)
INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")

Number = int | float


def bits_of(dtype: str) -> int:
    """Width of a scalar type."""
    return dtype_of(dtype).bits


def is_float(dtype: str) -> bool:
    """Whether it is a floating-point type."""
    return dtype in _FORMATS


def encode(dtype: str, number: Number) -> int:
    """The bits of a number: floats rounded to nearest even, integers cut toward zero and to the type's width."""
    if is_float(dtype):
        exact = np.float64(math.nan if math.isnan(number) else number)
        with np.errstate(all="ignore"):
            rounded = (_rounded_to_odd(exact) if dtype == "bfloat16" else exact).astype(_FORMATS[dtype])
        return int(rounded.view(f"u{bits_of(dtype) // 8}"))
    if isinstance(number, float) and not math.isfinite(number):
        return 0
    return int(number) & ((1 << bits_of(dtype)) - 1)


def _rounded_to_odd(number: Any) -> Any:
    """The float32 that rounds to bfloat16 as the number does: ml_dtypes rounds by way of float32, which is twice."""
    near = np.float32(number)
    if np.isnan(number) or near == number or near.view(np.uint32) & 1:
        return near
    return np.nextafter(near, np.float32(math.inf if number > near else -math.inf))


def decode(dtype: str, bits: int) -> Number:
    """The number that bits stand for."""
    width = bits_of(dtype)
    bits &= (1 << width) - 1
    if is_float(dtype):
        return float(np.array(bits, f"u{width // 8}").view(_FORMATS[dtype]))
    return bits - (1 << width) if dtype.startswith("int") and bits >> (width - 1) else bits


def holds(dtype: str, number: Number) -> bool:
    """Whether a type has exactly this number."""
    return decode(dtype, encode(dtype, number)) == number
