"""Find the statements of a function that only some threads of a block may reach, or that differ between threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tlcheck.signatures.control import thread_axis
from tlcheck.snapshot.ir import Bind, Evaluate, Expr, For, Function, If, Stmt, Store, Thread, While
from tlcheck.snapshot.walk import children, postorder, statements


def divergent_calls(function: Function, wanted: Callable[[Expr], bool]) -> Iterator[Stmt]:
    """The wanted calls under a condition, or in a loop, that may differ between the threads of a block."""
    for stmt in divergent_statements(function):
        if isinstance(stmt, Evaluate) and wanted(stmt.value):
            yield stmt


def divergent_statements(function: Function) -> Iterator[Stmt]:
    """The statements under a condition, or in a loop, that may differ between the threads of a block."""
    return (stmt for stmt, divergent, _ in _reached(function, differing(function)) if divergent)


def fragments_of_threads(function: Function) -> frozenset[int]:
    """The pointers of fragments of which a thread may store other elements than the others, outside of T.Parallel."""
    differs = differing(function)
    return frozenset(
        stmt.buffer.data.uid
        for stmt, divergent, iterating in _reached(function, differs)
        if isinstance(stmt, Store)
        and stmt.buffer.scope == "local.fragment"
        and not iterating
        and (divergent or any(map(differs, stmt.indices)))
    )


def differing(function: Function) -> Callable[[Expr], bool]:
    """Return what tells whether an expression may differ between the threads of a block."""
    tensors = {b.data.uid for b in function.buffers}
    threads = variables_of_threads(function, lambda root, threads: _differs(root, threads, tensors))
    return lambda root: _differs(root, threads, tensors)


def _reached(function: Function, differs: Callable[[Expr], bool]) -> Iterator[tuple[Stmt, bool, bool]]:
    """Yield the statements, with whether only some threads may reach them, and whether they are in a T.Parallel."""
    left: list[tuple[Stmt, bool, bool]] = [(function.body, False, False)]
    while left:
        stmt, divergent, iterating = left.pop()
        yield stmt, divergent, iterating
        divergent = divergent or any(map(differs, deciding(stmt)))
        iterating = iterating or (isinstance(stmt, For) and stmt.kind == "parallel")
        left += [(child, divergent, iterating) for child in reversed(list(children(stmt)))]


def deciding(stmt: Stmt) -> tuple[Expr, ...]:
    """Return the expressions that decide whether, or how often, the statements in this one run."""
    if isinstance(stmt, (If, While)):
        return (stmt.condition,)
    return (stmt.start, stmt.extent) if isinstance(stmt, For) else ()


def variables_of_threads(function: Function, differs: Callable[[Expr, set[int]], bool]) -> set[int]:
    """Return the variables that differ between the threads of a block. differs: whether an expression does, given some
    of them.
    """
    threads = [
        s for s in statements(function.body) if isinstance(s, Thread) and s.tag.startswith(("thread", "vthread"))
    ]
    found = {s.var.uid for s in threads}
    binds = [s for s in statements(function.body) if isinstance(s, Bind)]
    while more := {b.var.uid for b in binds if b.var.uid not in found and differs(b.value, found)}:
        found |= more
    return found


def _differs(root: Expr, threads: set[int], tensors: set[int]) -> bool:
    """Whether an expression may differ between threads: of a thread's number, or of registers."""
    for e in postorder([root]):
        if thread_axis(e) is not None or (e.op == "var" and e.uid in threads):
            return True
        if e.op == "load" and e.buffer is not None and e.buffer.data.uid not in tensors:
            return True
    return False
