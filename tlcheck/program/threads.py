"""Find which threads run a statement, as far as its guards compare a variable with constants."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from tlcheck.program.walk import Guard, Placed, Program, expressions, subexpressions
from tlcheck.snapshot.ir import Expr, Store
from tlcheck.snapshot.operators import MIRRORED, OPPOSITE, ORDER


def narrowed(guards: Iterable[Guard], is_it: Callable[[Expr], bool], low: int, high: int) -> tuple[int, int]:
    """The part of a variable's range that guards of the form `variable < constant` leave: a branch of warps.

    is_it: whether an expression is that variable.
    """
    for guard in guards:
        for op, left, right in _comparisons(guard.condition, guard.holds):
            if left.op == "var" and right.op == "int" and is_it(left):
                value = int(right.value or 0)
                if op in ("ge", "gt"):
                    low = max(low, value + (op == "gt"))
                else:
                    high = min(high, value - (op == "lt"))
    return low, high


def first_threads(program: Program) -> dict[str, int]:
    """Root -> the first thread that touches it, for memory that only a branch of the later threads touches."""
    firsts = [(placed, _first_thread(placed)) for placed in program.statements]
    if not any(first for _, first in firsts):
        return {}
    found: dict[str, int] = {}
    for placed, first in firsts:
        loads = [e for value in expressions(placed.stmt) for e in subexpressions(value) if e.op == "load"]
        buffers = [e.buffer for e in loads if e.buffer is not None]
        if isinstance(placed.stmt, Store):
            buffers.append(placed.stmt.buffer)
        for root in {program.roots.of(b.data) for b in buffers}:
            found[root] = min(first, found.get(root, first))
    return {root: first for root, first in found.items() if first}


def _first_thread(placed: Placed) -> int:
    uids = {a.var.uid for a in placed.scope.axes if a.tag == "threadIdx.x"}
    return narrowed(placed.scope.guards, lambda e: e.uid in uids, 0, 0)[0] if placed.scope.guards else 0


def _comparisons(condition: Expr, holds: bool) -> Iterator[tuple[str, Expr, Expr]]:
    """The order relations that a condition is a conjunction of, each with a constant on the right where it has one."""
    op = condition.op
    if op == "not":
        yield from _comparisons(condition.args[0], not holds)
    elif (op == "and" and holds) or (op == "or" and not holds):
        for part in condition.args:
            yield from _comparisons(part, holds)
    elif op in ORDER:
        left, right = condition.args
        op = op if holds else OPPOSITE[op]
        yield (op, left, right) if left.op != "int" else (MIRRORED[op], right, left)
