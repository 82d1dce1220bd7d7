"""Tell how a kernel uses the tiles that its pipelines load: not at all, or where TileLang does not see it."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from tlcheck.fuzz.constructs import SCANS

if TYPE_CHECKING:
    from tlcheck.fuzz.traits import KernelTraits, PlacedStatement


def viewed(t: KernelTraits) -> bool:
    """Whether a pipeline loads a tile of which the kernel has a view."""
    loaded = {name for place in t.pipelines for name in _loaded(t, place)}
    for node in (n for p in t.all for head in p.heads for n in ast.walk(head)):
        match node:
            case ast.Call(func=ast.Attribute(attr="reshape" | "view"), args=[ast.Name(id=name), *_]) if name in loaded:
                return True
    return False


def asked_for(t: KernelTraits) -> bool:
    """Whether a condition in a pipeline reads a tile that the pipeline loads."""
    for place in t.pipelines:
        loaded = _loaded(t, place)
        if any(isinstance(p.stmt, (ast.If, ast.While)) and p.names & loaded for p in t.inside(place)):
            return True
    return False


def scanned(t: KernelTraits) -> bool:
    """Whether a step of a pipeline makes running sums, or maxima, of a tile that it loads."""
    for place in t.pipelines:
        loaded = _loaded(t, place)
        if any(p.name in SCANS and p.names & loaded for p in t.inside(place)):
            return True
    return False


def unread_by_steps(t: KernelTraits) -> bool:
    """Whether a pipeline loads a tile that no step of it reads."""
    bodies = (t.inside(place) for place in t.pipelines)
    return any(_loads(t, p) and not any(q.reads(p.written) for q in body) for body in bodies for p in body)


def stored_by_steps(t: KernelTraits) -> bool:
    """Whether a step of a pipeline stores elements of shared memory."""
    stored = (p.written for n in t.pipelines for p in t.inside(n) if isinstance(p.stmt, ast.Assign))
    return any(t.scopes.get(name) == "shared" for name in stored)


def never_read(t: KernelTraits) -> bool:
    """Whether a pipeline loads a tile that neither a step of it nor a later statement reads."""
    for place in t.pipelines:
        body, (_, after) = t.inside(place), t.parted(place)
        if any(_loads(t, p) and not any(q.reads(p.written) for q in (*body, *after)) for p in body):
            return True
    return False


def used_after(t: KernelTraits) -> bool:
    """Whether a pipeline sets a tile of shared memory that a statement after the pipeline uses, and none before."""
    for place in t.pipelines:
        before, after = t.parted(place)
        used = {name for p in after for name in (*p.names, p.written)}
        used -= {name for p in before if not p.name.startswith("alloc") for name in (*p.names, p.written)}
        body = [p for p in t.inside(place) if not p.name.startswith("alloc")]
        if any(t.scopes.get(p.written) == "shared" and p.written in used for p in body):
            return True
    return False


def begins_late(t: KernelTraits) -> bool:
    """Whether no constant says at which step a pipeline begins."""
    calls = (t.all[place].call for place in t.pipelines)
    return any(c is not None and len(c.args) > 1 and not isinstance(c.args[0], ast.Constant) for c in calls)


def _loads(t: KernelTraits, p: PlacedStatement) -> bool:
    """Whether a statement copies a part of something into a buffer, or elements of a tensor to shared memory."""
    stores = isinstance(p.stmt, ast.Assign) and t.scopes.get(p.written) == "shared"
    return p.is_load or (stores and any(t.scopes.get(name) == "global" for name in p.names))


def _loaded(t: KernelTraits, place: int) -> set[str]:
    return {p.written for p in t.inside(place) if p.is_load and t.scopes.get(p.written) == "shared"}
