"""cp.async: copies from global to shared memory that are under way until they are waited for (PTX 9.7.9.25.3).

A thread's copies since its last commit make a group. What a group copies becomes visible when the thread waits until
at most n of its newest groups are under way. Here the destination is poison from the issue until then (late copies),
or has its values at once (early ones); a kernel has to be right with both.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from tlcheck.execute.compile.elements import BufferElement
from tlcheck.execute.compile.program import KernelProgram
from tlcheck.execute.compile.registry import attribute, call
from tlcheck.execute.events import COPIES
from tlcheck.execute.memory.cells import Position
from tlcheck.execute.memory.codes import Computation, Step
from tlcheck.execute.memory.frame import Frame, Mask, everywhere, one_value
from tlcheck.execute.memory.values import Array, Kind, Value, nothing_in
from tlcheck.execute.stops import NotModelled
from tlcheck.program.async_copies import WAIT, copied_bytes
from tlcheck.snapshot.ir import Attr, Expr

_SIZES = (4, 8, 16)
_KEPT = 16  # positions of a copy: it takes turns among the stages of a pipeline


@dataclass(frozen=True, slots=True, eq=False)
class Copy:
    """Values on their way to a place, in the lanes of `mask`."""

    place: BufferElement
    position: Array
    values: Array
    mask: Mask

    def land(self, lanes: Mask) -> None:
        """Arrive, in these lanes; what all threads of a block copy together, once for all."""
        chosen = _both(self.mask, lanes)
        self.place.observers.copy_landed(self.place, self.position, chosen)
        if self.position.shape[-1:] == np.shape(self.values)[-1:] == (1,):
            chosen = np.asarray(chosen.any(axis=-1, keepdims=True))
        self.place.memory.put(self.position, self.values, chosen, self.place.kind)


@dataclass(slots=True, eq=False)
class _Group:
    """Copies that were committed together by the threads of `members`; `landed`: those that have waited for it."""

    members: Mask
    copies: list[Copy]
    landed: Mask


@dataclass(slots=True, eq=False)
class CopyQueue:
    """The copies of all threads of all worlds; `handed`: threads some of whose copies an mbarrier waits for."""

    open: list[Copy] = field(default_factory=list)
    groups: list[_Group] = field(default_factory=list)
    handed: Mask | None = None

    def hand_over(self, lanes: Mask) -> list[Copy]:
        """All copies of these lanes that are under way: who takes them lands them."""
        taken = [Copy(c.place, c.position, c.values, c.mask & lanes) for c in self.open]
        for group in self.groups:
            waiting = group.members & ~group.landed & lanes
            taken += [Copy(c.place, c.position, c.values, c.mask & waiting) for c in group.copies]
            group.landed |= waiting
        left = [Copy(c.place, c.position, c.values, c.mask & ~lanes) for c in self.open]
        self.open = [c for c in left if c.mask.any()]
        self.handed = lanes.copy() if self.handed is None else self.handed | lanes
        return [c for c in taken if c.mask.any()]

    def commit(self, lanes: Mask) -> None:
        """Make a group of the open copies of these lanes."""
        mine = [Copy(c.place, c.position, c.values, _both(c.mask, lanes)) for c in self.open]
        left = [Copy(c.place, c.position, c.values, c.mask & ~lanes) for c in self.open]
        self.open = [c for c in left if c.mask.any()]
        self.groups.append(_Group(lanes.copy(), mine, np.zeros_like(lanes)))

    def is_uncommitted(self, lanes: Mask) -> bool:
        """Whether these lanes have begun copies, and all that are under way are in no group."""
        if not any((copy.mask & lanes).any() for copy in self.open):
            return False
        return not any((group.members & ~group.landed & lanes).any() for group in self.groups)

    def wait(self, newest: int, lanes: Mask) -> None:
        """Land the groups of these lanes, all but their newest ones."""
        if self.handed is not None and (self.handed & lanes).any():
            raise NotModelled("groups of copies that an mbarrier waits for")
        newer = np.zeros(lanes.shape, np.int32)
        due: list[tuple[_Group, Mask]] = []
        for group in reversed(self.groups):
            due.append((group, group.members & ~group.landed & lanes & (newer >= newest)))
            newer += group.members
        for group, ready in reversed(due):
            if ready.any():
                for copy in group.copies:
                    copy.land(ready)
                group.landed |= ready
        self.groups = [g for g in self.groups if (g.members & ~g.landed).any()]


def _both(mask: Mask, lanes: Mask) -> Mask:
    """The lanes of both masks; the mask itself where it has no others: what is known of it is known by the object."""
    chosen = mask & lanes
    return mask if np.array_equal(chosen, mask) else chosen


def queue_of(program: KernelProgram) -> CopyQueue:
    found = program.state.shared.setdefault("cp.async", CopyQueue())
    assert isinstance(found, CopyQueue)
    return found


@call("ptx_cp_async", formula=True)
def cp_async(e: Expr, program: KernelProgram) -> Computation:
    """Issue a copy of 4, 8 or 16 bytes. Where the predicate is false, zeros arrive and nothing is read.

    Which thread issues the copy of an iteration of T.Parallel is not known in the source: it arrives at once.
    """
    target, source, predicate = operands_of(e, program)
    condition, begin = None if predicate is None else program.code(predicate), beginning(target, program)

    def run(frame: Frame) -> Value:
        begin(frame, source.load(frame) if condition is None else guarded(source, condition.run(frame), frame))
        return 0

    return run


def beginning(target: BufferElement, program: KernelProgram) -> Callable[[Frame, Value], Mask]:
    """Return what begins copies of values to a place in the active lanes, and returns these: (worlds, threads)."""
    queue, late = queue_of(program), program.options.late and not program.iterating
    reason = program.state.under_way(target.name)
    folded = _Folded(target)

    def begin(frame: Frame, found: Value) -> Mask:
        values = np.array(found, ndmin=3)
        position, mask = target.position(frame)
        lanes = everywhere(mask, frame)
        if frame.worlds > program.state.each:
            position, lanes, values = folded(position, lanes, values, mask)
        if target.shared:
            program.observers.copy_issued(target, position, lanes, program.state.origin(frame), values)
        issue(target, target.memory.flat_position(position), values, lanes, queue, late, reason)
        return lanes

    return begin


class _Folded:
    """A copy where all iterations of a loop run at once (`iterations`), as one of more elements in each world."""

    def __init__(self, target: BufferElement) -> None:
        self._target = target
        self._kept: dict[tuple[int, int], tuple[Position, Mask | None, Array, Mask]] = {}  # with what the keys number

    def __call__(self, position: Position, lanes: Mask, values: Array, mask: Mask | None) -> tuple[Array, Mask, Array]:
        """mask: what `lanes` were made of, the same in all iterations."""
        worlds, key = self._target.state.each, (id(position), id(mask))
        if key not in self._kept:
            if len(self._kept) >= _KEPT:
                self._kept.clear()
            where = self._target.memory.flat_position(position)
            where = np.broadcast_to(where, (*where.shape[:-2], *lanes.shape)).reshape(-1, worlds, lanes.shape[1])
            active = lanes[:worlds] if mask is None else lanes[:worlds].copy()
            self._kept[key] = position, mask, where, active
        _, _, where, active = self._kept[key]
        values = np.broadcast_to(values, (where.size // lanes.size, *lanes.shape))
        return where, active, values.reshape(where.shape)


def guarded(source: BufferElement, holds: Value, frame: Frame) -> Value:
    """Return what is copied: zeros where the condition does not hold, and nothing is read there."""
    if not isinstance(holds, np.ndarray):
        return source.load(frame) if holds else 0
    saved, frame.active = frame.active, frame.among(holds)
    values = 0 if frame.idle() else np.where(holds, source.load(frame), 0)
    frame.active = saved
    return values


def issue(
    target: BufferElement, where: Array, values: Array, lanes: Mask, queue: CopyQueue, late: bool, reason: int
) -> None:
    """Put a copy under way, to flat positions of a place; without `late` it arrives at once."""
    if not late:
        target.memory.put(where, values, lanes, target.kind)
        return
    poison = nothing_in(target.kind, target.state.chances[: target.state.each], reason)
    target.memory.put(where, poison, lanes, target.kind)
    queue.open.append(Copy(target, where, values, lanes))


def operands_of(e: Expr, program: KernelProgram) -> tuple[BufferElement, BufferElement, Expr | None]:
    """Destination, source and predicate of a copy in any of its forms."""
    if len(e.args) in (3, 4):
        target, source = e.args[:2]
        kind = program.addresses.kind(source)
        if program.addresses.kind(target).bits != kind.bits:
            raise NotModelled("ptx_cp_async between elements of other widths")
        count = _size(e, kind, program) * 8 // kind.bits
        predicate = e.args[3] if len(e.args) == 4 else None
        return *_aligned(program.pointer(target, count), program.pointer(source, count), count), predicate
    if len(e.args) in (5, 6):
        target, before, source, offset = e.args[:4]
        kind = program.addresses.kind(source)
        count = _size(e, kind, program) * 8 // kind.bits
        to = _destination(target, before, kind, count, program)
        return *_aligned(to, program.pointer(source, count, offset), count), e.args[5] if len(e.args) == 6 else None
    raise NotModelled(f"ptx_cp_async with {len(e.args)} arguments")


def _aligned(target: BufferElement, source: BufferElement, count: int) -> tuple[BufferElement, BufferElement]:
    """Both addresses are multiples of the copy's size."""
    target.aligned = source.aligned = count * source.kind.bits // 8
    return target, source


