"""Faults of the source itself: a race, an access out of bounds, memory that nothing set, a barrier that some miss, a
promise that does not hold, a wait that never ends.

A fault is the author's. It is refuted where it is there on all inputs, or on the case's own; where it may depend on
inputs that were drawn it is *open*: others may not show it (`program.steering`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import chain
from math import prod
from typing import Any

import numpy as np

from tlcheck.execute.compare.own_layouts import outside
from tlcheck.execute.compile.extents import Signs
from tlcheck.execute.machine_options import ABSENT
from tlcheck.execute.memory.plain import evaluated, index_of
from tlcheck.execute.memory.state import Origin
from tlcheck.execute.observe.foreign_reads import ForeignRead
from tlcheck.execute.observe.races import Access, Contest
from tlcheck.execute.observe.tensor_exits import TensorExit
from tlcheck.execute.observe.tile_threads import PartReached
from tlcheck.execute.observe.uninitialized import UnsetRead
from tlcheck.execute.stops import AbsentLanes, Deadlock, Illegal, NotModelled, Unaligned, Unkept
from tlcheck.execute.worlds.levels import is_of_barrier
from tlcheck.program.atomics import is_atomic
from tlcheck.program.divergence import differing, divergent_calls, divergent_statements
from tlcheck.program.early_exits import early_exits
from tlcheck.program.flow import Flow
from tlcheck.program.negatives import is_constant
from tlcheck.program.roles import accesses, is_address
from tlcheck.program.steering import Steering, barriers_of
from tlcheck.reasons import Reason
from tlcheck.signatures.barriers import is_sync_threads
from tlcheck.signatures.calls import name_of_call
from tlcheck.signatures.control import thread_axis
from tlcheck.signatures.table import signature_of
from tlcheck.snapshot.ir import Bind, Buffer, Evaluate, Expr, For, Function, If, Stmt, Store, Thread, While
from tlcheck.snapshot.walk import allocated, expressions, postorder, statements
from tlcheck.witness import indexed, shaped

RACE, BOUNDS, UNSET, BARRIER = "source-race", "source-bounds", "source-uninitialized", "source-barrier"
PROMISE, WAIT, UNCOMMITTED = "source-promise", "source-wait", "source-uncommitted"
STRAY, UNWRITTEN, ABSENT_LANE = "source-stray", "source-unwritten", "source-absent-lane"
FRAGMENT, PART = "source-fragment", "source-part"
_ON_DRAWN = "on inputs that tlcheck drew: declare `inputs` in the case"
_BLOCK = ("blockIdx.x", "blockIdx.y", "blockIdx.z")
_REDUCTIONS = ("reduce", "finalize_reducer", "finalize_reducer_v2")
_MOST_COUNTED = 1 << 20  # repetitions of a statement whose conditions are looked at
_SYNCED = "statements that only T.sync_threads orders"


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault of the source.

    problem: one of those above. buffer: empty for a barrier; `T.assume` for a promise. line: of the source, 0 where it
    is not known. what: a sentence. index: of the element. first, second: the accesses. open: why it is not refuted,
    empty where it is. reasons: those of undecided outputs and orders that it explains. outputs: those of which nothing
    is known because of it. warning: why it is no error, empty for what is one.
    """

    problem: str
    buffer: str
    line: int
    what: str
    index: tuple[int, ...]
    first: Access
    second: Access | None = None
    open: str = ""
    reasons: frozenset[str] = frozenset()
    outputs: tuple[str, ...] = field(default=())
    warning: str = ""


