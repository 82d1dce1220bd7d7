"""Exchange of values within a warp: shfl.sync, vote.sync, match.sync, activemask (PTX 9.7.9.6, 9.7.13.11 to .13).

Warps are neighbouring threads. A value that comes from a thread that does not take part is undefined: poison.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tlcheck.execute.compile.program import KernelProgram
from tlcheck.execute.compile.registry import call, extern
from tlcheck.execute.machine_options import ABSENT
from tlcheck.execute.memory.codes import Computation
from tlcheck.execute.memory.frame import Frame
from tlcheck.execute.memory.values import Array, Kind, Value, kind_of, nothing_in
from tlcheck.execute.ops.thread.sync import await_warps, meet
from tlcheck.execute.schedule.agents import agents_of
from tlcheck.execute.stops import NotModelled
from tlcheck.program.exchanges import LANES, is_of_warp, names_all_lanes
from tlcheck.snapshot.ir import Expr

Source = Callable[[Array, Array, Array], Array]


def from_lanes(value: Value, source: Array, frame: Frame, program: KernelProgram, kind: Kind) -> Array:
    """The value of other threads. source: the thread of each lane, (1 or worlds, threads)."""
    shape = (frame.worlds, frame.lanes)
    whole = np.broadcast_to(np.asarray(value), (*np.shape(value)[:-2], *shape))
    source = np.broadcast_to(source, shape)
    index = np.minimum(source, frame.lanes - 1)
    found: Array = np.take_along_axis(whole, np.broadcast_to(index, whole.shape), axis=-1)
    if frame.active is not None or source.max() >= frame.lanes:
        taking_part = np.take_along_axis(frame.mask(), index, axis=-1) & (source < frame.lanes)
        if not taking_part.all():
            program.observers.absent_read(frame.mask() & ~taking_part)
            cleared = program.options.cleared
            known = cleared is None or ABSENT in cleared
            unknown = np.zeros(1, kind.array) if known else nothing_in(kind, program.state.chances)
            found = np.where(taking_part, found, unknown)
    return found


def _segments(lane: Array, width: Array) -> tuple[Array, Array]:
    """First and last lane of each lane's segment."""
    first = lane & ~(width - 1)
    return first, first + width - 1


def _xor(lane: Array, by: Array, width: Array) -> Array:
    other = lane ^ by
    return np.asarray(np.where(other <= _segments(lane, width)[1], other, lane))


def _up(lane: Array, by: Array, width: Array) -> Array:
    return np.where(lane - by >= _segments(lane, width)[0], lane - by, lane)


def _down(lane: Array, by: Array, width: Array) -> Array:
    return np.where(lane + by <= _segments(lane, width)[1], lane + by, lane)


def _indexed(lane: Array, by: Array, width: Array) -> Array:
    return np.asarray(_segments(lane, width)[0] | (by & (width - 1)))


_SHUFFLES: dict[str, tuple[Source, tuple[str, ...]]] = {
    "shfl_xor_sync": (_xor, ("tvm_warp_shuffle_xor",)),
    "shfl_up_sync": (_up, ("tvm_warp_shuffle_up",)),
    "shfl_down_sync": (_down, ("tvm_warp_shuffle_down",)),
    "shfl_sync": (_indexed, ("tvm_warp_shuffle",)),
}


def _shuffle(source: Source) -> Callable[[Expr, KernelProgram], Computation]:
    """(mask, value, lane or distance[, width[, warp size]]): the value of another lane of the same segment."""

    def handler(e: Expr, program: KernelProgram) -> Computation:
        value, by = program.code(e.args[1]), program.code(e.args[2])
        width = program.code(e.args[3]) if len(e.args) > 3 else None
        kind, (thread, lane) = kind_of(e.args[1].dtype), _threads(program)
        warp = program.options.target.warp
        whole = warp <= LANES.bit_length() and is_of_warp(e)

        def run(frame: Frame) -> Value:
            size = np.asarray(warp if width is None else width.run(frame), np.int64)
            other = source(lane, np.asarray(by.run(frame), np.int64), size)
            given = value.run(frame)
            if whole:
                await_warps(program, frame)
                program.observers.exchanged(e, frame.mask())
            return from_lanes(given, thread - lane + other, frame, program, kind)

        return run

    return handler


def _threads(program: KernelProgram) -> tuple[Array, Array]:
    """Numbers of threads in the block and in the warp, (1, threads)."""
    if program.iterating:
        raise NotModelled("warp instruction in T.Parallel")
    thread = np.arange(program.state.threads).reshape(1, -1)
    return thread, thread % program.options.target.warp


def _whole_warps(program: KernelProgram) -> None:
    if program.state.threads % program.options.target.warp or program.iterating:
        raise NotModelled("match among the threads of a partial warp")


for _name, (_source, _others) in _SHUFFLES.items():
    call(_name, f"__{_name}", *_others, formula=True)(_shuffle(_source))
    extern(f"__{_name}", f"tl::{_name}", formula=True)(_shuffle(_source))


