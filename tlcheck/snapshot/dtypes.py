"""Types of elements in TVM's spelling: `float16`, `bfloat16x2`, `float4_e2m1fn`, `custom[float8_e4m3]8`, `bool`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

_FORM = re.compile(r"(?:custom\[)?([a-z]+?)(\d*)(_[a-z\d_]*?)?(?:\]\d*)?(?:x(\d+))?")
_KINDS = {"int": "int", "uint": "uint", "float": "float", "bfloat": "float", "tfloat": "float"}
_FIXED = {"bool": 8, "handle": 64}
_UNPACKED = ("float4_e2m1_unpacked", "float6_e2m3_unpacked", "float6_e3m2_unpacked")
_CONTAINERS = dict.fromkeys(_UNPACKED, 8)  # bits of a type that is named for fewer


@dataclass(frozen=True)
class DType:
    """A type of elements. name: without lanes. kind: `int`, `uint`, `float`, `bool`, `handle`, or empty if not known.

    bits: of one lane, 0 if not known; a bool takes a byte.
    """

    name: str
    kind: str
    bits: int
    lanes: int = 1

    @property
    def bytes(self) -> float:
        """Size of an element with all its lanes: 0.5 for `float4_e2m1fn`."""
        return self.bits * self.lanes / 8

    @property
    def is_integral(self) -> bool:
        """Whether its values are whole numbers, truth values included."""
        return self.kind in ("int", "uint", "bool")


@cache
def dtype_of(text: str) -> DType:
    """Read a type; of one that is not known all but the name is empty."""
    found = _FORM.fullmatch(text)
    if found is None:
        return DType(text, "", 0)
    family, digits, form, lanes = found.groups()
    if family in _FIXED and not digits and not form:
        return DType(family, family, _FIXED[family], int(lanes or 1))
    name = f"{family}{digits}{form or ''}"
    return DType(name, _KINDS.get(family, ""), _CONTAINERS.get(name, int(digits or 0)), int(lanes or 1))


def keeps(source: str, target: str) -> bool:
    """Whether every value of one type of scalars is one of another, so that a cast changes nothing."""
    a, b = dtype_of(source), dtype_of(target)
    if a.name == b.name:
        return True
    if a.name in _PRECISIONS and b.name in _PRECISIONS:
        return all(x <= y for x, y in zip(_PRECISIONS[a.name], _PRECISIONS[b.name], strict=True))
    if a.is_integral and b.name in _PRECISIONS:
        return 0 < a.bits - (a.kind == "int") <= _PRECISIONS[b.name][0] and b.name != "float16"
    if a.is_integral and b.is_integral and a.bits and b.bits:
        (low, high), (least, most) = whole_numbers(a.name), whole_numbers(b.name)
        return least <= low <= high <= most
    return False


@cache
def whole_numbers(text: str) -> tuple[int, int]:
    """The least and the greatest value of an integral type."""
    dtype = dtype_of(text)
    if dtype.kind == "bool":
        return 0, 1
    if dtype.kind == "uint":
        return 0, 2**dtype.bits - 1
    return -(2 ** (dtype.bits - 1)), 2 ** (dtype.bits - 1) - 1


_PRECISIONS = {"float16": (11, 5), "bfloat16": (8, 8), "float32": (24, 8), "float64": (53, 11)}  # significand, exponent