class Faults:
    """Finds the faults of one function. given: whether its inputs are the case's own."""

    def __init__(self, function: Function, sizes: Any, threads: int, given: bool) -> None:
        self._function, self._sizes, self._threads, self._given = function, sizes, threads, given
        self._steering = Steering(function)
        self._buffers = {b.name: b for b in allocated(function.body)} | {str(b.data.value): b for b in function.buffers}

    def of_race(self, buffer: str, contest: Contest) -> Fault | None:
        """A race of the source with itself. buffer: its name, of a parameter that of its pointer."""
        clash = contest.clash
        if clash is None or clash.own or contest.atomics:
            return None
        found = self._buffers.get(buffer)
        name = buffer if found is None else found.name
        index = self._index(found, clash.index)
        certain = self._is_certain(clash.first, clash.second, found)
        first, second = (clash.first, clash.second) if clash.first is not None else (clash.second, None)
        words = frozenset((contest.words(buffer), contest.words(name)))
        open_to = "" if certain else _ON_DRAWN
        if contest.wait is not None:
            early = f"line {clash.line}" if clash.line else "a later statement"
            what = f"this wait covers no copy: those into {name} are in no group; {early} accesses {name} too early"
            wait = self._made(f"wait that covers no copy into {name}", clash.second.block, -1, contest.wait)
            return Fault(UNCOMMITTED, buffer, contest.wait.line, what, index, wait, None, open_to, words)
        what = f"{contest.who} race for {name}"
        if contest.who == _SYNCED:
            what = f"nothing orders two statements that access {name}: T.sync_threads is missing between them"
        return Fault(RACE, buffer, clash.line, what, index, first, second, open_to, words)

    def of_illegal(
        self, illegal: Illegal, block: tuple[int, int, int], reason: str, *, hangs: bool = False
    ) -> Fault | None:
        """Return what stopped the source; None for what is none of these faults. hangs: the lowered kernel has no end
        too.
        """
        stmt, reasons = illegal.stmt, frozenset((reason,))
        if isinstance(illegal, Unkept):
            return self._of_promise(illegal, block, reason)
        if isinstance(illegal, AbsentLanes):
            return self._of_lanes(illegal, block, reason)
        if isinstance(illegal, Deadlock) and illegal.buffer != "?":
            return self._of_wait(illegal, block, reason) if hangs else None
        if is_of_barrier(illegal):
            missed = self._divergent(stmt)
            if missed is None:
                return None
            fixed = all(self._steering.is_fixed(b) for b in barriers_of(self._function))
            act = self._made(str(illegal), block, illegal.lane, stmt)
            what = (
                "" if self._is_in_branch(missed) else "some threads of the block leave the loop before T.sync_threads"
            )
            return self._missed("T.sync_threads", missed.line, act, fixed, reasons, what)
        if "out of bounds" not in illegal.what and "beyond the end" not in illegal.what:
            return None
        buffer = self._buffers.get(illegal.buffer)
        shaped = buffer is not None and self._steering.depends(buffer.shape)
        fixed = self._given or (self._steering.is_fixed(stmt) and not shaped)
        what, element = illegal.what, ""
        if illegal.index:
            element, what = _out_of_bounds(illegal)
        act = self._made(f"access of {element}" if element else illegal.what, block, illegal.lane, stmt)
        return Fault(
            BOUNDS, illegal.buffer, illegal.line, what, illegal.index, act, None, "" if fixed else _ON_DRAWN, reasons
        )

    def of_stray(self, illegal: Illegal, exits: Sequence[TensorExit], *, guarded: bool) -> Fault | None:
        """The exit of the source where the lowered kernel leaves a tensor, if inputs lead it there; else None.

        TileLang guards what stands in the source, and not every access that it makes of it. guarded: unless the
        author has turned that off, and answers for every exit. exits: of the source.
        """
        for left in exits:
            elsewhere = illegal.line not in (0, left.stmt.line)  # 0: it is not known
            if "out of bounds" not in illegal.what or left.buffer != illegal.buffer or elsewhere:
                continue
            led = self._is_led(left)
            if led or not guarded:
                left = self._on_axes(left)
                element, what = _out_of_bounds(left)
                act = self._made(f"access of {element}", left.block, left.lane, left.stmt)
                open_ = _ON_DRAWN if led and not self._given else ""
                return Fault(BOUNDS, left.buffer, left.stmt.line, what, left.index, act, None, open_)
        return None

    def of_never(self, illegal: Illegal, exits: Sequence[TensorExit], runs: Callable[[Stmt], bool]) -> Fault | None:
        """The index of the source that is out of bounds wherever its statement runs, if the lowered kernel stops there;
        else None. exits: of the source. runs: whether it runs a tile operator.

        TileLang does not guard a constant, and counts a negative index from the end.
        """
        on_chip = (left for left in self._on_chip(illegal) if runs(left.stmt))
        for left in chain(exits, on_chip):
            if left.buffer == illegal.buffer and illegal.line in (0, left.stmt.line) and self._is_never_inside(left):
                left = self._on_axes(left)
                element, what = _out_of_bounds(left)
                act = self._made(f"access of {element}", left.block, left.lane, left.stmt)
                return Fault(BOUNDS, left.buffer, left.stmt.line, what, left.index, act)
        return None

    def _on_chip(self, illegal: Illegal) -> Iterator[TensorExit]:
        """The element of an on-chip buffer that is left, of each tile operator on its line: no run notes these."""
        place = self._buffers.get(illegal.buffer)
        if place is not None and place.scope != "global" and illegal.line and illegal.index:
            for stmt in statements(self._function.body):
                if isinstance(stmt, Evaluate) and stmt.line == illegal.line:
                    where = illegal.index, illegal.extent, illegal.block, illegal.lane
                    yield TensorExit(stmt, illegal.buffer, *where, stores=False)

    def _is_never_inside(self, left: TensorExit) -> bool:
        """Whether an index into the tensor is out of bounds whatever the inputs and sizes are."""
        buffer = self._buffers.get(left.buffer)
        around = [s for s in self._steering.around(left.stmt) if isinstance(s, (For, Thread))]
        extents = [e for s in around for e in expressions(s)]
        if buffer is None or self._steering.depends(extents):
            return False
        signs = Signs(self._function, {})
        for use in _uses(left):
            for index, size in zip(use, buffer.shape, strict=True):
                bounds = None if self._steering.depends((index, size)) else signs.bounds(index)
                if bounds is not None and size.op == "int":
                    least = -int(size.value or 0) if is_constant(index) else 0
                    if np.all(bounds[1] < least) or np.all(bounds[0] >= size.value):
                        return True
        return False

    def _on_axes(self, left: TensorExit) -> TensorExit:
        """The exit by the axes of its tensor: an atomic knows an offset alone."""
        buffer = self._buffers.get(left.buffer)
        if buffer is None or buffer.strides or len(left.index) > 1:
            return left
        with suppress(NotModelled):
            shape = tuple([int(evaluated(e, self._sizes)) for e in buffer.shape])
            row, rest = divmod(left.index[0], prod(shape[1:]))
            return replace(left, index=(row, *map(int, index_of(rest, shape[1:]))), extent=shape)
        return left

    def of_layout(self, illegal: Illegal) -> Fault | None:
        """The layout of the author's that has no place for an element of the buffer that is left; else None."""
        found = outside(self._function, illegal.buffer) if "out of bounds" in illegal.what else None
        if found is None:
            return None
        element, place = indexed(illegal.buffer, found[0]), found[1][0] if len(found[1]) == 1 else list(found[1])
        what = f"T.annotate_layout puts {element} at {place}, before the memory of {illegal.buffer}"
        stmt = next((s for s in statements(self._function.body) if s.line == illegal.line), None)
        act = self._made(f"access of {illegal.buffer}", illegal.block, illegal.lane, stmt)
        return Fault(BOUNDS, illegal.buffer, illegal.line, what, found[0], act)

    def of_atomic(self, left: TensorExit, reason: str) -> Fault:
        """An atomic whose operand leaves a tensor. reason: of outputs that depend on it."""
        return self._of_exit(left, "read of {} by an atomic", reason)

    def of_negative(self, left: TensorExit, reason: str, *, counted: bool) -> Fault:
        """A negative index that TileLang counts from the end of a tensor, or does not. reason: of outputs that depend
        on it.
        """
        fault = self._of_exit(self._on_axes(left), "store to {}" if left.stores else "read of {}", reason)
        then = "TileLang counts a negative index from the end"
        if not counted:
            then = "TileLang counts a negative index from the end only where it can prove its sign"
        return replace(fault, what=f"{fault.what}, and {then}")

    def _of_exit(self, left: TensorExit, act: str, reason: str) -> Fault:
        """The fault of a statement that leaves a tensor. act: with `{}` for the element."""
        element, what = _out_of_bounds(left)
        made = self._made(act.format(element), left.block, left.lane, left.stmt)
        fixed = self._given or self._steering.is_fixed(left.stmt)
        fixed = fixed or (not left.stores and self._steering.reads_always(left.stmt, left.buffer))
        why, reasons = "" if fixed else _ON_DRAWN, frozenset((reason,))
        return Fault(BOUNDS, left.buffer, left.stmt.line, what, left.index, made, None, why, reasons)

    def of_fragment(self, read: ForeignRead, reason: str) -> Fault:
        """A fragment's element that one thread stores and another one reads. reason: of outputs that depend on it."""
        index = self._index(self._buffers.get(read.buffer), (read.element,))
        element = indexed(read.buffer, index)
        who = f"thread {read.lane}" if read.lane >= 0 else "the block"
        what = f"{who} reads {element}, which thread {read.owner} has stored in its own registers"
        first = self._made(f"store to {element}", read.block, read.owner, read.writer)
        second = self._made(f"read of {element}", read.block, read.lane, read.stmt)
        fixed = self._given or all(self._steering.is_fixed(stmt) for stmt in (read.writer, read.stmt))
        line = 0 if read.stmt is None else read.stmt.line
        why, reasons = "" if fixed else _ON_DRAWN, frozenset((reason,))
        return Fault(FRAGMENT, read.buffer, line, what, index, first, second, why, reasons)

    def of_part(self, part: PartReached, reason: Reason) -> Fault:
        """A tile operator that only some threads of the block reach. reason: of what is undecided for it."""
        name, stmt, share = part.tile.name, part.tile.stmt, f"{part.count} of {part.threads} threads"
        what = f"{name} is done by all threads of the block together, and {share} reach it"
        act = self._made(f"{name} that {share} reach", part.block, part.lane, stmt)
        why = "" if self._given or self._steering.runs_always(stmt) else _ON_DRAWN
        return Fault(PART, name, part.tile.line, what, (), act, None, why, frozenset((reason,)))

    def of_absent(self, illegal: Illegal) -> Fault | None:
        """The reduction or exchange that the source has in a branch of some threads, where lanes are absent from it;
        else None.
        """
        if not isinstance(illegal, AbsentLanes):
            return None
        waited = _exchanges(illegal.exchange)
        exchanges = (stmt for stmt in divergent_statements(self._function) if waited & _exchanges(stmt))
        reductions = divergent_calls(self._function, lambda call: name_of_call(call) in _REDUCTIONS)
        what, found = "an exchange within a warp", next(exchanges, None)
        if found is None:
            what, found = "a reduction", next(reductions, None)
        if found is None:
            return None
        act = self._made(str(illegal), (0, 0, 0), illegal.lane, found)
        return self._missed(what, found.line, act, self._steering.runs_always(found))

    def of_unaligned(self, illegal: Illegal) -> Fault | None:
        """The T.tma_copy of the source that is not aligned as lowered, if drawn inputs say where it begins; else None.

        Whoever writes T.tma_copy instead of T.copy answers for the alignment that bulk copies need.
        """
        if self._given or not isinstance(illegal, Unaligned):
            return None
        for stmt in statements(self._function.body):
            if not isinstance(stmt, Evaluate) or name_of_call(stmt.value) != "tma_copy":
                continue
            loads = [e for e in postorder(stmt.value.args[:2]) if e.op == "load" and e.buffer is not None]
            begins = [e.args for e in loads if e.buffer is not None and e.buffer.name == illegal.buffer]
            if illegal.line in (0, stmt.line) and any(self._steering.depends(args) for args in begins):
                act = self._made(illegal.what, (0, 0, 0), illegal.lane, stmt)
                return Fault(BOUNDS, illegal.buffer, stmt.line, illegal.what, (), act, None, _ON_DRAWN)
        return None

    def _is_led(self, left: TensorExit) -> bool:
        """Whether inputs decide about an index that is out of bounds: its value, or how far its loop goes."""
        outside = [
            axis for axis, (i, size) in enumerate(zip(left.index, left.extent, strict=True)) if not 0 <= i < size
        ]
        loops = [s for s in self._steering.around(left.stmt) if isinstance(s, For)]
        led = {s.var.uid for s in loops if self._steering.depends((s.start, s.extent))}
        indices = [use[axis] for use in _uses(left) for axis in outside if axis < len(use)]
        return self._steering.depends(indices) or any(e.uid in led for e in postorder(indices) if e.op == "var")

    def _of_promise(self, promise: Unkept, block: tuple[int, int, int], reason: str) -> Fault:
        """A T.assume or T.device_assert that does not hold: on all inputs if nothing from outside takes part in it."""
        stmt = promise.stmt
        steered = stmt is None or not self._steering.runs_always(stmt) or self._steering.depends(expressions(stmt))
        name = promise.what.split()[0].removesuffix("_with_msg")
        what = f"the condition of {name} does not hold" + ("" if steered else ", whatever the inputs")
        act = self._made(f"{name} that does not hold", block, promise.lane, stmt)
        why = "" if self._given or not steered else _ON_DRAWN
        return Fault(PROMISE, name, promise.line, what, (), act, None, why, frozenset((reason,)))

    def _of_lanes(self, illegal: AbsentLanes, block: tuple[int, int, int], reason: str) -> Fault:
        """An exchange within a warp, whose other lanes wait at a barrier meanwhile."""
        act = self._made(str(illegal), block, illegal.lane, illegal.exchange)
        always = all(self._steering.runs_always(s) for s in (illegal.exchange, *barriers_of(self._function)))
        return self._missed("an exchange within a warp", illegal.line, act, always, frozenset((reason,)))

    def _missed(
        self, waits: str, line: int, act: Access, certain: bool, reasons: frozenset[str] = frozenset(), what: str = ""
    ) -> Fault:
        """A statement that waits for threads that do not come to it. certain: on all inputs. what: why they do not."""
        what = what or f"{waits} stands in a branch that some threads of the block do not take"
        return Fault(BARRIER, "", line, what, (), act, None, "" if self._given or certain else _ON_DRAWN, reasons)

    def _of_wait(self, deadlock: Deadlock, block: tuple[int, int, int], reason: str) -> Fault:
        """A wait for a phase of an mbarrier that nobody completes."""
        what = f"nobody completes the phase of {deadlock.buffer} that is waited for here: a thread {deadlock.what}"
        act = self._made("wait that never ends", block, deadlock.lane, deadlock.stmt)
        why = "" if self._given or self._is_synchronized_alike() else _ON_DRAWN
        return Fault(WAIT, deadlock.buffer, deadlock.line, what, (), act, None, why, frozenset((reason,)))

    def _is_synchronized_alike(self) -> bool:
        """Whether what threads wait for is the same on all inputs."""
        calls = [s for s in statements(self._function.body) if isinstance(s, Evaluate) and _synchronizes(s)]
        return all(self._steering.is_fixed(s) and not self._steering.depends(_numbers(s)) for s in calls)

    def of_unset(self, output: str, reads: Sequence[UnsetRead], reason: str, share: str) -> Fault | None:
        """An output that depends on memory of a block that nothing set. reads: of such memory, in their order. share:
        how much of the output does, in words.
        """
        flow = Flow(self._function, output)
        among = [read for read in reads if read.uid in flow.buffers or read.uid == ABSENT]
        steered = [s for s in flow.writers if not self._steering.is_fixed(s) and not _adds(s)]
        certain = [read for read in among if self._given or (not steered and self._steering.is_fixed(read.stmt))]
        read = next(iter(certain or among), None)
        if read is None:
            return None
        line = 0 if read.stmt is None else read.stmt.line
        index = self._index(self._buffers.get(read.buffer), (read.element,))
        what = f"nothing has set {read.buffer}, which is read here: {share} {self._name(output)} depend on it"
        element = f"read of {indexed(read.buffer, index)}, which nothing has set"
        if read.uid == ABSENT:
            index, element = (), "shuffle from a lane that takes no part"
            what = f"the shuffle reads lanes that take no part: {share} {self._name(output)} depend on it"
        act = self._made(element, read.block, read.lane, read.stmt)
        why, reasons = "" if certain else _ON_DRAWN, frozenset((reason,) if reason else ())
        problem = ABSENT_LANE if read.uid == ABSENT else UNSET
        return Fault(problem, read.buffer, line, what, index, act, None, why, reasons, (output,))

    def with_outputs(self, fault: Fault, reasons: Mapping[str, str]) -> Fault:
        """The fault, which explains outputs that its buffer flows into as well. reasons: why these are undecided."""
        buffer = self._buffers.get(fault.buffer)
        if buffer is None:
            return fault
        into = {name: why for name, why in reasons.items() if buffer.data.uid in Flow(self._function, name).buffers}
        return replace(fault, reasons=fault.reasons | set(into.values()), outputs=(*fault.outputs, *into))

    def _made(self, kind: str, block: tuple[int, int, int], lane: int, stmt: Stmt | None) -> Access:
        around = () if stmt is None else self._steering.around(stmt)
        iterating = any(isinstance(s, For) and s.kind == "parallel" for s in around)
        if iterating and lane >= 0:
            return Access(f"{kind} by iteration {lane} of T.Parallel", "", block, -1, Origin(stmt))
        return Access(kind, "", block, lane, Origin(stmt))

    def _name(self, parameter: str) -> str:
        return self._buffers[parameter].name if parameter in self._buffers else parameter

    def _index(self, buffer: Buffer | None, flat: tuple[int, ...]) -> tuple[int, ...]:
        with suppress(NotModelled):
            shape = [] if buffer is None or buffer.strides else [int(evaluated(e, self._sizes)) for e in buffer.shape]
            if shape and len(flat) == 1 and 0 <= flat[0] < prod(shape):
                return tuple([int(i) for i in index_of(flat[0], shape)])
        return flat

    def _is_certain(self, first: Access | None, second: Access, buffer: Buffer | None) -> bool:
        """Whether two accesses conflict on all inputs."""
        if self._given:
            return True
        if first is None:
            touching = [] if buffer is None else list(_touching(self._function, buffer))
            return bool(touching) and all(self._steering.is_fixed(stmt) for stmt in touching)
        stmts = [first.origin.stmt, second.origin.stmt]
        return all(self._steering.is_fixed(stmt) for stmt in stmts) or self._must_collide(
            *stmts, block=second.block if first.block == second.block else None
        )

    def _must_collide(self, one: Stmt | None, other: Stmt | None, *, block: tuple[int, int, int] | None) -> bool:
        """Whether a statement counts more often than its buffer has elements, wherever its indices lead.

        A count is a constant that is added to or taken from an element, in place. Two threads that never meet would
        need inputs that send every repetition of an element to one thread.
        """
        if one is not other or not isinstance(one, Store) or not self._steering.runs_always(one):
            return False
        value, step = one.value, one.value.args[1] if len(one.value.args) == 2 else None
        if value.op not in ("add", "sub") or step is None or step.op not in ("int", "float") or not step.value:
            return False
        read = value.args[0]
        if read.op != "load" or read.buffer is None or read.buffer.data.uid != one.buffer.data.uid:
            return False
        with suppress(NotModelled):
            elements = prod(int(evaluated(e, {})) for e in one.buffer.shape)
            repeated = map(_are_equal, read.args, one.indices)
            return all(repeated) and elements < self._repetitions(self._steering.around(one), block)
        return False

    def _repetitions(self, around: Sequence[Stmt], block: tuple[int, int, int] | None) -> int:
        """Return how often a block, or the grid (None), runs what stands in these statements; 0 where that is not
        known.

        A loop whose iterations T.sync_threads orders counts once, and the threads of T.Parallel are its iterations.
        Raises NotModelled.
        """
        parallel = any(isinstance(stmt, For) and stmt.kind == "parallel" for stmt in around)
        ordered = {loop for barrier in barriers_of(self._function) for loop in self._steering.around(barrier)}
        ranges = {"": range(1 if parallel else self._threads)}
        values: dict[str, Any] = {}
        conditions: list[Expr] = []
        for stmt in around:
            if isinstance(stmt, While) or (isinstance(stmt, If) and stmt.orelse is not None):
                return 0
            if isinstance(stmt, If):
                conditions.append(stmt.condition)
            elif isinstance(stmt, Thread) and stmt.tag in _BLOCK:
                if block is None:
                    ranges[str(stmt.var.value)] = range(int(evaluated(stmt.extent, {})))
                else:
                    values[str(stmt.var.value)] = block[_BLOCK.index(stmt.tag)]
            elif isinstance(stmt, For):
                start = int(evaluated(stmt.start, {}))
                extent = 1 if stmt in ordered else int(evaluated(stmt.extent, {}))
                ranges[str(stmt.var.value)] = range(start, start + extent)
        count = prod(map(len, ranges.values()))
        if not conditions or count > _MOST_COUNTED:
            return 0 if conditions else count
        values |= zip(ranges, (axis.reshape(-1) for axis in np.meshgrid(*ranges.values())), strict=True)
        for stmt in statements(self._function.body):
            if isinstance(stmt, Bind):
                with suppress(NotModelled):
                    first = thread_axis(stmt.value) == 0
                    values[str(stmt.var.value)] = values[""] if first else evaluated(stmt.value, values)
        held = np.ones(count, bool)
        for condition in conditions:
            held &= np.asarray(evaluated(condition, values), bool)
        return int(held.sum())

    def _divergent(self, stmt: Stmt | None) -> Stmt | None:
        """The T.sync_threads that not all threads of a block reach; the first in a branch, in a loop of threads, or
        behind an early exit.
        """
        inside = [b for b in barriers_of(self._function) if self._is_in_branch(b)]
        inside += divergent_calls(self._function, is_sync_threads)
        exits = early_exits(self._function, differing(self._function))
        inside += [b for b in barriers_of(self._function) if any(exit_.misses(b) for exit_ in exits)]
        return stmt if stmt in inside else next(iter(inside), None)

    def _is_in_branch(self, stmt: Stmt) -> bool:
        return any(isinstance(s, If) for s in self._steering.around(stmt))


