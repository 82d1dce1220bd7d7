"""Copies from global memory to LDS on AMD: tl::cp_async_gs and tl::cp_async_wait (tl_templates/hip/copy.h).

8 and 16 bytes go through registers: a load, and a store that is complete as any other. 4 bytes go there directly
(CDNA3 ISA, "Memory Buffer Load to LDS"): `buffer_load_dword ... lds` is under way until `s_waitcnt vmcnt(n)` leaves it
none of the n newest of its wave. A commit is nothing. A barrier waits for LDS alone, and not for these copies.

Loads of a wave return in the order in which it issued them (CDNA3 ISA, "Data Dependency Resolution"). What goes through
registers is stored before the next barrier or `s_waitcnt`, so that its load has returned by then, and with it all
direct copies that are older.

One instruction has one address in LDS, that of its first active lane: lane l writes 4 l bytes further on. It has one
address in global memory as well: the lanes read there as far from one another as the numbers of their threads say.
"""

from __future__ import annotations

import numpy as np

from tlcheck.execute.compile.elements import BufferElement
from tlcheck.execute.compile.program import KernelProgram
from tlcheck.execute.compile.registry import call
from tlcheck.execute.events import COPIES
from tlcheck.execute.memory.codes import Code, Computation
from tlcheck.execute.memory.frame import Frame, Mask, one_value
from tlcheck.execute.memory.values import Array, Value
from tlcheck.execute.ops.thread.cp_async import (
    CopyQueue,
    beginning,
    commit_group,
    cp_async,
    guarded,
    operands_of,
    queue_of,
    wait_group,
)
from tlcheck.execute.stops import Illegal
from tlcheck.program.release import Release
from tlcheck.snapshot.ir import Expr
from tlcheck.targets.amd import WARP as WAVE
from tlcheck.targets.target import AMD

_DWORD = 4  # bytes
_QUAD = 16  # that releases before the next one clear where the predicate of a dword is false
_CLEARS_A_DWORD = Release.of("0.1.13")


class Loads:
    """The number of direct copies each thread's wave has begun since its last load that something waits for."""

    def __init__(self) -> None:
        self._behind: Array = np.zeros((1, 1), np.int32)

    def issued(self, lanes: Mask) -> None:
        """Waves of these threads begin a direct copy. lanes: (worlds, threads)."""
        self._behind = self._behind + lanes

    def used(self, lanes: Mask) -> None:
        """Store what waves of these threads have loaded."""
        self._behind = np.where(lanes, 0, self._behind)

    def land(self, queue: CopyQueue, newest: int | None, lanes: Mask) -> None:
        """Land what waves of these threads have waited for: all but `newest`, None for any number of them."""
        behind = np.broadcast_to(self._behind, lanes.shape)
        left = behind if newest is None else np.minimum(behind, newest)
        for count in np.unique(left[lanes]):
            queue.wait(int(count), lanes & (left == count))


def loads_of(program: KernelProgram) -> Loads:
    found = program.state.shared.setdefault("vmcnt", Loads())
    assert isinstance(found, Loads)
    return found


@call("ptx_cp_async", family=AMD, formula=True)
def copy(e: Expr, program: KernelProgram) -> Computation | Code:
    """Copy 4, 8 or 16 bytes. Where the predicate is false, zeros are stored and nothing is read.

    Before VectorizeLoop copies are narrower than the instructions that they become.
    """
    if _is_as_written(program):
        return cp_async(e, program)
    target, source, predicate = operands_of(e, program)
    condition = None if predicate is None else program.code(predicate)
    if target.aligned > _DWORD:
        return _through_registers(target, source, condition, program)
    return _directly(e, (target, source), condition, program)


def _is_as_written(program: KernelProgram) -> bool:
    """Whether copies are TileLang's operations still, and not what the device library makes of them."""
    return program.options.source or program.options.early


