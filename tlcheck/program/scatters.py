"""Stores to places that a tensor names: two blocks may be sent to one element, whatever their own places are."""

from __future__ import annotations

from functools import lru_cache

from tlcheck.program.observed import followed
from tlcheck.snapshot.ir import Function, Store
from tlcheck.snapshot.walk import postorder, statements


@lru_cache(maxsize=16)
def scatters(function: Function) -> bool:
    """Whether an index of a store to a tensor hangs on what a tensor holds. Atomics are no stores."""
    tensors, every = {b.data.uid for b in function.buffers}, list(statements(function.body))
    indices = [e for stmt in every if isinstance(stmt, Store) and stmt.buffer.data.uid in tensors for e in stmt.indices]
    loads = (e.buffer for e in postorder(followed(indices, every)) if e.op == "load" and e.buffer is not None)
    return any(buffer.data.uid in tensors for buffer in loads)
