"""Find the statements of a source that only some threads of a block may reach."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from tlcheck.signatures.calls import name_of_call
from tlcheck.snapshot.ir import Bind, Evaluate, Expr, For, Function, If, Stmt, Thread, While
from tlcheck.snapshot.walk import children, postorder, statements


def divergent_calls(function: Function, names: Collection[str]) -> Iterator[Stmt]:
    """The calls of these names under a condition, or in a loop, that may differ between the threads of a block."""
    threads, tensors = _threads(function), {b.data.uid for b in function.buffers}
    left: list[tuple[Stmt, bool]] = [(function.body, False)]
    while left:
        stmt, divergent = left.pop()
        if divergent and isinstance(stmt, Evaluate) and name_of_call(stmt.value) in names:
            yield stmt
        divergent = divergent or any(_differs(e, threads, tensors) for e in _deciding(stmt))
        left += [(child, divergent) for child in reversed(list(children(stmt)))]


def _deciding(stmt: Stmt) -> tuple[Expr, ...]:
    """What decides whether, or how often, the statements in this one run."""
    if isinstance(stmt, (If, While)):
        return (stmt.condition,)
    return (stmt.start, stmt.extent) if isinstance(stmt, For) else ()


def _threads(function: Function) -> set[int]:
    """The variables that differ between the threads of a block."""
    found = {s.var.uid for s in statements(function.body) if isinstance(s, Thread) and s.tag.startswith("thread")}
    binds = [s for s in statements(function.body) if isinstance(s, Bind)]
    tensors = {b.data.uid for b in function.buffers}
    while more := {b.var.uid for b in binds if b.var.uid not in found and _differs(b.value, found, tensors)}:
        found |= more
    return found


def _differs(root: Expr, threads: set[int], tensors: set[int]) -> bool:
    """Whether an expression may differ between threads: of a thread's number, or of registers."""
    for e in postorder([root]):
        if e.value == "launch_thread_idx" or (e.op == "var" and e.uid in threads):
            return True
        if e.op == "load" and e.buffer is not None and e.buffer.data.uid not in tensors:
            return True
    return False
