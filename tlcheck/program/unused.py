"""Statements whose result nothing uses: a compiler drops them, with what they read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache

from tlcheck.program.observed import named
from tlcheck.snapshot.ir import Bind, Expr, Function, Stmt, Store
from tlcheck.snapshot.walk import expressions, statements


@lru_cache(maxsize=16)
def unused(function: Function) -> frozenset[Stmt]:
    """The stores into registers that reach no memory, no condition, no index and no call."""
    kept = values_of(function)
    live = live_registers(statements(function.body), kept)
    return frozenset(s for s, uid in kept.items() if uid not in live and isinstance(s, Store))


def live_registers(run: Iterable[Stmt], values: Mapping[Stmt, int], handed: Iterable[Expr] = ()) -> set[int]:
    """Return the numbers of the registers that reach a memory, a condition, an index or a call in these statements.

    values: see `values_of`. handed: further expressions whose registers count.
    """
    own = list(run)
    kept = {s: values[s] for s in own if s in values}
    roots = [e for s in own for e in (expressions(s) if s not in kept else s.indices if isinstance(s, Store) else ())]
    roots += handed
    live = {s.var.uid for s in own if isinstance(s, Bind)} - set(kept.values())  # other names of memory
    while len(live) < len(live := live | set(named(roots))):
        roots += [s.value for s, uid in kept.items() if uid in live and isinstance(s, (Store, Bind))]
    return live


def values_of(function: Function) -> dict[Stmt, int]:
    """The statements that give a register a value, each with the register's number."""
    every = list(statements(function.body))
    kept: dict[Stmt, int] = {}
    kept |= {s: s.buffer.data.uid for s in every if isinstance(s, Store) and s.buffer.scope.startswith("local")}
    return kept | {s: s.var.uid for s in every if isinstance(s, Bind) and s.var.dtype != "handle"}
