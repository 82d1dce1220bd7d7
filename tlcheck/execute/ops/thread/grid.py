"""T.sync_grid: a barrier of all blocks of a cooperative launch (CUDA Programming Guide, "Grid Synchronization").

All blocks run at once, in lockstep, so that they have nothing to wait for. What they did to tensors before is over
for all of them afterwards.
"""

from __future__ import annotations

from math import prod

from tlcheck.execute.compile.program import KernelProgram
from tlcheck.execute.compile.registry import call
from tlcheck.execute.memory.codes import Computation
from tlcheck.execute.memory.frame import Frame
from tlcheck.execute.schedule.agents import agents_of
from tlcheck.execute.schedule.launches import grid
from tlcheck.execute.stops import NotModelled
from tlcheck.snapshot.ir import Expr


@call("sync_grid", formula=True)
def sync_grid(e: Expr, program: KernelProgram) -> Computation:
    """All threads of all blocks come together."""
    blocks = prod(grid(program.function, program.scalars))
    if any(
        len({w.block for w in program.state.worlds if w.seed == seed}) < blocks for seed in set(program.state.seeds)
    ):
        raise NotModelled("sync_grid of blocks that do not run at once")

    def run(frame: Frame) -> int:
        if frame.active is not None or frame.ended is not None or not agents_of(program.state).alone:
            raise NotModelled("sync_grid in a branch")
        program.observers.barrier(frame.mask())
        program.observers.grid_barrier()
        return 0

    return run
