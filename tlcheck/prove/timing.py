"""When conditions on memory are evaluated: before or after something has written that memory again.

A comparison takes memory as one instance: a condition that is evaluated twice holds twice. That is so unless what it
reads is written between its evaluation and the atomic. Then both sides have to evaluate it at the same times, as far as
that can be told from where they stand.
"""

from __future__ import annotations

from collections.abc import Iterator

from tlcheck.program.atomics import Site
from tlcheck.program.walk import Guard, Placed, subexpressions
from tlcheck.prove.plans import Comparison, Stage
from tlcheck.snapshot.ir import Bind, Expr, If, Store

History = frozenset[tuple[str, bool]]


def retimed(c: Comparison) -> str:
    """Say why a condition around a match may not be the one that is written; empty where nothing says so."""
    if root := next((root for site in c.match.sites for root in _moving_ends(c.stage, site)), ""):
        return f"the end of a loop is read from {root}, which the loop writes: CUDA reads it in each iteration"
    written = {_history(c.intent, w) for w in c.match.written}
    lowered = {_history(c.stage, s) for s in c.match.sites}
    if written == lowered:
        return ""
    root = min(root for history in written ^ lowered for root, _ in history)
    return f"conditions are read from {root}, which is written under them, and not at the same times as in the kernel"


def _history(stage: Stage, site: Site) -> History:
    """Memory that is written after a condition around a site has read it -> whether it is, for each that reads it."""
    read = [(_root(stage, load), _is_changed(stage, site, guard, load)) for guard, load in _loads(site)]
    changed = {root for root, is_changed in read if is_changed}
    return frozenset((root, is_changed) for root, is_changed in read if root in changed)


def _loads(site: Site) -> Iterator[tuple[Guard, Expr]]:
    bound = dict(site.scope.bindings)
    for guard in site.scope.guards:
        yield from ((guard, load) for load in _read(bound.get(guard.condition.uid, guard.condition)))


def _read(e: Expr) -> Iterator[Expr]:
    return (part for part in subexpressions(e) if part.op == "load" and part.buffer is not None)


def _root(stage: Stage, load: Expr) -> str:
    assert load.buffer is not None
    return stage.program.roots.of(load.buffer.data)


def _is_changed(stage: Stage, site: Site, guard: Guard, load: Expr) -> bool:
    """Whether what a condition reads is written between its evaluation and the site, or in a loop between the two."""
    writes = _writes(stage, load)
    decided = _evaluated(stage, guard.condition) if writes else None
    if decided is None:
        return False
    inner = [a for a in site.scope.axes if a not in decided.scope.axes]
    is_bound = isinstance(decided.stmt, Bind)
    return any(
        decided.order < w.order
        and (w.order < site.placed.order or any(a in inner for a in w.scope.axes))
        and (is_bound or guard in w.scope.guards)
        for w in writes
    )


def _evaluated(stage: Stage, condition: Expr) -> Placed | None:
    """The statement that evaluates a condition; None for one within the atomic's own statement."""
    for placed in stage.program.statements:
        stmt = placed.stmt
        if isinstance(stmt, If) and stmt.condition is condition and condition.op != "var":
            return placed
        if isinstance(stmt, Bind) and condition.op == "var" and stmt.var.uid == condition.uid:
            return placed
    return None


def _moving_ends(stage: Stage, site: Site) -> Iterator[str]:
    """Memory that a loop around a site writes, and that its bounds are read from."""
    for axis in site.scope.axes:
        if axis.kind not in ("block", "thread"):
            for load in (*_read(axis.start), *_read(axis.extent)):
                if any(axis in w.scope.axes for w in _writes(stage, load)):
                    yield _root(stage, load)


def _writes(stage: Stage, load: Expr) -> list[Placed]:
    """The statements that may write the element that is read."""
    return [w for w in stage.reader.writes_to(_root(stage, load)) if not _is_elsewhere(w, load)]


def _is_elsewhere(write: Placed, load: Expr) -> bool:
    """Whether a store is to an element of another constant index."""
    if not isinstance(write.stmt, Store) or len(write.stmt.indices) != len(load.args):
        return False
    pairs = zip(write.stmt.indices, load.args, strict=True)
    return any(a.op == b.op == "int" and a.value != b.value for a, b in pairs)
