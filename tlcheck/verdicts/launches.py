"""What keeps a lowered kernel from being launched at all: memory of a block that the target does not have."""

from __future__ import annotations

from math import prod

from tlcheck.snapshot.checkpoint import Checkpoint
from tlcheck.snapshot.dtypes import dtype_of
from tlcheck.snapshot.ir import Alloc, Buffer, Snapshot
from tlcheck.snapshot.walk import statements
from tlcheck.targets.lookup import TARGETS
from tlcheck.targets.target import AMD


def unlaunchable(snapshot: Snapshot) -> tuple[str, ...]:
    """Say which buffers of a kernel for AMD are larger than the LDS of a compute unit, in words."""
    target = TARGETS.get(snapshot.target)
    function = snapshot.checkpoints.get(Checkpoint.DEVICE_TIR)
    if target is None or target.family != AMD or function is None:
        return ()
    room, found = target.limits.shared, []
    for stmt in statements(function.body):
        size = _octets(stmt.buffer) if isinstance(stmt, Alloc) and stmt.buffer.scope.startswith("shared") else 0
        if size > room and isinstance(stmt, Alloc):
            found.append(f"cannot be launched: {stmt.buffer.name} has {size} bytes, and LDS of {target.arch} {room}")
    return tuple(found)


def _octets(buffer: Buffer) -> int:
    """The size of a buffer; 0 where it varies."""
    sizes = [e.value for e in buffer.shape if isinstance(e.value, int)]
    kind = dtype_of(buffer.dtype)
    return prod(sizes) * kind.bits * kind.lanes // 8 if len(sizes) == len(buffer.shape) else 0
