"""Find the tile operators of a source that only some threads of a block may reach.

TileLang shares a tile operator out among consecutive threads: those of the block, or those that comparisons with
constants around it leave (`ComputeThreadBounds`, src/transform/common/pipeline_utils.h), such as `if tx < 128:` of a
warp group. It knows of no other condition, and of no `T.thread_return`, `T.loop_break` or `continue` before the
operator: threads that do not come leave their share undone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from tlcheck.program.divergence import deciding, differing
from tlcheck.program.early_exits import EarlyExit, early_exits
from tlcheck.program.launch import MOST_THREADS
from tlcheck.program.roles import READ, WRITE, accesses
from tlcheck.program.threads import narrowed
from tlcheck.program.walk import Guard, declared_threads
from tlcheck.signatures.calls import name_of_call
from tlcheck.signatures.control import thread_axis
from tlcheck.snapshot.arrays import ArrayNumbers
from tlcheck.snapshot.ir import Bind, Evaluate, Expr, For, Function, If, Stmt, Store, Thread
from tlcheck.snapshot.operators import meaning
from tlcheck.snapshot.walk import allocated, children, expressions, postorder, statements

_NAMES = {
    "atomicadd": "T.atomic_add",
    "atomicmax": "T.atomic_max",
    "atomicmin": "T.atomic_min",
    "finalize_reducer_v2": "T.finalize_reducer",
    "gemm_py": "T.gemm",
    "gemm_sp_py": "T.gemm_sp",
}
# Not those that one thread begins, which TileLang elects: T.tma_copy, T.tcgen05_gemm.
_TILES = frozenset(
    (
        *("async_copy", "c2d_im2col", "copy", "cummax", "cumsum", "fill", "finalize_reducer", "gemm", "gemm_sp"),
        *("im2col", "reduce", "transpose", "wgmma_gemm"),
        *_NAMES,
    )
)
_AXES = ("threadIdx.x", "threadIdx.y", "threadIdx.z")
_ARRAYS = ArrayNumbers()
_OF_THREADS = ("local", "local.var")  # scopes of memory that each thread has for itself


@dataclass(frozen=True, slots=True, eq=False)
class PartedTile:
    """A tile operator, or T.Parallel.

    outer: the outermost statement around it of which threads may take different sides; None for none. guards: the
    conditions around it that may differ between threads. loops: the loops around it that may run another number of
    times in each thread. exits: the places where threads may have left before.
    """

    stmt: Stmt
    outer: Stmt | None
    guards: tuple[Guard, ...]
    loops: tuple[Stmt, ...]
    exits: tuple[EarlyExit, ...]

    @property
    def name(self) -> str:
        """The operator as it is written."""
        if not isinstance(self.stmt, Evaluate):
            return "T.Parallel"
        name = name_of_call(self.stmt.value)
        return _NAMES.get(name, f"T.{name}")

    @property
    def line(self) -> int:
        """The line of the source, 0 where it is not known."""
        return next(iter(self.lines), 0)

    @property
    def lines(self) -> list[int]:
        """The lines of its statements."""
        return [stmt.line for stmt in statements(self.stmt) if stmt.line]

    def covers(self, line: int) -> bool:
        """Whether a line is one of the branch or loop that threads take differently, or leave."""
        lines = [] if self.outer is None else [stmt.line for stmt in statements(self.outer) if stmt.line]
        spans = [(min(lines, default=0), max(lines, default=0)), *(each.lines for each in self.exits)]
        return not line or any(first <= line <= last for first, last in spans)


def tiles(function: Function) -> Iterator[Stmt]:
    """Yield all tile operators and T.Parallel of a function; of those within each other the outermost."""
    left = [function.body]
    while left:
        stmt = left.pop()
        if is_tile_call(stmt) or (isinstance(stmt, For) and stmt.kind == "parallel"):
            yield stmt
        else:
            left += reversed(children(stmt))


def is_tile_call(stmt: Stmt) -> bool:
    """Whether a statement is a call that all threads of a block make together."""
    return isinstance(stmt, Evaluate) and stmt.value.op == "call" and name_of_call(stmt.value) in _TILES


@lru_cache(maxsize=16)
def parted_tiles(function: Function) -> tuple[PartedTile, ...]:
    """The tile operators that only some threads may reach, in order; none that change registers of threads alone."""
    differs, scopes = differing(function), _scopes(function)
    exits = early_exits(function, differs)
    return tuple(tile for tile in _found(function.body, differs, exits) if _is_shared(tile.stmt, scopes))


def shared_among(function: Function, tile: PartedTile, threads: int) -> tuple[int, int]:
    """The first and the last thread, of those of a block, among which TileLang shares an operator out."""
    firsts = _first_indices(function)
    guards = [part for guard in tile.guards for part in _as_orders(guard)]
    return narrowed(guards, lambda e: e.uid in firsts, 0, threads - 1)


def is_shifted(function: Function, tile: PartedTile) -> bool:
    """Whether a loop around an operator begins elsewhere in each thread, and runs equally often in all."""
    numbers = _Numbers(function)
    return any(numbers.differ(loop.extent) is False for loop in tile.loops if isinstance(loop, For))


def is_parted_always(function: Function, tile: PartedTile) -> bool:
    """Whether threads that are to do their share never come to an operator, by their numbers alone."""
    numbers = _Numbers(function)
    if any(numbers.differ(loop.extent) for loop in tile.loops if isinstance(loop, For)):
        return True
    reached = numbers.under(tile.guards)
    if reached is None:
        return False
    for exit_ in tile.exits:
        if id(tile.stmt) in exit_.behind and (left := numbers.under(exit_.guards)) is not None:
            reached = reached & ~left
    low, high = shared_among(function, tile, numbers.threads)
    return bool(reached.any()) and not bool(reached[low : high + 1].all())


def uses_any(tile: PartedTile, stmts: Iterable[Stmt]) -> bool:
    """Whether one of these statements is of the operator."""
    own = set(map(id, statements(tile.stmt)))
    return any(id(stmt) in own for stmt in stmts)


def said(name: str, line: int) -> str:
    """Why nothing is known of what an operator does that not all threads reach."""
    return f"as written, not all threads of the block reach {name}" + (f" (line {line})" if line else "")


def written_by(tile: Stmt) -> set[int]:
    """The pointers through which an operator writes."""
    return {uid for uid, writes in _used(tile) if writes}


def read_by(tile: Stmt) -> set[int]:
    """The pointers through which an operator reads."""
    return {uid for uid, writes in _used(tile) if not writes}


def _found(root: Stmt, differs: Callable[[Expr], bool], exits: Iterable[EarlyExit]) -> Iterator[PartedTile]:
    left: list[tuple[Stmt, Stmt | None, tuple[Guard, ...], tuple[Stmt, ...]]] = [(root, None, (), ())]
    while left:
        stmt, outer, guards, loops = left.pop()
        parallel = isinstance(stmt, For) and stmt.kind == "parallel"
        if parallel or is_tile_call(stmt):
            left_at = tuple(each for each in exits if each.misses(stmt))
            if outer is not None or left_at:
                yield PartedTile(stmt, outer, guards, loops, left_at)
            continue
        divides = any(map(differs, deciding(stmt)))
        outer = stmt if outer is None and divides else outer
        loops += (stmt,) if divides and not isinstance(stmt, If) else ()
        for number, child in reversed(list(enumerate(children(stmt)))):
            own = (Guard(stmt.condition, number == 0),) if divides and isinstance(stmt, If) else ()
            left.append((child, outer, guards + own, loops))


def _is_shared(tile: Stmt, scopes: dict[int, str]) -> bool:
    """Whether an operator changes memory that threads share, or share out."""
    return any(scopes.get(uid, "global") not in _OF_THREADS for uid in written_by(tile))


def _scopes(function: Function) -> dict[int, str]:
    return {buffer.data.uid: buffer.scope for buffer in (*function.buffers, *allocated(function.body))}


def _used(tile: Stmt) -> Iterator[tuple[int, bool]]:
    for stmt in statements(tile):
        if isinstance(stmt, Store):
            yield stmt.buffer.data.uid, True
        for root in expressions(stmt):
            for data, mode in accesses(root):
                yield from ((data.uid, bit == WRITE) for bit in (READ, WRITE) if mode & bit)


def _first_indices(function: Function) -> set[int]:
    """The variables that are a thread's index along x."""
    found = {s.var.uid for s in statements(function.body) if isinstance(s, Thread) and s.tag == "threadIdx.x"}
    binds = (s for s in statements(function.body) if isinstance(s, Bind))
    return found | {s.var.uid for s in binds if thread_axis(s.value) == 0}


