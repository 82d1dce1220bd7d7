"""Sizes and spaces of memory, the same for all releases."""

from __future__ import annotations

import re
from math import prod

from tlcheck.program.atomics import lanes
from tlcheck.snapshot.ir import Buffer

_BITS = re.compile(r"\d+")
_FIXED = {"bool": 8, "handle": 64}
MERGED = "buf_dyn_shmem"  # the one allocation into which TileLang merges all buffers in shared memory


def element_bytes(dtype: str) -> float:
    """Bytes of one element, lanes included: 0.5 for `float4_e2m1fn`."""
    base = dtype.rpartition("x")[0] if lanes(dtype) > 1 else dtype
    found = _BITS.search(base)
    return _FIXED.get(base, int(found[0]) if found else 0) / 8 * lanes(dtype)


def space_of(scope: str) -> str:
    """`global`, `shared`, `local`, or empty for what is no ordinary memory, such as barriers."""
    if scope in ("shared", "shared.dyn"):
        return "shared"
    if scope in ("local", "local.fragment"):
        return "local"
    return "global" if scope in ("", "global") else ""


def buffer_bytes(buffer: Buffer) -> int:
    """0 where an extent is not constant."""
    extents = [e.value for e in buffer.shape]
    if not all(isinstance(extent, int) for extent in extents):
        return 0
    return int(prod(int(extent or 0) for extent in extents) * element_bytes(buffer.dtype))
