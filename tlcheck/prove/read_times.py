"""Find when what an atomic depends on is read: before or after something has written that memory again.

A comparison takes memory as one instance: a condition that is evaluated twice holds twice. That is so unless what it
reads is written between its evaluation and the atomic, or what a variable holds before the variable is used. Then both
sides have to read at the same times, as far as that can be told from where their statements stand.
"""

from __future__ import annotations

from collections.abc import Iterator

from tlcheck.algebra.algebra import ADDRESSES
from tlcheck.program.atomics import Site
from tlcheck.program.walk import Guard, Placed, subexpressions
from tlcheck.prove.plans import Comparison, Stage
from tlcheck.snapshot.ir import Bind, Expr, If, Store

History = frozenset[tuple[str, bool]]


def retimed(c: Comparison) -> str:
    """Say why what a match depends on may not be what is written; empty where nothing says so."""
    if root := next((root for site in c.match.sites for root in _moving_ends(c.stage, site)), ""):
        return f"the end of a loop is read from {root}, which the loop writes: CUDA reads it in each iteration"
    intended = {_history(c.intent, w) for w in c.match.source}
    lowered = {_history(c.stage, s) for s in c.match.sites}
    if intended == lowered:
        return ""
    root = min(root for history in intended | lowered for root, _ in history)
    return f"{root} is read, and written again before the atomic, and not in the same order as in the kernel"


def _history(stage: Stage, site: Site) -> History:
    """Return each read of memory that is written between some read of it and the site: the memory, and whether it is
    written after this read.
    """
    early = [(load, _is_changed(stage, site, load, at, guard)) for load, at, guard in _early(stage, site)]
    changed = {_root(stage, load) for load, is_changed in early if is_changed}
    if not changed:
        return frozenset()
    reads = early + [(load, False) for load in _loads(site.call)]
    return frozenset((_root(stage, load), is_changed) for load, is_changed in reads if _root(stage, load) in changed)


def _early(stage: Stage, site: Site) -> Iterator[tuple[Expr, Placed, Guard | None]]:
    """Loads that the site depends on and that stand before it: in conditions, with their guards, and in variables."""
    bound = {uid: value for uid, value in site.scope.bindings if any(_writes(stage, load) for load in _loads(value))}
    for number, guard in enumerate(site.scope.guards):
        for load in _loads(guard.condition):
            at = _condition(stage, site, number) if _writes(stage, load) else None
            if at is not None:
                yield load, at, guard
    used = _variables(site) if bound else set()
    for placed in stage.program.statements if used & bound.keys() else ():
        if isinstance(placed.stmt, Bind) and placed.stmt.var.uid in used & bound.keys():
            yield from ((load, placed, None) for load in _loads(placed.stmt.value))


def _variables(site: Site) -> set[int]:
    """The variables that a site uses, those in what they are bound to among them."""
    bound, used = dict(site.scope.bindings), set[int]()
    stack = [site.call, *(guard.condition for guard in site.scope.guards)]
    while stack:
        found = {e.uid for e in subexpressions(stack.pop()) if e.op == "var"} - used
        used |= found
        stack += [bound[uid] for uid in found if uid in bound]
    return used


def _loads(e: Expr) -> Iterator[Expr]:
    """The loads in an expression; an address is none, but its indices may have some."""
    stack = [e]
    while stack:
        part = stack.pop()
        is_address = part.op == "call" and part.value in ADDRESSES and part.args and part.args[0].op == "load"
        if part.op == "load" and part.buffer is not None:
            yield part
        stack += part.args[0].args if is_address else part.args


def _root(stage: Stage, load: Expr) -> str:
    assert load.buffer is not None
    return stage.program.roots.of(load.buffer.data)


def _is_changed(stage: Stage, site: Site, load: Expr, at: Placed, guard: Guard | None) -> bool:
    """Whether what is read at a statement is written between there and the site, or in a loop between the two; of a
    condition, by what runs under it.
    """
    inner = [axis for axis in site.scope.axes if axis not in at.scope.axes]
    return any(
        at.order < w.order
        and (w.order < site.placed.order or any(axis in inner for axis in w.scope.axes))
        and (guard is None or guard in w.scope.guards)
        for w in _writes(stage, load)
    )


def _condition(stage: Stage, site: Site, number: int) -> Placed | None:
    """The statement that evaluates a condition around a site; None for one within the site's own statement."""
    guard, around = site.scope.guards[number], site.scope.guards[:number]
    places = (
        placed
        for placed in reversed(stage.program.statements[: site.placed.order])
        if isinstance(placed.stmt, If) and placed.stmt.condition is guard.condition and placed.scope.guards == around
    )
    return next(places, None)


def _moving_ends(stage: Stage, site: Site) -> Iterator[str]:
    """Memory that a loop around a site writes, and that its bounds are read from."""
    for axis in site.scope.axes:
        if axis.kind not in ("block", "thread"):
            for load in (*_loads(axis.start), *_loads(axis.extent)):
                if any(axis in w.scope.axes for w in _writes(stage, load)):
                    yield _root(stage, load)


def _writes(stage: Stage, load: Expr) -> list[Placed]:
    """The statements that may write the element that is read."""
    return [w for w in stage.reader.stores.writes_to(_root(stage, load)) if not _is_elsewhere(w, load)]


def _is_elsewhere(write: Placed, load: Expr) -> bool:
    """Whether a store is to another element of the same buffer, both by constant indices."""
    if not isinstance(write.stmt, Store) or write.stmt.buffer is not load.buffer:
        return False
    pairs = zip(write.stmt.indices, load.args, strict=True)
    return any(a.op == b.op == "int" and a.value != b.value for a, b in pairs)
