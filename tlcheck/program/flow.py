"""Find what an output of a function is made of, whatever the indices."""

from __future__ import annotations

from tlcheck.program.roles import accesses
from tlcheck.snapshot.ir import Bind, Evaluate, Function, Stmt, Store
from tlcheck.snapshot.walk import expressions, postorder, statements, with_surroundings


class Flow:
    """A record of what an output is made of. buffers: their pointers, and variables; writers: the statements that write
    these buffers.
    """

    def __init__(self, function: Function, output: str, *, steered: bool = False) -> None:
        """steered: with what decides whether, and how often, these statements run."""
        around = dict(with_surroundings(function.body)) if steered else {}
        self.buffers = {b.data.uid for b in function.buffers if b.data.value == output}
        self.writers: list[Stmt] = []
        while True:
            before = len(self.buffers)
            self.writers = []
            for stmt in statements(function.body):
                into = _written_by(stmt) or _accessed_by(stmt)
                if into & self.buffers and isinstance(stmt, (Store, Evaluate, Bind)):
                    for part in (stmt, *around.get(stmt, ())):
                        self.buffers |= _used_by(part)
                    if not isinstance(stmt, Bind):
                        self.writers.append(stmt)
            if len(self.buffers) == before:
                return


def _used_by(stmt: Stmt) -> set[int]:
    """The pointers of what a statement itself accesses, and its variables."""
    return _accessed_by(stmt) | {e.uid for e in postorder(expressions(stmt)) if e.op == "var"}


def _accessed_by(stmt: Stmt) -> set[int]:
    return {data.uid for e in expressions(stmt) for data, _ in accesses(e)}


def _written_by(stmt: Stmt) -> set[int]:
    if isinstance(stmt, Store):
        return {stmt.buffer.data.uid}
    return {stmt.var.uid} if isinstance(stmt, Bind) else set()
