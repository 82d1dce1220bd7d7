"""Types of elements in TVM's spelling: `float16`, `bfloat16x2`, `float4_e2m1fn`, `custom[float8_e4m3]8`, `bool`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

_FORM = re.compile(r"(?:custom\[)?([a-z]+?)(\d*)(_[a-z\d_]*?)?(?:\]\d*)?(?:x(\d+))?")
_KINDS = {"int": "int", "uint": "uint", "float": "float", "bfloat": "float", "tfloat": "float"}
_FIXED = {"bool": 8, "handle": 64}


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
    return DType(name, _KINDS.get(family, ""), int(digits or 0), int(lanes or 1))
