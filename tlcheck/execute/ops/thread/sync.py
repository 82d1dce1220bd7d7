"""Synchronization of a block's threads: bar.sync (PTX 9.7.13.1), __syncwarp.

Lanes that move in lockstep have nothing to wait for. Agents wait until as many threads have come as the barrier counts:
all of the block, or the number that a named barrier says.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from tlcheck.execute.compile.program import KernelProgram
from tlcheck.execute.compile.registry import call, extern
from tlcheck.execute.memory.codes import Computation
from tlcheck.execute.memory.frame import Frame
from tlcheck.execute.memory.values import Array
from tlcheck.execute.ops.thread.cluster_barriers import sync_cluster
from tlcheck.execute.schedule.agents import agents_of
from tlcheck.execute.schedule.clusters import acts_across
from tlcheck.execute.stops import AbsentLanes, Illegal, NotModelled
from tlcheck.signatures.fences import THREAD_FENCES
from tlcheck.snapshot.ir import Expr, Stmt
from tlcheck.targets.target import AMD

_BARRIERS = 16  # PTX: a block has barriers 0 to 15


@dataclass(eq=False)
class _Counters:
    """Threads that have come to each barrier, and how often it has let them go: (worlds, barriers)."""

    worlds: int
    come: Array = field(init=False)
    passed: Array = field(init=False)

    def __post_init__(self) -> None:
        self.come, self.passed = np.zeros((2, self.worlds, _BARRIERS), np.int64)


@dataclass(eq=False)
class _Awaited:
    """Lanes for which others of their warp wait in an instruction that names them, (worlds, threads).

    line, stmt: of the instruction in which somebody began to wait last.
    """

    lanes: Array
    line: int = 0
    stmt: Stmt | None = None


def await_warps(program: KernelProgram, frame: Frame) -> None:
    """Whoever is active waits for the rest of its warp, but for lanes that have ended (PTX, shfl.sync).

    A barrier that such a lane reaches first never lets go. Other instructions that it may wait in are not looked at. On
    AMD nobody waits, and shuffles leave out lanes that are not active.
    """
    target = program.options.target
    if target.family == AMD or (frame.active is None and not frame.lanes % target.warp):
        return
    held = program.state.shared.setdefault("shfl.sync", _Awaited(np.zeros((1, frame.lanes), np.bool_)))
    assert isinstance(held, _Awaited)
    mask = frame.mask()
    ended = np.zeros_like(mask) if frame.ended is None else np.broadcast_to(frame.ended, mask.shape)
    warp = np.arange(frame.lanes) // target.warp
    starts = np.flatnonzero(np.r_[True, warp[1:] != warp[:-1]])
    taken = np.logical_or.reduceat(mask, starts, axis=-1)[:, warp]
    rest = taken & ~mask & ~ended
    if rest.any():
        held.line, held.stmt = program.state.line, program.state.at
    before = held.lanes if len(held.lanes) in (1, frame.worlds) else np.zeros_like(mask)
    held.lanes = rest | (before & ~mask)


def _refuse_awaited(program: KernelProgram, frame: Frame) -> None:
    """Raise AbsentLanes where a lane comes to a barrier while others of its warp wait for it elsewhere."""
    held = program.state.shared.get("shfl.sync")
    if not isinstance(held, _Awaited) or len(held.lanes) not in (1, frame.worlds):
        return
    found = np.argwhere(held.lanes & frame.mask())
    if len(found):
        world, lane = (int(i) for i in found[0])
        what = "waits at a barrier while its warp waits for it in a shuffle"
        raise AbsentLanes(what, held.line, world, lane, stmt=program.state.at, exchange=held.stmt)


@call("sync_warp", "syncwarp", formula=True)
def warp_sync(e: Expr, program: KernelProgram) -> Computation:
    """__syncwarp: the threads of a warp that move in lockstep have nothing to wait for."""
    return _within_warps(program)


def _within_warps(program: KernelProgram) -> Callable[[Frame], int]:
    def run(frame: Frame) -> int:
        program.observers.warp_barrier(frame.mask())
        return 0

    return run


def nothing(frame: Frame) -> int:
    """A call for which nothing is printed."""
    return 0


@call("tvm_storage_sync", "sync_threads", "sync_threads_partial", formula=True)
def storage_sync(e: Expr, program: KernelProgram) -> Computation:
    """bar.sync: (scope[, number of the barrier, threads]) or ([number, threads]).

    For the scope "warp" TileLang prints nothing, and since Volta the threads of a warp need not stay together (CUDA C++
    Programming Guide, "Independent Thread Scheduling").
    """
    args = e.args[1:] if e.args and e.args[0].op == "str" else e.args
    if args != e.args and e.args[0].value == "warp":
        return nothing if program.options.printed else _within_warps(program)
    if args != e.args and e.args[0].value == "global":
        raise NotModelled("synchronization of all blocks")
    if args != e.args and e.args[0].value == "cluster":
        return sync_cluster(program)
    if any(a.op != "int" for a in args):
        raise NotModelled("barrier of unknown number or threads")
    number, threads = (int(args[0].value or 0) if args else 0), int(args[1].value or 0) if len(args) > 1 else 0

    def run(frame: Frame) -> int:
        meet(program, frame, number, threads)
        return 0

    return run


def meet(program: KernelProgram, frame: Frame, number: int = 0, threads: int = 0) -> None:
    """bar.sync by the active threads. threads: how many the barrier counts, 0 for all of the block.

    Raises Illegal where lanes that move together are not as many as that: CUDA allows a barrier in a branch only if
    all of its threads take it.
    """
    _refuse_awaited(program, frame)
    if not agents_of(program.state).whole and not _is_of_whole_blocks(threads, frame, program):
        _meet(number, threads or program.state.threads, frame, program)
        return
    if frame.active is not None or threads not in (0, program.state.threads):
        _refuse_other_threads(threads, frame, program)
    program.observers.barrier(frame.mask())


def _is_of_whole_blocks(threads: int, frame: Frame, program: KernelProgram) -> bool:
    """Whether those that move together are all threads of some blocks, for which a barrier counts."""
    if frame.ended is not None or threads not in (0, program.state.threads) or not acts_across(program.function):
        return False
    mask = frame.mask()
    return bool((mask.all(axis=-1) == mask.any(axis=-1)).all())


def _refuse_other_threads(threads: int, frame: Frame, program: KernelProgram) -> None:
    """Raise Illegal where the active threads are not those that a barrier counts; ones that have ended do not count.

    If others have missed one before (`Options.partial`), a barrier of the source without a number counts those that
    reach it.
    """
    mask = frame.mask()
    alive = program.state.threads if frame.ended is None else np.sum(~np.broadcast_to(frame.ended, mask.shape), axis=-1)
    come, counted = mask.sum(axis=-1), np.broadcast_to(threads or alive, len(mask))
    wrong = np.flatnonzero((come > 0) & (come != counted))
    if (program.options.partial and not threads) or not len(wrong):
        return
    world = int(wrong[0])
    what = f"{come[world]} threads reach a barrier that counts {counted[world]}"
    raise Illegal(what, program.state.line, world, int(mask[world].argmax()))


def _meet(number: int, threads: int, frame: Frame, program: KernelProgram) -> None:
    """Come to a barrier, and wait until it lets go."""
    worlds, before = _come(number, threads, frame, program)
    counters, key = _counters(program), ("bar.sync", number)
    whole = number == 0 and threads == program.state.threads
    skips = whole and program.options.target.skips_ended and not program.options.source

    def ready() -> bool:
        if skips:
            _let_go(counters, number, threads - agents_of(program.state).gone().sum(axis=-1), program)
        return bool((counters.passed[worlds, number] > before).all())

    def what() -> str:
        return f"waits at barrier {number} for {threads} threads"

    agents_of(program.state).wait(ready, what, program.state.at, frame, counts=threads if whole else 0)
    program.observers.acquired(key, frame.mask())


def _counters(program: KernelProgram) -> _Counters:
    counters = program.state.shared.setdefault("bar.sync", _Counters(len(program.state.worlds)))
    assert isinstance(counters, _Counters)
    return counters


def _come(number: int, threads: int, frame: Frame, program: KernelProgram) -> tuple[Array, Array]:
    """Come to a barrier; where that completes it, others go on. The worlds, and how often it had let go before."""
    counters = _counters(program)
    mask = frame.mask()
    worlds = np.flatnonzero(mask.any(axis=-1))
    before = counters.passed[worlds, number].copy()
    counters.come[worlds, number] += mask[worlds].sum(axis=-1)
    key = "bar.sync", number
    program.observers.arrived(key, mask)
    come = counters.come[worlds, number]
    if (come > threads).any():
        world = int(worlds[np.argmax(come > threads)])
        what = f"{come.max()} threads reach barrier {number}, which counts {threads}"
        raise Illegal(what, program.state.line, world, int(mask[world].argmax()))
    _let_go(counters, number, np.broadcast_to(threads, mask.shape[:1]), program)
    return worlds, before


def _let_go(counters: _Counters, number: int, threads: Array, program: KernelProgram) -> None:
    """End the phase of a barrier in the worlds in which all have come that it counts. threads: how many, (worlds,)."""
    come = counters.come[:, number]
    full = np.flatnonzero((come > 0) & (come >= threads))
    counters.come[full, number] -= np.maximum(threads[full], 1)
    counters.passed[full, number] += 1
    for world in full.tolist():
        program.observers.phase_ended(("bar.sync", number), world)


@call("named_barrier_arrive", formula=True)
def arrive(e: Expr, program: KernelProgram) -> Computation:
    """bar.arrive (number, threads): the threads are counted and go on."""
    if any(a.op != "int" for a in e.args):
        raise NotModelled("barrier of unknown number or threads")
    number, threads = (int(a.value or 0) for a in e.args)

    def run(frame: Frame) -> int:
        if agents_of(program.state).whole:
            raise NotModelled("named_barrier_arrive by threads that move with those that wait")
        _come(number, threads, frame, program)
        return 0

    return run


@extern(*THREAD_FENCES, formula=True)
def thread_fence(e: Expr, program: KernelProgram) -> Computation:
    """__threadfence and its kin: with atomics, what a thread does before them comes before what follows."""
    wide = THREAD_FENCES[str(e.value)]

    def run(frame: Frame) -> int:
        if program.iterating:
            raise NotModelled(f"{e.value} in T.Parallel")
        program.observers.thread_fence(frame.mask(), wide)
        return 0

    return run


@call("fence_proxy_async", "ptx_fence_barrier_init", formula=True)
def fence(e: Expr, program: KernelProgram) -> Computation:
    """fence.proxy.async: what threads wrote before may be seen by bulk copies and wgmma (PTX 9.7.13.5).

    fence.mbarrier_init says so of mbarriers alone. It stands where they are made, before anything else is written.
    """
    makes = e.value == "ptx_fence_barrier_init"

    def run(frame: Frame) -> int:
        if makes:
            program.state.shared[str(e.value)] = True
        program.observers.proxy_fence(frame.mask())
        return 0

    return run