def _as_orders(guard: Guard) -> Iterable[Guard]:
    """A condition, with an equation as two order relations."""
    condition = guard.condition
    if condition.op == "and" and guard.holds:
        return [part for each in condition.args for part in _as_orders(Guard(each))]
    if condition.op == "eq" and guard.holds:
        return [Guard(Expr(op, "bool", condition.args)) for op in ("ge", "le")]
    return [guard]


class _Numbers:
    """The values of expressions of the threads' numbers, in each thread of a block."""

    def __init__(self, function: Function) -> None:
        self._binds = {s.var.uid: s.value for s in statements(function.body) if isinstance(s, Bind)}
        self._axes: dict[int, int] = {}
        extents = [1, 1, 1]
        for stmt in statements(function.body):
            if isinstance(stmt, Thread) and stmt.tag in _AXES:
                self._axes[stmt.var.uid] = _AXES.index(stmt.tag)
                extents[_AXES.index(stmt.tag)] = _constant(stmt.extent)
        if not self._axes:
            extents = [*map(_constant, declared_threads(function.body)), 1, 1, 1][:3]
        if min(extents) < 1 or prod(extents) > MOST_THREADS:
            extents = [1, 1, 1]  # no block of a device: nothing hangs on its threads
        self.threads = prod(extents)
        x, y, _ = extents
        every = np.arange(self.threads)
        self._indices = every % x, every // x % y, every // (x * y)

    def of(self, e: Expr) -> npt.NDArray[Any] | None:
        """(threads,): its value; None where more than the threads' numbers decide."""
        known: dict[Expr, Any] = {}
        for each in postorder([e]):
            known[each] = self._one(each, [known[a] for a in each.args])
            if known[each] is None:
                return None
        return np.broadcast_to(np.asarray(known[e]), (self.threads,))

    def under(self, guards: Iterable[Guard] | None) -> npt.NDArray[np.bool_] | None:
        """(threads,): whether conditions hold; None where more than the threads' numbers decide."""
        reached = np.ones(self.threads, np.bool_)
        for guard in guards or ():
            held = self.of(guard.condition)
            if held is None:
                return None
            reached &= held.astype(bool) == guard.holds
        return None if guards is None else reached

    def differ(self, e: Expr) -> bool | None:
        """Whether it differs between threads; None where that is not known."""
        value = self.of(e)
        return None if value is None else bool(np.ptp(value))

    def _one(self, e: Expr, args: list[Any]) -> Any:
        if e.op == "int":
            return e.value
        if (axis := thread_axis(e)) is not None:
            return self._indices[axis]
        if e.op == "var":
            return self._indices[self._axes[e.uid]] if e.uid in self._axes else self._bound(e)
        apply = meaning(e, _ARRAYS) if e.op != "load" else None
        return None if apply is None else apply(*args)

    def _bound(self, e: Expr) -> Any:
        value = self._binds.get(e.uid)
        return None if value is None else self.of(value)


def _constant(extent: Expr) -> int:
    return int(extent.value or 1) if extent.op == "int" else 1
