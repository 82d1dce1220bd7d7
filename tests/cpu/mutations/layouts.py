"""Mutators of layouts: of annotated destinations, and of the fragments that sources lie in."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tests.cpu.mutations.tools import atomics, binary, flipped, integer, rewrite
from tests.cpu.prove.oracle_text import atomic_name
from tlcheck.snapshot.ir import Block, Expr, Function, Layout, Snapshot, Stmt
from tlcheck.snapshot.walk import postorder, rebuild, statements


def of_layouts(snapshot: Snapshot) -> Iterator[tuple[str, str, Snapshot]]:
    roots = _destinations(snapshot.checkpoints["intent"])
    layouts: dict[str, Layout] = {}
    for function in snapshot.checkpoints.values():
        for stmt in statements(function.body):
            for data, layout in stmt.layouts if isinstance(stmt, Block) else ():
                layouts.setdefault(str(data.value), layout)
    for name, layout in layouts.items():
        fragment = layout.thread is not None
        if name not in (roots.values() if fragment else roots):
            continue
        root = name if not fragment else next(d for d, s in roots.items() if s == name)
        for kind, changed in _layouts(layout):
            yield kind, root, _with_layout(snapshot, name, changed)


def _destinations(function: Function) -> dict[str, str]:
    """Destination -> source, of tile operators and element atomics alike."""
    found: dict[str, str] = {}
    for call in atomics(function):
        loads = [e for e in postorder(call.args) if e.op == "load" and e.buffer is not None]
        names = list(dict.fromkeys(str(e.buffer.data.value) for e in loads if e.buffer is not None))
        if atomic_name(call) in ("atomicadd", "atomicmax", "atomicmin"):  # the source comes first
            names.reverse()
        if names:
            found.setdefault(names[0], names[1] if len(names) > 1 else "")
    return found


def _layouts(layout: Layout) -> Iterator[tuple[str, Layout]]:
    if len(layout.index) > 1:
        yield "swap two layout axes", replace(layout, index=(*layout.index[:-2], layout.index[-1], layout.index[-2]))
    if len(layout.vars) > 1:
        a, b = layout.vars[-2:]
        turn = {id(a): b, id(b): a}
        index = tuple(rewrite(e, turn) for e in layout.index)
        thread = None if layout.thread is None else rewrite(layout.thread, turn)
        yield "swap two layout inputs", replace(layout, index=index, thread=thread)
    if layout.thread is not None:
        yield "double the replicas", _replicated(layout)
        if layout.replicas > 1:
            yield "halve the replicas", replace(layout, replicas=layout.replicas // 2)
        thread = flipped(layout.thread)
        yield "swap neighbouring threads of a fragment", replace(layout, thread=thread)


def _replicated(layout: Layout) -> Layout:
    """Twice the replicas; where there were none, the second is 128 threads further."""
    if layout.replica is not None or layout.thread is None:
        return replace(layout, replicas=2 * layout.replicas)
    replica = Expr("var", "int32", value="replica", uid=10**6 + 1)
    thread = binary("add", layout.thread, binary("mul", replica, integer(128)))
    return replace(layout, replicas=2, replica=replica, thread=thread)


def _with_layout(snapshot: Snapshot, name: str, new: Layout) -> Snapshot:
    def change(old: Stmt, now: Stmt) -> Stmt:
        if not isinstance(now, Block):
            return now
        pairs = tuple((d, new if str(d.value) == name else y) for d, y in now.layouts)
        return replace(now, layouts=pairs)

    functions = {n: replace(f, body=rebuild(f.body, change)) for n, f in snapshot.checkpoints.items()}
    return replace(snapshot, checkpoints=functions)
