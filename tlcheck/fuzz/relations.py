"""Tell how two statements of a kernel stand to each other, and what is to be known of one: for the known findings."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping

from tlcheck.fuzz.traits import KernelTraits, PlacedStatement, is_of_block, is_short


def relations(text: str, line: int, other: int) -> tuple[str, ...]:
    """Return how the statements on two lines stand to each other; nothing where there are none."""
    kernel = KernelTraits(text, line)
    one, second = kernel.at(line), kernel.at(other)
    if one is None or second is None:
        return ()
    return tuple(name for name, holds in _RELATIONS.items() if holds(kernel, one, second))


def remarks(text: str, line: int) -> tuple[str, ...]:
    """Return what is to be known of the statement on a line."""
    kernel = KernelTraits(text, line)
    found = kernel.at(line)
    return tuple(name for name, holds in _REMARKS.items() if found is not None and holds(kernel, found))


def _has_partly_loaded(t: KernelTraits, p: PlacedStatement) -> bool:
    """Whether a statement of a pipeline has a tile that only some of its steps load."""
    bodies = [t.inside(place) for place in t.pipelines if t.all[place].stmt in p.around]
    loads = [q for body in bodies for q in body if q.is_load and isinstance(q.around[-1], ast.If)]
    return any(q.written in p.names and t.scopes.get(q.written) == "shared" for q in loads)


def _common(one: PlacedStatement, other: PlacedStatement, *kinds: type[ast.stmt]) -> bool:
    return any(isinstance(s, kinds) for s in one.around if s in other.around)


def _between(t: KernelTraits, one: PlacedStatement, other: PlacedStatement) -> bool:
    """Whether a loop that some blocks skip stands between two statements."""
    first, last = sorted((one, other), key=lambda p: p.stmt.lineno)
    loops = [p.stmt for p in t.all if is_of_block(p)]
    around = (*first.around, *last.around)
    return any(first.stmt.lineno < s.lineno < last.stmt.lineno and s not in around for s in loops)


def _on_both_sides(t: KernelTraits, one: PlacedStatement, other: PlacedStatement) -> bool:
    """Whether one of two statements stands before a pipeline, and the other one behind it."""
    first, last = sorted((one, other), key=lambda p: p.stmt.lineno)
    loops = [t.all[n].stmt for n in t.pipelines]
    return any(first.stmt.lineno < s.lineno and (s.end_lineno or 0) < last.stmt.lineno for s in loops)


def _apart(one: PlacedStatement, other: PlacedStatement) -> bool:
    """Whether a branch has one of the two alone, or each of its parts has one."""
    branches = {s for p in (one, other) for s in p.around if isinstance(s, ast.If)}
    return any(_side(one, s) != _side(other, s) for s in branches)


def _branches_on_own(t: KernelTraits, one: PlacedStatement, other: PlacedStatement) -> bool:
    """Whether the condition of a branch reads what is written in it: of the read only a loop around may be known."""
    branches = [s for s in {*one.around, *other.around} if isinstance(s, ast.If)]
    if any(s in (one.stmt, other.stmt) for s in branches):
        return True
    inner = one if other.stmt in one.around else other if one.stmt in other.around else one if one is other else None
    if inner is None:
        return False
    written = {p.written for p in t.all if p is inner or inner.stmt in p.around} - {""}
    return any(_asks(s, name) for s in branches for name in written)


def _barriers_between(t: KernelTraits, one: PlacedStatement, other: PlacedStatement) -> bool:
    """Whether a branch that fills shared memory, and so has a barrier, stands on the way from one to the other.

    The other may be in a later step of a loop, or in the other part of the branch. One may be in the first part, if the
    second has the barrier.
    """
    first, last = sorted((one, other), key=lambda p: p.stmt.lineno)
    loops = [s for s in first.around if s in last.around and isinstance(s, (ast.For, ast.While))]
    for place, branch in ((n, p.stmt) for n, p in enumerate(t.all) if isinstance(p.stmt, ast.If)):
        if not _fills_shared(t, t.inside(place)):
            continue
        sides = {_side(p, branch) for p in (one, other)}
        between = first.stmt.lineno < branch.lineno < last.stmt.lineno and sides in ({0}, {0, 2})
        repeats = any(loop.lineno < branch.lineno <= (loop.end_lineno or 0) for loop in loops)
        leaves = _side(first, branch) == 1 and _fills_shared(t, [p for p in t.inside(place) if _side(p, branch) == 2])
        if between or (repeats and sides == {0}) or (leaves and _side(last, branch) == 0):
            return True
    return False


def _fills_shared(t: KernelTraits, inside: Iterable[PlacedStatement]) -> bool:
    filled = (p for p in inside if not p.name.startswith("alloc"))
    return any(t.scopes.get(p.written) == "shared" or p.name == "gemm" for p in filled)


def _asks(branch: ast.If, name: str) -> bool:
    return any(isinstance(n, ast.Name) and n.id == name for n in ast.walk(branch.test))


def _side(p: PlacedStatement, branch: ast.If) -> int:
    """0 outside of a branch, 1 where its condition holds, 2 where it does not."""
    if branch not in p.around:
        return 0
    inner = (*p.around, p.stmt)
    return 1 if inner[inner.index(branch) + 1] in branch.body else 2


_REMARKS: Mapping[str, Callable[[KernelTraits, PlacedStatement], bool]] = {
    "of a pipeline with fewer steps than stages": lambda t, p: any(
        is_short(t.all[place]) for place in t.pipelines if t.all[place].stmt in p.around
    ),
    "of a tile that some steps load": _has_partly_loaded,
}
_RELATIONS: Mapping[str, Callable[[KernelTraits, PlacedStatement, PlacedStatement], bool]] = {
    "in a later step": lambda t, one, other: other.stmt.lineno > one.stmt.lineno,
    "both in a while loop": lambda t, one, other: _common(one, other, ast.While),
    "both in a loop": lambda t, one, other: _common(one, other, ast.For),
    "a branch apart": lambda t, one, other: _apart(one, other),
    "a condition and its branch": _branches_on_own,
    "a loop of a block between": _between,
    "a branch of a block between": _barriers_between,
    "on both sides of a pipeline": _on_both_sides,
    "both before a pipeline": lambda t, one, other: any(
        max(one.stmt.lineno, other.stmt.lineno) < t.all[n].stmt.lineno for n in t.pipelines
    ),
}
