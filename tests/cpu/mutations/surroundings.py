"""Mutators of what surrounds one atomic: loops, guards, the threads that run it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from tests.cpu.mutations.tools import binary, integer, rewrite, target, with_statement
from tests.cpu.prove.oracle_text import atomic_name, lanes_of
from tlcheck.snapshot.ir import Evaluate, Expr, For, Function, If, Seq, Stmt, Store, Thread
from tlcheck.snapshot.walk import children, expressions, postorder, statements


def around(function: Function, call: Expr) -> Iterator[tuple[str, Function]]:
    path = _path(function.body, call)
    own = path[-1]
    for kind, changed in _in_place(function, own, call):
        yield kind, with_statement(function, own, changed)
    loops = [s for s in path if isinstance(s, For)]
    for number, loop in enumerate(loops):
        where = "" if number == len(loops) - 1 else f" (loop {number})"
        longer, shorter = binary("add", loop.extent, integer(1)), binary("sub", loop.extent, integer(1))
        yield (
            f"duplicate an iteration{where}",
            with_statement(function, loop, lambda s, e=longer: replace(s, extent=e)),
        )
        yield f"shorten a loop{where}", with_statement(function, loop, lambda s, e=shorter: replace(s, extent=e))
    for guard in (s for s in path if isinstance(s, If)):
        yield "drop a guard", with_statement(function, guard, lambda s: s.then)
        tighter = _tightened(guard.condition)
        if tighter is not None:
            yield "tighten a guard", with_statement(function, guard, lambda s, c=tighter: replace(s, condition=c))


def _path(root: Stmt, call: Expr) -> list[Stmt]:
    """The statements around a call, outermost first, its own last."""
    parents = {id(c): s for s in statements(root) for c in children(s)}
    own = next(s for s in statements(root) if any(e is call for r in expressions(s) for e in postorder([r])))
    path: list[Stmt] = [own]
    while id(path[0]) in parents:
        path.insert(0, parents[id(path[0])])
    return path


def _in_place(function: Function, own: Stmt, call: Expr) -> Iterator[tuple[str, Callable[[Stmt], Stmt]]]:
    if not isinstance(own, Evaluate):
        return
    yield "repeat the atomic", lambda s: Seq((s, s))
    yield "remove the atomic", lambda s: Seq(())
    thread = next((s for s in statements(function.body) if isinstance(s, Thread) and s.tag == "threadIdx.x"), None)
    if thread is not None and int(thread.extent.value or 1) > 1:
        half = binary("lt", thread.var, integer(int(thread.extent.value or 0) // 2), "bool")
        yield "halve the threads", lambda s: If(half, s)
        yield (
            "halve the threads, odd ones",
            lambda s: If(binary("eq", binary("floormod", thread.var, integer(2)), integer(1), "bool"), s),
        )
    store = _store(call)
    if store is not None:
        yield "replace by a store", lambda s: store


def _store(call: Expr) -> Stmt | None:
    load = target(call)
    value = call.args[2] if call.value == "call_extern" else call.args[1]
    if (
        load.buffer is None
        or "ret" in atomic_name(call).lower()
        or lanes_of(value.dtype) > 1
        or value.dtype == "handle"
    ):
        return None
    return Store(load.buffer, load.args, binary("add", load, value, load.dtype))


def _tightened(condition: Expr) -> Expr | None:
    """The first upper bound in a condition, one lower."""
    for e in postorder([condition]):
        if e.op == "lt":
            return rewrite(condition, {id(e): replace(e, args=(e.args[0], binary("sub", e.args[1], integer(1))))})
    return None