def _destination(target: Expr, offset: Expr, kind: Kind, count: int, program: KernelProgram) -> BufferElement:
    """The offset counts bytes of merged shared memory; a buffer that is alone is not merged and has elements."""
    if program.pointers.shared_buffers > 1:
        return program.addresses.octets(target, offset, kind, count)
    return program.pointer(target, count, offset)


def _size(call: Expr, kind: Kind, program: KernelProgram) -> int:
    """Bytes that a call copies."""
    size = copied_bytes(call, kind.bits, program.release)
    if size is None:
        raise NotModelled("ptx_cp_async of varying size")
    if size not in _SIZES and not program.options.early:
        raise NotModelled(f"ptx_cp_async of {size} bytes")
    return size


@call("ptx_commit_group", formula=True)
def commit_group(e: Expr, program: KernelProgram) -> Computation:
    """cp.async.commit_group: the thread's copies since the last commit are a group, be it an empty one."""
    queue = queue_of(program)

    def run(frame: Frame) -> Value:
        queue.commit(frame.mask())
        return 0

    return run


@call("ptx_wait_group", formula=True)
def wait_group(e: Expr, program: KernelProgram) -> Computation:
    """cp.async.wait_group n: go on when at most n of the thread's newest groups are under way."""
    queue, newest = queue_of(program), program.code(e.args[0])

    def run(frame: Frame) -> Value:
        left = one_value(newest.run(frame), "the number of groups to wait for")
        program.observers.operations_awaited(COPIES, left, frame.mask())
        if queue.is_uncommitted(frame.mask()):
            program.observers.wait_uncommitted(frame.mask())
        queue.wait(left, frame.mask())
        return 0

    return run


