"""When conditions on memory are evaluated: before or after what they guard has written that memory again.

A comparison takes memory as one instance: a condition that is evaluated twice holds twice. That is so unless what
stands under it writes what it reads. Then both sides have to evaluate it at the same times, as far as that can be told
from where they stand.
"""

from __future__ import annotations

from collections.abc import Iterator

from tlcheck.program.atomics import Site
from tlcheck.program.walk import Axis, Guard, subexpressions
from tlcheck.prove.plans import Comparison, Stage
from tlcheck.snapshot.ir import Expr

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
    """Memory that conditions around a site read and that is written under one of them -> whether it is under each."""
    guards = [(root, guard) for guard in site.scope.guards for root in _read(stage, guard.condition)]
    changed = {(root, guard) for root, guard in guards if _written_under(stage, root, guard)}
    roots = {root for root, _ in changed}
    return frozenset((root, (root, guard) in changed) for root, guard in guards if root in roots)


def _moving_ends(stage: Stage, site: Site) -> Iterator[str]:
    for axis in site.scope.axes:
        if axis.kind not in ("block", "thread"):
            roots = {*_read(stage, axis.start), *_read(stage, axis.extent)}
            yield from sorted(root for root in roots if _written_under(stage, root, axis))


def _read(stage: Stage, e: Expr) -> set[str]:
    return {stage.program.roots.of(p.buffer.data) for p in subexpressions(e) if p.op == "load" and p.buffer is not None}


def _written_under(stage: Stage, root: str, outer: Guard | Axis) -> bool:
    """Whether a statement under a condition or in a loop writes memory."""
    return any(outer in (*w.scope.guards, *w.scope.axes) for w in stage.reader.writes_to(root))