# parts of names, of tile operators above all: these have no signature
_SYNCHRONIZING = ("arrive", "async", "barrier", "bulk", "commit", "expect", "sync", "tma", "wait")


def _synchronizes(stmt: Evaluate) -> bool:
    """Whether a statement waits, or others wait for it."""
    call, signature = stmt.value, signature_of(stmt.value)
    if signature is not None and (signature.waits or signature.releases or signature.mbarrier is not None):
        return True
    return any(part in name_of_call(call) for part in _SYNCHRONIZING) or "barrier" in dict(call.computed)


def _numbers(stmt: Evaluate) -> list[Expr]:
    """The arguments of a call that are numbers: parities, counts."""
    return [e for e in stmt.value.args if not is_address(e) and e.op != "load"]


def _adds(stmt: Stmt) -> bool:
    """Whether a statement is an atomic: what it adds to stays unset."""
    return isinstance(stmt, Evaluate) and stmt.value.op == "call" and is_atomic(name_of_call(stmt.value))


def _touching(function: Function, buffer: Buffer) -> Iterator[Stmt]:
    for stmt in statements(function.body):
        named = {data.uid for e in expressions(stmt) for data, _ in accesses(e)}
        if buffer.data.uid in named or (isinstance(stmt, Store) and stmt.buffer.data.uid == buffer.data.uid):
            yield stmt


