"""T.sync_grid: a barrier of all blocks of a cooperative launch (CUDA Programming Guide, "Grid Synchronization").

All blocks run at once, in lockstep, so that they have nothing to wait for. What they did to tensors before is over
for all of them afterwards.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from tlcheck.execute.compile.registry import call
from tlcheck.execute.memory.frame import Frame
from tlcheck.execute.reasons import NotModelled
from tlcheck.execute.schedule.agents import agents_of
from tlcheck.execute.worlds.blocks import grid
from tlcheck.snapshot.ir import Expr

if TYPE_CHECKING:
    from tlcheck.execute.compile.codes import Run
    from tlcheck.execute.schedule.machine import Machine


@call("sync_grid")
def sync_grid(e: Expr, machine: Machine) -> Run:
    """All threads of all blocks come together."""
    blocks = prod(grid(machine.function, machine.scalars))
    if any(len({w.block for w in machine.worlds if w.seed == seed}) < blocks for seed in set(machine.seeds)):
        raise NotModelled("sync_grid of blocks that do not run at once")

    def run(frame: Frame) -> int:
        if frame.active is not None or frame.ended is not None or not agents_of(machine).alone:
            raise NotModelled("sync_grid in a branch")
        machine.observers.barrier(frame.mask())
        machine.observers.grid_barrier()
        return 0

    return run
