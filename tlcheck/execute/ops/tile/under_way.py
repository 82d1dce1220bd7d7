"""Copies of tiles between the passes: those that a pass has made asynchronous arrive when somebody waits for them.

In the source a copy is complete when the next statement runs. After software pipelining or warp specialization the tile
operator is still there, with what is to become of it in its annotations: a group of cp.async that a wait of its own
lands (`no_implicit_async_commit_wait`), or bytes that an mbarrier counts (`barrier`), with the arrival that announces
them where the copy makes it itself (`emit_arrive`).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tlcheck.execute.compile.program import KernelProgram
from tlcheck.execute.memory.frame import Frame
from tlcheck.execute.memory.values import Array, nothing
from tlcheck.execute.ops.thread.cp_async import issue, queue_of
from tlcheck.execute.ops.thread.mbarrier import barrier
from tlcheck.execute.ops.tile.regions import Tile
from tlcheck.execute.schedule.agents import Flight, agents_of
from tlcheck.snapshot.ir import Expr

Departure = Callable[[Frame, Frame, Array], None]  # the threads' frame, the tile's, values
_UNANNOUNCED = 1  # of a tile under way: bytes are counted per tile


def departure(e: Expr, target: Tile, program: KernelProgram) -> Departure | None:
    """Return how a copy to `target` gets under way; None for one that is complete when the next statement runs."""
    if not (program.options.midway and program.options.late and target.shared):
        return None
    if dict(e.annotations).get("no_implicit_async_commit_wait", "0") not in ("0", "False"):
        return _in_a_group(target, program)
    awaited = dict(e.computed).get("barrier")
    return None if awaited is None else _for_a_barrier(e, awaited, target, program)


def _in_a_group(target: Tile, program: KernelProgram) -> Departure:
    queue, reason = (
        queue_of(program),
        program.state.under_way(target.name),
    )

    def depart(frame: Frame, inner: Frame, values: Array) -> None:
        issue(target.place, target.flat(inner), np.array(values), frame.mask(), queue, True, reason)

    return depart


def _for_a_barrier(e: Expr, awaited: Expr, target: Tile, program: KernelProgram) -> Departure:
    done, agents = barrier(awaited, program), agents_of(program.state)
    arrives = dict(e.annotations).get("emit_arrive", "0") not in ("0", "False")
    reason = program.state.under_way(target.name)

    def depart(frame: Frame, inner: Frame, values: Array) -> None:
        where, mask, found = target.flat(inner), target.mask(inner), np.array(values)
        poison = np.array([nothing(target.kind, seed, reason) for seed in program.state.chances], target.kind.array)
        barriers = [(world, number) for world, number, _, _ in done(frame).each]
        memory = target.place.memory
        memory.put(where, poison.reshape(-1, 1), mask, target.kind)

        def land() -> None:
            memory.put(where, found, mask, target.kind)
            for world, number in barriers:
                done.barriers.expect(world, number, -_UNANNOUNCED)

        for world, number in barriers:
            done.barriers.expect(world, number, _UNANNOUNCED)
            if arrives:
                done.barriers.arrive(world, number, 1)
        agents.flights.append(Flight(land, done.barriers))

    return depart
