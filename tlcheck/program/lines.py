"""Source lines of statements that passes made without saying where they come from."""

from __future__ import annotations

from tlcheck.program.roles import READ, WRITE, accesses
from tlcheck.snapshot.ir import Function, Stmt, Store
from tlcheck.snapshot.walk import expressions, statements


def line_of_use(source: Function, buffer: str, writes: bool) -> int:
    """The only line at which a source kernel reads, or writes, a buffer; 0 if there is none or several."""
    mode = WRITE if writes else READ
    lines = {stmt.line for stmt in statements(source.body) if stmt.line and _uses(stmt, buffer, mode)}
    return lines.pop() if len(lines) == 1 else 0


def names_at(source: Function, line: int) -> frozenset[str]:
    """The buffers that a line of a source kernel reads or writes; none for line 0."""
    here = [stmt for stmt in statements(source.body) if line and stmt.line == line]
    stored = {stmt.buffer.name for stmt in here if isinstance(stmt, Store)}
    roots = (root for stmt in here for root in expressions(stmt))
    return frozenset(stored | {str(data.value) for root in roots for data, _ in accesses(root)})


def nearest_line(function: Function, stmt: Stmt) -> int:
    """The line of a statement, else of one within it, else of the one before it or around it; 0 if none has one."""
    own = next((inner.line for inner in statements(stmt) if inner.line), 0)
    if own:
        return own
    line = 0
    for other in statements(function.body):
        if other is stmt:
            break
        line = other.line or line
    return line


def _uses(stmt: Stmt, buffer: str, mode: int) -> bool:
    if isinstance(stmt, Store) and mode == WRITE and stmt.buffer.name == buffer:
        return True
    found = (access for root in expressions(stmt) for access in accesses(root))
    return any(str(data.value) == buffer and how & mode for data, how in found)
