"""cp.async.mbarrier.arrive: an mbarrier that waits for a thread's copies (PTX 9.7.13.15, cp.async.mbarrier.arrive).

The thread arrives at the barrier when all copies that it has begun so far have come. Without .noinc the barrier expects
one arrival more in this phase, so that its count is that of the other arrivals.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tlcheck.execute.compile.program import KernelProgram
from tlcheck.execute.compile.registry import call
from tlcheck.execute.memory.codes import Computation
from tlcheck.execute.memory.frame import Frame, Mask
from tlcheck.execute.memory.values import Value
from tlcheck.execute.ops.thread.cp_async import Copy, queue_of
from tlcheck.execute.ops.thread.mbarrier import Barriers, barrier
from tlcheck.execute.schedule.agents import Flight, agents_of
from tlcheck.snapshot.ir import Expr


@call("ptx_cp_async_barrier", "ptx_cp_async_barrier_noinc", formula=True)
def arrive(e: Expr, program: KernelProgram) -> Computation:
    """(barrier): the active threads arrive when their copies have come."""
    which, queue, agents = barrier(e.args[0], program), queue_of(program), agents_of(program.state)
    expected = e.value == "ptx_cp_async_barrier"

    def run(frame: Frame) -> Value:
        which.used(frame)
        for world, number, lanes, threads in which(frame).each:
            mask = np.zeros((frame.worlds, frame.lanes), np.bool_)
            mask[world] = lanes
            if expected:
                which.barriers.pending[world, number] += threads
            land = _landing(queue.hand_over(mask), program, which.barriers, world, number, mask)
            if program.options.late:
                agents.flights.append(Flight(land, which.barriers))
            else:
                land()
        return 0

    return run


def _landing(
    copies: list[Copy], program: KernelProgram, barriers: Barriers, world: int, number: int, mask: Mask
) -> Callable[[], None]:
    def land() -> None:
        for copy in copies:
            copy.land(copy.mask)
        program.observers.arrived((barriers.name, number), mask)
        barriers.arrive(world, number, int(mask.sum()))

    return land
