"""Sizes and spaces of memory, the same for all releases."""

from __future__ import annotations

from math import prod

from tlcheck.snapshot.dtypes import dtype_of
from tlcheck.snapshot.ir import Buffer

MERGED = "buf_dyn_shmem"  # the one allocation into which TileLang merges all buffers in shared memory


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
    return int(prod(int(extent or 0) for extent in extents) * dtype_of(buffer.dtype).bytes)