def _through_registers(
    target: BufferElement, source: BufferElement, condition: Code | None, program: KernelProgram
) -> Computation:
    loads, state = loads_of(program), program.state

    def run(frame: Frame) -> Value:
        holds = None if condition is None else condition.run(frame)
        target.store(frame, source.load(frame) if holds is None else guarded(source, holds, frame))
        loading = frame.mask() if holds is None else frame.mask() & np.asarray(holds, np.bool_)
        of_worlds = np.asarray(loading.reshape(-1, state.each, frame.lanes).any(axis=0))
        loads.used(of_waves(of_worlds))
        return 0

    return run


def _directly(
    e: Expr, places: tuple[BufferElement, BufferElement], condition: Code | None, program: KernelProgram
) -> Computation:
    target, source = places
    begin, queue, loads = beginning(target, program), queue_of(program), loads_of(program)
    octets = _DWORD if program.release >= _CLEARS_A_DWORD else _QUAD
    cleared = program.pointer(e.args[0], octets * 8 // target.kind.bits)

    def issue(frame: Frame) -> None:
        if frame.idle():
            return
        _require_neighbours(target, source, frame, program)
        waves = of_waves(begin(frame, source.load(frame)))
        queue.commit(waves)
        loads.issued(waves)

    def run(frame: Frame) -> Value:
        if condition is None:
            issue(frame)
            return 0
        holds = np.broadcast_to(np.asarray(condition.run(frame), np.bool_), (frame.worlds, frame.lanes))
        with frame.narrowed(frame.among(holds)):
            issue(frame)
        with frame.narrowed(frame.among(~holds)):
            if not frame.idle():
                cleared.store(frame, 0)
        return 0

    return run


def _require_neighbours(target: BufferElement, source: BufferElement, frame: Frame, program: KernelProgram) -> None:
    """Raise Illegal where a lane's addresses are not those that the instruction has for it."""
    mask, thread = frame.mask(), np.arange(frame.lanes)
    first = _first_active(mask)
    along = thread % program.extents[0]  # threadIdx.x
    steps = (thread % WAVE + 0 * first, along - along[first])
    for place, step, where in ((target, steps[0], "LDS"), (source, steps[1], "global memory")):
        address = np.asarray(place.address(frame))
        own = np.broadcast_to(address[0] if address.ndim > 2 else address, (frame.worlds, frame.lanes))
        meant = np.take_along_axis(own, first, axis=-1) + _DWORD * step
        wrong = np.argwhere(mask & (own != meant))
        if len(wrong):
            world, lane = (int(n) for n in wrong[0])
            off = int(own[world, lane] - meant[world, lane])
            what = f"copy of 4 bytes into {target.name} by one instruction of a wave, {off} bytes off in {where}"
            raise Illegal(what, program.state.line, world, lane, place.name)


def _first_active(mask: Mask) -> Array:
    """The first active thread of each thread's wave; its wave's first one where none is active. (worlds, threads)."""
    worlds, lanes = mask.shape
    waves = np.zeros((worlds, -(-lanes // WAVE), WAVE), np.bool_)
    waves.reshape(worlds, -1)[:, :lanes] = mask
    start = np.arange(waves.shape[1]) * WAVE
    return np.repeat(waves.argmax(axis=-1) + start, WAVE, axis=-1)[:, :lanes]


def of_waves(mask: Mask) -> Mask:
    """All threads of the waves in which some are active."""
    chosen = np.take_along_axis(mask, _first_active(mask), axis=-1)
    return np.ascontiguousarray(chosen)


@call("ptx_commit_group", family=AMD, formula=True)
def commit(e: Expr, program: KernelProgram) -> Computation | Code:
    """Nothing: each copy is an operation of its own."""
    if _is_as_written(program):
        return commit_group(e, program)
    return lambda frame: 0


@call("ptx_wait_group", family=AMD, formula=True)
def wait(e: Expr, program: KernelProgram) -> Computation | Code:
    """s_waitcnt vmcnt(n): go on when at most n of the wave's newest copies are under way."""
    if _is_as_written(program):
        return wait_group(e, program)
    queue, loads, newest = queue_of(program), loads_of(program), program.code(e.args[0])

    def run(frame: Frame) -> Value:
        left = one_value(newest.run(frame), "the number of copies that are left under way")
        program.observers.operations_awaited(COPIES, left, frame.mask())
        loads.land(queue, left, of_waves(frame.mask()))
        return 0

    return run