def _uses(left: TensorExit) -> list[tuple[Expr, ...]]:
    """The indices with which a statement accesses a tensor that it leaves."""
    loads = (e for e in postorder(expressions(left.stmt)) if e.op == "load" and e.buffer is not None)
    uses = [e.args for e in loads if e.buffer is not None and e.buffer.name == left.buffer]
    return [*uses, left.stmt.indices] if isinstance(left.stmt, Store) and left.stores else uses


def _out_of_bounds(left: Illegal | TensorExit) -> tuple[str, str]:
    """Return the element out of bounds, and a sentence that says so."""
    element = indexed(left.buffer, left.index)
    return element, f"the index of {element} is out of bounds: {shaped(left.buffer, left.extent)}"


def _are_equal(a: Expr, b: Expr) -> bool:
    """Whether two expressions are written alike."""
    if (a.op, a.value, a.uid, a.buffer, len(a.args)) != (b.op, b.value, b.uid, b.buffer, len(b.args)):
        return False
    return all(map(_are_equal, a.args, b.args))


def merged(faults: Sequence[Fault]) -> tuple[Fault, ...]:
    """One of each problem, buffer and line."""
    found: dict[tuple[str, str, int], Fault] = {}
    for fault in faults:
        key = fault.problem, fault.buffer, fault.line
        known = found.get(key)
        if known is None:
            found[key] = fault
        else:
            reasons, outputs = known.reasons | fault.reasons, tuple(dict.fromkeys((*known.outputs, *fault.outputs)))
            found[key] = replace(known, reasons=reasons, outputs=outputs)
    return tuple(found.values())


def _exchanges(stmt: Stmt | None) -> frozenset[str]:
    """The names of the exchanges within a warp that a statement itself makes."""
    calls = () if stmt is None else postorder(expressions(stmt))
    found = ((e, signature_of(e)) for e in calls)
    return frozenset(name_of_call(e) for e, each in found if each is not None and each.exchanges)
