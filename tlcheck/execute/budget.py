"""What an execution may take, in statements and bytes: counted, so that it is the same on every machine."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from tlcheck.execute.plain import evaluated
from tlcheck.execute.reasons import NotModelled
from tlcheck.execute.values import kind_of
from tlcheck.snapshot.ir import Alloc, Bind, For, Function, Stmt
from tlcheck.snapshot.walk import children, statements


@dataclass(frozen=True, slots=True)
class Budget:
    """statements: of one run at one level; a statement takes some 50 microseconds. bytes: of the machine's memory.

    seconds: of the processor, for all runs of one execution: a backstop, which the others should make needless.
    work: statements of all threads of a run as lowered, of which a million take 0.1 to 0.3 s. With more, fewer of the
    usual blocks run, and not each of them with all seeds. None for any.
    """

    statements: int = 400_000
    bytes: int = 1 << 31
    seconds: float = 600.0
    work: int | None = 1 << 24


_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
_BUDGET = re.compile(r"(?P<statements>\d+)(,(?P<bytes>\d+)(?P<unit>[KMG]?))?", re.IGNORECASE)


def parsed(text: str) -> Budget:
    """`STATEMENTS` or `STATEMENTS,BYTES`, such as `4000000,8G`. Raises ValueError."""
    found = _BUDGET.fullmatch(text.strip())
    if found is None or not int(found["statements"]) or found["bytes"] == "0":
        raise ValueError(f"{text!r} is no budget: give STATEMENTS or STATEMENTS,BYTES, such as 4000000,8G")
    budget = Budget(statements=int(found["statements"]))
    if found["bytes"] is None:
        return budget
    return replace(budget, bytes=int(found["bytes"]) * _UNITS[found["unit"].upper()])


def statements_needed(function: Function, sizes: Mapping[str, int | float]) -> int:
    """At least how many statements a block executes: loops whose bounds are not known count once."""
    return _count(function.body, dict(sizes))


def _count(stmt: Stmt, values: dict[str, Any]) -> int:
    if isinstance(stmt, Bind):
        with suppress(NotModelled):
            values[str(stmt.var.value)] = evaluated(stmt.value, values)
    inner = sum(_count(s, values) for s in children(stmt))
    if isinstance(stmt, For) and stmt.kind != "parallel":
        try:
            return max(int(evaluated(stmt.extent, values)), 0) * max(inner, 1)
        except NotModelled:
            return inner
    return max(inner, 1)


def worlds_that_fit(function: Function, threads: int, written: bool, budget: Budget, wanted: int) -> int:
    """How many worlds fit into the bytes, at most `wanted`; 0 if not even one does."""
    each = 0
    for stmt in statements(function.body):
        if isinstance(stmt, Alloc):
            each += _cells(stmt, threads, written) * 9
    return min(wanted, budget.bytes // 2 // max(each, 1))


def _cells(stmt: Alloc, threads: int, written: bool) -> int:
    count = 1
    for e in stmt.buffer.shape:
        count *= int(e.value) if e.op == "int" and isinstance(e.value, int) else 1
    local = stmt.buffer.scope.startswith("local") and not (written and stmt.buffer.scope == "local.fragment")
    if stmt.buffer.dtype == "uint8" and stmt.buffer.scope.startswith("shared"):
        return count // 2
    return count * (threads if local else 1) * max(1, kind_of(stmt.buffer.dtype).bits // 64)
