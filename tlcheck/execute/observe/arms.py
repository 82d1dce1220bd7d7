"""The arms of branches: where threads go different ways at once, no barrier of the block fits between them."""

from __future__ import annotations

from functools import lru_cache

from tlcheck.execute.memory.state import Origin
from tlcheck.snapshot.ir import For, Function, If, Stmt, While
from tlcheck.snapshot.walk import children

_Arms = dict[If, tuple[int, tuple[Stmt, ...]]]  # each branch around a statement: which arm, and the loops around it


@lru_cache(maxsize=16)
def arms_of(function: Function) -> dict[Stmt, _Arms]:
    """The branches around each statement of a function."""
    found: dict[Stmt, _Arms] = {}
    left: list[tuple[Stmt, _Arms, tuple[Stmt, ...]]] = [(function.body, {}, ())]
    while left:
        stmt, arms, loops = left.pop()
        found[stmt] = arms
        inner = (*loops, stmt) if isinstance(stmt, (For, While)) else loops
        for number, child in enumerate(children(stmt)):
            left.append((child, arms | {stmt: (number, loops)} if isinstance(stmt, If) else arms, inner))
    return found


def are_apart(function: Function, one: Origin, other: Origin) -> bool:
    """Whether two statements run in different arms of a branch, in the same iteration of the loops around it."""
    if one.stmt is None or other.stmt is None:
        return False
    every = arms_of(function)
    mine, others = every.get(one.stmt, {}), every.get(other.stmt, {})
    for branch in mine.keys() & others.keys():
        (arm, loops), (another, _) = mine[branch], others[branch]
        if arm != another:
            names = [str(loop.var.value) for loop in loops if isinstance(loop, For)]
            at, then = dict(one.loops), dict(other.loops)
            return len(names) == len(loops) and all(at.get(name) == then.get(name) for name in names)
    return False