@call("ptx_wait_all", "cp_async_wait_all", formula=True)
def wait_all(e: Expr, program: KernelProgram) -> Computation:
    """cp.async.wait_all: commit, and wait for all groups."""
    queue = queue_of(program)

    def run(frame: Frame) -> Value:
        program.observers.operations_awaited(COPIES, 0, frame.mask())
        queue.commit(frame.mask())
        queue.wait(0, frame.mask())
        return 0

    return run


@attribute("async_commit_queue_scope")
def commit_scope(stmt: Attr, program: KernelProgram) -> Step:
    """Pipelines up to 0.1.8: commit a group after the body."""
    body, queue = program.step(stmt.body), queue_of(program)

    def run(frame: Frame) -> None:
        body.run(frame)
        queue.commit(frame.mask())

    return Step(run, body.leaves)


@attribute("async_wait_queue_scope")
def wait_scope(stmt: Attr, program: KernelProgram) -> Step:
    """Pipelines up to 0.1.8: wait before the body, until `async_wait_inflight_count` groups are under way."""
    inner = stmt.body
    if not isinstance(inner, Attr) or inner.key != WAIT or inner.value is None:
        raise NotModelled("async_wait_queue_scope without a count")
    newest, body, queue = program.code(inner.value), program.step(inner.body), queue_of(program)

    def run(frame: Frame) -> None:
        queue.wait(one_value(newest.run(frame), "the number of groups to wait for"), frame.mask())
        body.run(frame)

    return Step(run, body.leaves)


@attribute("async_scope")
def async_scope(stmt: Attr, program: KernelProgram) -> Step:
    """Marks copies that a later pass makes asynchronous; nothing by itself."""
    return program.step(stmt.body)
