"""Find what an author may not have meant, and is no fault: indices that leave a tensor, elements that no block writes,
a wait for copies in a kernel that begins none.

TileLang guards every plain access of a tensor: one out of bounds reads 0, or the tensor's safe value, and a store is
dropped. A tail, where the last block is larger than what is left, relies on that. A statement is a warning where the
index is negative, or begins within a tile and goes beyond the end; where it stores a 0 that was read out of bounds; and
where it drops what it has read in bounds at an index of the same variables.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from tlcheck.execute.compare.faults import STRAY, UNWRITTEN, WAIT, Fault
from tlcheck.execute.memory.plain import evaluated
from tlcheck.execute.memory.state import Origin
from tlcheck.execute.observe.races import Access
from tlcheck.execute.observe.tensor_exits import TensorExit
from tlcheck.execute.schedule.launches import threads_of
from tlcheck.execute.stops import NotModelled
from tlcheck.execute.worlds.coverage import unwritten
from tlcheck.program.steering import Steering
from tlcheck.signatures.calls import name_of_call
from tlcheck.signatures.control import thread_axis
from tlcheck.signatures.signature import Completion
from tlcheck.signatures.table import signature_of
from tlcheck.snapshot.ir import Bind, Block, Evaluate, Expr, For, Function, Stmt, Store, Thread
from tlcheck.snapshot.walk import expressions, postorder, statements
from tlcheck.witness import indexed, shaped

_GUARDED = "TileLang guards accesses of tensors: it reads 0 out of bounds, and drops what is stored there"
REPAIRED = "as TileLang lowers it, the barrier waits for none of the threads that do not take the branch"
_OVER = "the wait is over at once"
_PERHAPS = "elements that no block writes keep what the tensor held before"


def suspicious(stmts: frozenset[Stmt] | set[Stmt]) -> bool:
    """Whether any of these statements, which leave a tensor, has a plain index."""
    return any(not isinstance(stmt, Evaluate) for stmt in stmts)


def exits_of(function: Function, found: Sequence[TensorExit], sizes: Mapping[str, Any], given: bool) -> Iterator[Fault]:
    """The warnings of accesses that leave a tensor."""
    steering, origin = Steering(function), _Origin(function, sizes)
    safe = {pointer.uid for s in statements(function.body) if isinstance(s, Block) for pointer, _ in s.safe_values}
    relied = {buffer.name for buffer in function.buffers if buffer.data.uid in safe}
    for left in found:
        stmt = left.stmt
        if isinstance(stmt, Evaluate) or left.buffer in relied or not (given or steering.is_fixed(stmt)):
            continue
        if not _is_wrong(left, origin):
            continue
        element = indexed(left.buffer, left.index)
        then = "what is stored there is dropped" if left.stores else "0 is read there"
        what = f"{element} is out of bounds, so that {then}: {shaped(left.buffer, left.extent)}"
        kind = "store to" if left.stores else "read of"
        iterating = any(isinstance(s, For) and s.kind == "parallel" for s in steering.around(stmt))
        by = f" by iteration {left.lane} of T.Parallel" if iterating else ""
        act = Access(f"{kind} {element}{by}", "", left.block, -1 if iterating else left.lane, Origin(stmt))
        yield Fault(STRAY, left.buffer, stmt.line, what, left.index, act, warning=_GUARDED)


def unwritten_of(function: Function, sizes: Mapping[str, int], begun: Collection[str] | None = None) -> Iterator[Fault]:
    """The warnings of outputs that no block of the grid writes in full.

    begun: the outputs whose content before the kernel does not matter, as a case says; None for all.
    """
    for gap in unwritten(function, sizes):
        if begun is not None and str(gap.buffer.data.value) not in begun:
            continue
        name, element = gap.buffer.name, indexed(gap.buffer.name, gap.index)
        others = f"nor at least {gap.count - 1:,} others of the {gap.every:,} elements of {name}"
        what = f"no block of the grid writes {element}, {others}"
        what = what if gap.count > 1 else f"no block of the grid writes {element}"
        line = 0 if gap.stmt is None else gap.stmt.line
        act = Access(f"store to {name} that reaches other elements", "", (0, 0, 0), -1, Origin(gap.stmt))
        yield Fault(UNWRITTEN, name, line, what, gap.index, act, warning=_PERHAPS)


def idle_waits_of(function: Function) -> Iterator[Fault]:
    """The warnings of waits for groups of copies in a kernel that begins no copy of which it could wait for the end."""
    calls = [s for s in statements(function.body) if isinstance(s, Evaluate)]
    waits = [s for s in calls if _awaits_copies(s.value)]
    others = [name_of_call(s.value) for s in calls if s not in waits]
    if any("async" in name or "commit" in name for name in others):
        return
    for stmt in waits:
        name = name_of_call(stmt.value)
        what = "this wait waits for nothing: the kernel begins no asynchronous copy"
        act = Access(f"T.{name} that waits for nothing", "", (0, 0, 0), -1, Origin(stmt))
        yield Fault(WAIT, f"T.{name}", stmt.line, what, (), act, warning=_OVER)


def _awaits_copies(call: Expr) -> bool:
    signature = signature_of(call)
    return signature is not None and signature.awaits is Completion.CP_ASYNC_GROUP


def _is_wrong(left: TensorExit, origin: _Origin) -> bool:
    """Whether it is no tail."""
    stmt = left.stmt
    into_tensor = isinstance(stmt, Store) and stmt.buffer.scope == "global"
    if into_tensor and not left.stores:
        return left.mixed
    axis = next((n for n, (i, size) in enumerate(zip(left.index, left.extent, strict=True)) if not 0 <= i < size), 0)
    uses = [indices for name, indices in _plain(stmt, left.stores) if name == left.buffer]
    if left.stores and left.others:
        leaving = {v.uid for indices in uses if axis < len(indices) for v in _variables(indices[axis])}
        kept = [
            {v.uid for i in indices for v in _variables(i)}
            for name, indices in _plain(stmt, stores=False)
            if name in left.others
        ]
        if any(leaving <= variables for variables in kept):
            return True
    if left.index[axis] < 0:
        return True
    return bool(uses) and all(axis < len(indices) and origin.is_missed(indices[axis]) for indices in uses)


def _plain(stmt: Stmt, stores: bool) -> Iterator[tuple[str, Sequence[Expr]]]:
    """The plain accesses of a statement, by the buffer's name, with their indices."""
    if stores and isinstance(stmt, Store):
        yield stmt.buffer.name, stmt.indices
    if not stores:
        for e in postorder(expressions(stmt)):
            if e.op == "load" and e.buffer is not None:
                yield e.buffer.name, e.args


