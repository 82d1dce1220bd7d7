"""Barriers on AMD: __syncthreads and wave barriers (CDNA3 ISA, "Synchronization"; LLVM, "Memory Model gfx942").

The code generator prints __syncthreads() for every barrier of a block, whatever threads it names, and nothing for one
of a wave or of all blocks. T.sync_warp becomes a wave barrier, which keeps the compiler from moving accesses across it;
in older releases it becomes nothing.
"""

from __future__ import annotations

from tlcheck.execute.compile.program import KernelProgram
from tlcheck.execute.compile.registry import call
from tlcheck.execute.memory.codes import Code, Computation
from tlcheck.execute.memory.frame import Frame
from tlcheck.execute.ops.thread.cp_async import queue_of
from tlcheck.execute.ops.thread.lds_copies import loads_of, of_waves
from tlcheck.execute.ops.thread.sync import meet, nothing, storage_sync, warp_sync
from tlcheck.program.release import Release
from tlcheck.snapshot.ir import Expr
from tlcheck.targets.target import AMD

_HAS_WAVE_BARRIERS = Release.of("0.1.14")  # the first release that prints __builtin_amdgcn_wave_barrier()


@call("sync_warp", "syncwarp", family=AMD, formula=True)
def wave_sync(e: Expr, program: KernelProgram) -> Computation | Code:
    """T.sync_warp: a wave barrier, or nothing at all."""
    printed = program.options.printed and program.release < _HAS_WAVE_BARRIERS
    return nothing if printed else warp_sync(e, program)


@call("tvm_storage_sync", family=AMD, formula=True)
def block_sync(e: Expr, program: KernelProgram) -> Computation | Code:
    """(scope[, number of the barrier, threads])."""
    scope = e.args[0].value if e.args and e.args[0].op == "str" else None
    if not program.options.printed or scope is None:
        return storage_sync(e, program)
    if scope not in ("shared", "shared.dyn"):
        return nothing

    queue, loads = queue_of(program), loads_of(program)

    def run(frame: Frame) -> int:
        loads.land(queue, None, of_waves(frame.mask()))
        meet(program, frame)
        return 0

    return run
