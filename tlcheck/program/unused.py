"""Statements whose result nothing uses: a compiler drops them, with what they read."""

from __future__ import annotations

from functools import lru_cache

from tlcheck.program.observed import named
from tlcheck.snapshot.ir import Bind, Function, Stmt, Store
from tlcheck.snapshot.walk import expressions, statements


@lru_cache(maxsize=16)
def unused(function: Function) -> frozenset[Stmt]:
    """The stores into registers that reach no memory, no condition, no index and no call."""
    every, kept = list(statements(function.body)), values_of(function)
    roots = [e for s in every for e in (expressions(s) if s not in kept else s.indices if isinstance(s, Store) else ())]
    live = {s.var.uid for s in every if isinstance(s, Bind)} - set(kept.values())  # other names of memory
    while len(live) < len(live := live | set(named(roots))):
        roots += [s.value for s, uid in kept.items() if uid in live and isinstance(s, (Store, Bind))]
    return frozenset(s for s, uid in kept.items() if uid not in live and isinstance(s, Store))


def values_of(function: Function) -> dict[Stmt, int]:
    """The statements that give a register a value, each with the register's number."""
    every = list(statements(function.body))
    kept: dict[Stmt, int] = {}
    kept |= {s: s.buffer.data.uid for s in every if isinstance(s, Store) and s.buffer.scope.startswith("local")}
    return kept | {s: s.var.uid for s in every if isinstance(s, Bind) and s.var.dtype != "handle"}
