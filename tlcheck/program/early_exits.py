"""Find where some threads of a block leave a loop, or the kernel, and what those that left do not reach any more."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tlcheck.program.divergence import deciding
from tlcheck.program.walk import Guard
from tlcheck.signatures.signature import Leaves
from tlcheck.signatures.table import signature_of
from tlcheck.snapshot.ir import Evaluate, Expr, For, Function, If, Stmt, While
from tlcheck.snapshot.walk import statements, with_surroundings


@dataclass(frozen=True, slots=True, eq=False)
class EarlyExit:
    """A place where some threads of a block leave.

    guards: the conditions under which they do; None where a loop around has a part in it.
    behind, again: the statements that they miss, by identity: those behind it, and those of later steps of a loop.
    lines: the first and the last line of these; 0 where none is known.
    """

    guards: tuple[Guard, ...] | None
    behind: frozenset[int]
    again: frozenset[int]
    lines: tuple[int, int]

    def misses(self, stmt: Stmt) -> bool:
        """Whether threads that left do not reach a statement, at least not any more."""
        return id(stmt) in self.behind or id(stmt) in self.again


def early_exits(function: Function, differs: Callable[[Expr], bool]) -> tuple[EarlyExit, ...]:
    """The places in a function, in order. differs: whether an expression may differ between the threads of a block."""
    found: list[EarlyExit] = []
    for stmt, around in with_surroundings(function.body):
        leaves = leaving(stmt)
        if leaves is None:
            continue
        divides = any(differs(e) for outer in around for e in deciding(outer))
        if divides or any(exit_.misses(stmt) for exit_ in found):
            found.append(_exit(function, leaves, stmt, around))
    return tuple(found)


def leaving(stmt: Stmt) -> Leaves | None:
    """Return what the threads that execute a statement leave; None for nothing."""
    signature = signature_of(stmt.value) if isinstance(stmt, Evaluate) else None
    return None if signature is None else signature.leaves


def _exit(function: Function, leaves: Leaves, stmt: Stmt, around: Sequence[Stmt]) -> EarlyExit:
    loops = [outer for outer in around if isinstance(outer, (For, While))]
    left = function.body if leaves is Leaves.KERNEL or not loops else loops[-1]
    inside = list(statements(left))
    behind = inside[next(n for n, each in enumerate(inside) if each is stmt) + 1 :]
    repeated = {Leaves.KERNEL: loops[:1], Leaves.LOOP: loops[-1:], Leaves.ITERATION: []}[leaves]
    again = [each for loop in repeated for each in statements(loop)]
    lines = [each.line for each in (*behind, *again) if each.line]
    inner = (*around[1:], stmt)
    guards = [Guard(o.condition, o.then is i) for o, i in zip(around, inner, strict=True) if isinstance(o, If)]
    return EarlyExit(
        None if loops else tuple(guards),
        frozenset(map(id, behind)),
        frozenset(map(id, again)),
        (min(lines, default=0), max(lines, default=0)),
    )