def of_warp(condition: Value, frame: Frame, warp: int) -> Array:
    """Return what the active lanes of each warp say, (worlds, warps, warp); lanes that a last partial warp lacks say
    no.
    """
    holds = np.zeros((frame.worlds, -(-frame.lanes // warp) * warp), np.bool_)
    holds[:, : frame.lanes] = frame.mask() & np.not_equal(condition, 0)
    return holds.reshape(frame.worlds, -1, warp)


def _ballot(votes: Array, active: Array) -> Array:
    bits = votes.astype(np.uint64) << np.arange(votes.shape[-1], dtype=np.uint64)
    return np.asarray(bits.sum(-1, keepdims=True, dtype=np.uint64))


def _any(votes: Array, active: Array) -> Array:
    return np.asarray(votes.any(-1, keepdims=True))


def _all(votes: Array, active: Array) -> Array:
    return np.asarray((votes | ~active).all(-1, keepdims=True))


_VOTES: dict[str, tuple[Any, tuple[str, ...], tuple[str, ...]]] = {
    "ballot_sync": (_ballot, ("ballot",), ("__ballot_sync",)),
    "any_sync": (_any, (), ("__any_sync",)),
    "all_sync": (_all, (), ("__all_sync",)),
    "activemask": (_ballot, ("tvm_warp_activemask", "__activemask"), ("__activemask",)),
}


def _vote(combine: Callable[[Array, Array], Array]) -> Callable[[Expr, KernelProgram], Computation]:
    """([mask, ]condition): what the active lanes of the warp say together; without a condition they all say yes."""

    def handler(e: Expr, program: KernelProgram) -> Computation:
        condition = program.code(e.args[-1]) if e.args else None
        kind, warp = kind_of(e.dtype), program.options.target.warp
        whole = len(e.args) > 1 and names_all_lanes(e.args[0])
        _threads(program)

        def run(frame: Frame) -> Value:
            if whole:
                await_warps(program, frame)
            says = 1 if condition is None else condition.run(frame)
            votes, active = of_warp(says, frame, warp), of_warp(1, frame, warp)
            found = np.broadcast_to(combine(votes, active), votes.shape)
            return found.reshape(frame.worlds, -1)[:, : frame.lanes].astype(kind.array)

        return run

    return handler


for _name, (_combine, _others, _externs) in _VOTES.items():
    call(_name, *_others)(_vote(_combine))
    extern(*_externs)(_vote(_combine))


@call("match_any_sync")
@extern("__match_any_sync")
def match_any(e: Expr, program: KernelProgram) -> Computation:
    """(mask, value): the active lanes of the warp that have the same value, as bits."""
    value, kind, warp = program.code(e.args[1]), kind_of(e.dtype), program.options.target.warp
    whole = names_all_lanes(e.args[0])
    _whole_warps(program)

    def run(frame: Frame) -> Value:
        if whole:
            await_warps(program, frame)
        active = of_warp(1, frame, warp)
        values = np.broadcast_to(value.run(frame), (frame.worlds, frame.lanes)).reshape(active.shape)
        same = (values[..., :, None] == values[..., None, :]) & active[..., None, :]
        return _ballot(same, active).reshape(frame.worlds, -1).astype(kind.array)

    return run


@call("match_all_sync")
def match_all(e: Expr, program: KernelProgram) -> Computation:
    """(mask, value): all active lanes if they have the same value, no lane otherwise, as bits."""
    value, kind, warp = program.code(e.args[1]), kind_of(e.dtype), program.options.target.warp
    whole = names_all_lanes(e.args[0])
    _whole_warps(program)

    def run(frame: Frame) -> Value:
        if whole:
            await_warps(program, frame)
        active = of_warp(1, frame, warp)
        values = np.broadcast_to(value.run(frame), (frame.worlds, frame.lanes)).reshape(active.shape)
        same = (values[..., :, None] == values[..., None, :]) | ~active[..., None, :]
        agree = np.where(same.all(-1).any(-1, keepdims=True), _ballot(active, active), np.uint64(0))
        return np.broadcast_to(agree, active.shape).reshape(frame.worlds, -1).astype(kind.array)

    return run


def _counted(combine: Callable[[Array, Array], Array]) -> Callable[[Expr, KernelProgram], Computation]:
    """(condition): a barrier of the block, and what its threads say together."""

    def handler(e: Expr, program: KernelProgram) -> Computation:
        condition, kind = program.code(e.args[-1]), kind_of(e.dtype)

        def run(frame: Frame) -> Value:
            holds = np.not_equal(np.broadcast_to(condition.run(frame), (frame.worlds, frame.lanes)), 0)
            meet(program, frame)
            if not agents_of(program.state).whole:
                raise NotModelled(f"{e.value} by threads that do not move together")
            return combine(holds, frame.mask()).astype(kind.array)

        return run

    return handler


for _names, _function in (
    (("syncthreads_count",), lambda holds, active: (holds & active).sum(-1, keepdims=True)),
    (("syncthreads_or",), lambda holds, active: (holds & active).any(-1, keepdims=True)),
    (("syncthreads_and",), lambda holds, active: (holds | ~active).all(-1, keepdims=True)),
):
    call(*_names)(_counted(_function))
    extern(*[f"__{n}" for n in _names])(_counted(_function))
