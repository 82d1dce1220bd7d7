"""Number formats of TVM's scalar types: from bits to numbers and back, rounded to nearest even."""

from __future__ import annotations

import math
import struct
from fractions import Fraction

from tlcheck.snapshot.dtypes import dtype_of

FLOATS = ("float16", "bfloat16", "float32", "float64")
INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
_FORMAT = {"float16": (11, 5), "bfloat16": (8, 8), "float32": (24, 8), "float64": (53, 11)}  # significand, exponent

Number = int | float


def bits_of(dtype: str) -> int:
    """Width of a scalar type."""
    return dtype_of(dtype).bits


def is_float(dtype: str) -> bool:
    """Whether it is a floating-point type."""
    return dtype in _FORMAT


def encode(dtype: str, number: Number) -> int:
    """The bits of a number: floats rounded to nearest even, integers cut toward zero and to the type's width."""
    if is_float(dtype):
        return _encode_float(dtype, float(number))
    if isinstance(number, float) and not math.isfinite(number):
        return 0
    return int(number) & ((1 << bits_of(dtype)) - 1)


def decode(dtype: str, bits: int) -> Number:
    """The number that bits stand for."""
    width = bits_of(dtype)
    bits &= (1 << width) - 1
    if dtype.startswith("uint"):
        return bits
    if dtype.startswith("int"):
        return bits - (1 << width) if bits >> (width - 1) else bits
    if dtype == "bfloat16":
        return float(struct.unpack("<f", struct.pack("<I", bits << 16))[0])
    code = {16: ("<e", "<H"), 32: ("<f", "<I"), 64: ("<d", "<Q")}[width]
    return float(struct.unpack(code[0], struct.pack(code[1], bits))[0])


def holds(dtype: str, number: Number) -> bool:
    """Whether a type has exactly this number."""
    return decode(dtype, encode(dtype, number)) == number


def _encode_float(dtype: str, number: float) -> int:
    significand, exponent = _FORMAT[dtype]
    sign = 1 if math.copysign(1.0, number) < 0 else 0
    top = (1 << exponent) - 1
    if math.isnan(number):
        return (top << (significand - 1)) | (1 << (significand - 2))
    magnitude = _magnitude(abs(number), significand, exponent)
    return (sign << (bits_of(dtype) - 1)) | magnitude


def _magnitude(number: float, significand: int, exponent: int) -> int:
    """Exponent and fraction bits of a number that is not negative."""
    top, bias = (1 << exponent) - 1, (1 << (exponent - 1)) - 1
    if math.isinf(number):
        return top << (significand - 1)
    if number == 0:
        return 0
    power = max(math.frexp(number)[1] - 1, 1 - bias)  # subnormal numbers share the smallest exponent
    steps = round(Fraction(number) / Fraction(2) ** (power - significand + 1))  # to even
    biased = power + bias
    implied = 1 << (significand - 1)
    magnitude = ((biased - 1) << (significand - 1)) + steps if steps >= implied else steps
    return min(magnitude, top << (significand - 1))