def _variables(index: Expr) -> Iterator[Expr]:
    return (e for e in postorder([index]) if e.op == "var")


class _Origin:
    """Indices where the variables of loops, threads and blocks, known by name, are at their first value."""

    def __init__(self, function: Function, sizes: Mapping[str, Any]) -> None:
        self._function, self._sizes = function, sizes
        self._threads = threads_of(function)
        self.extents: dict[str, int] = {}
        self._values = self._made({})
        self._further: dict[str, dict[str, Any]] = {}

    def is_missed(self, index: Expr) -> bool:
        """Whether an index begins after element 0, and not with a whole tile: other statements access what is before.

        A tile is what the variable runs over that goes from element to element.
        """
        with suppress(NotModelled, TypeError):
            first = int(evaluated(index, self._values))
            tiles = [extent for name, extent in self.extents.items() if self._at(index, name) == first + 1]
            return first > 0 and not any(first % tile == 0 for tile in tiles if tile > 1)
        return False

    def _at(self, index: Expr, name: str) -> int:
        """The index where one variable has gone a step."""
        if name not in self._further:
            self._further[name] = self._made({name: 1})
        return int(evaluated(index, self._further[name]))

    def _made(self, steps: Mapping[str, int]) -> dict[str, Any]:
        """The first value of each variable, and of what is computed from these. steps: beyond it."""
        found = dict(self._sizes)
        for stmt in statements(self._function.body):
            if not isinstance(stmt, (Thread, For, Bind)):
                continue
            name = str(stmt.var.value)
            try:
                found[name] = self._first(stmt, name, found) + steps.get(name, 0)
            except NotModelled:
                found.pop(name, None)
        return found

    def _first(self, stmt: Thread | For | Bind, name: str, found: Mapping[str, Any]) -> Any:
        if isinstance(stmt, Bind):
            axis = thread_axis(stmt.value)
            if axis is None:
                return evaluated(stmt.value, found)
            self.extents[name] = self._threads[axis]
            return 0
        self.extents[name] = int(evaluated(stmt.extent, found))
        return 0 if isinstance(stmt, Thread) else evaluated(stmt.start, found)
