"""Kernels that start before the one ahead of them has ended: programmatic dependent launch.

Such a kernel calls T.pdl_sync (griddepcontrol.wait, PTX): only from there on what the kernels ahead have written is
there, and may be written over (CUDA C++ Programming Guide, "Programmatic Dependent Launch").
"""

from __future__ import annotations

from collections.abc import Sequence

from tlcheck.program.roles import READ, WRITE, accesses
from tlcheck.signatures.calls import name_of_call
from tlcheck.snapshot.ir import Function, Stmt, Store
from tlcheck.snapshot.walk import expressions, postorder, statements

_WAITS = ("pdl_sync", "cudaGridDependencySynchronize")
KERNELS = frozenset((*_WAITS, "pdl_trigger"))
"""Calls by which kernels act on one another."""


def access_ahead(kernels: Sequence[Function]) -> tuple[str, int] | None:
    """A tensor of the kernels ahead that one accesses before it waits for them, and the line; None where none is."""
    modes: dict[str, int] = {}
    for kernel in kernels:
        names = {b.data.uid: str(b.data.value) for b in kernel.buffers} | {p.uid: str(p.value) for p in kernel.params}
        every = list(statements(kernel.body))
        waits = next((n for n, stmt in enumerate(every) if _waits(stmt)), 0)
        for stmt in every[:waits]:
            for uid, mode in _accessed(stmt):
                ahead = modes.get(names.get(uid, ""), 0)
                if (mode & READ and ahead & WRITE) or (mode & WRITE and ahead):
                    return names[uid], stmt.line
        for uid, mode in (found for stmt in every for found in _accessed(stmt)):
            if uid in names:
                modes[names[uid]] = modes.get(names[uid], 0) | mode
    return None


def _waits(stmt: Stmt) -> bool:
    return any(e.op == "call" and name_of_call(e) in _WAITS for e in postorder(expressions(stmt)))


def _accessed(stmt: Stmt) -> list[tuple[int, int]]:
    found = [(data.uid, mode) for e in expressions(stmt) for data, mode in accesses(e)]
    return [*found, (stmt.buffer.data.uid, WRITE)] if isinstance(stmt, Store) else found
