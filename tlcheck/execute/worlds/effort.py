"""Find what a kernel takes to execute, in statements and bytes, as far as that is known before it runs."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from tlcheck.execute.memory.plain import evaluated
from tlcheck.execute.memory.values import kind_of
from tlcheck.execute.stops import NotModelled
from tlcheck.execute.worlds.budget import Budget
from tlcheck.program.early_exits import leaving
from tlcheck.signatures.signature import Leaves
from tlcheck.snapshot.ir import Alloc, Bind, For, Function, Stmt, While
from tlcheck.snapshot.walk import children, statements


def statements_needed(function: Function, sizes: Mapping[str, int | float]) -> int:
    """Return how many statements a block executes at least: loops that may break, or of unknown bounds, count once."""
    return _count(function.body, dict(sizes))


def _count(stmt: Stmt, values: dict[str, Any]) -> int:
    if isinstance(stmt, Bind):
        with suppress(NotModelled):
            values[str(stmt.var.value)] = evaluated(stmt.value, values)
    inner = sum(_count(s, values) for s in children(stmt))
    if isinstance(stmt, For) and stmt.kind != "parallel":
        try:
            extent = max(int(evaluated(stmt.extent, values)), 0)
        except NotModelled:
            return inner
        return (min(extent, 1) if _breaks(stmt.body) else extent) * max(inner, 1)
    return max(inner, 1)


def _breaks(stmt: Stmt) -> bool:
    """Whether threads may leave the loop of this body early, or the kernel."""
    if isinstance(stmt, (For, While)):
        return any(leaving(inner) is Leaves.KERNEL for inner in statements(stmt))
    return leaving(stmt) in (Leaves.LOOP, Leaves.KERNEL) or any(map(_breaks, children(stmt)))


def is_open(function: Function) -> bool:
    """Whether a block may execute much more than `statements_needed` says: it has a loop that ends when it ends."""
    loops = [stmt for stmt in statements(function.body) if isinstance(stmt, (For, While))]
    return any(isinstance(loop, While) or _breaks(loop.body) for loop in loops)


def worlds_that_fit(function: Function, threads: int, source: bool, budget: Budget, wanted: int) -> int:
    """Return how many worlds fit into the bytes, at most `wanted`; 0 if not even one does."""
    each = 0
    for stmt in statements(function.body):
        if isinstance(stmt, Alloc):
            each += _cells(stmt, threads, source) * 9
    return min(wanted, budget.bytes // 2 // max(each, 1))


def _cells(stmt: Alloc, threads: int, source: bool) -> int:
    count = 1
    for e in stmt.buffer.shape:
        count *= int(e.value) if e.op == "int" and isinstance(e.value, int) else 1
    local = stmt.buffer.scope.startswith("local") and not (source and stmt.buffer.scope == "local.fragment")
    if stmt.buffer.dtype == "uint8" and stmt.buffer.scope.startswith("shared"):
        return count // 2
    return count * (threads if local else 1) * max(1, kind_of(stmt.buffer.dtype).bits // 64)
