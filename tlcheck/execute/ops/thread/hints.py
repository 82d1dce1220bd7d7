"""Instructions that change no value: register budgets, prefetches, scheduling, marks for a profiler, pauses.

What fences and arrivals order is the business of those who observe a run.
"""

from __future__ import annotations

from tlcheck.execute.compile.program import KernelProgram
from tlcheck.execute.compile.registry import attribute, call, extern
from tlcheck.execute.memory.codes import Computation, Step
from tlcheck.snapshot.ir import Attr, Expr


@extern(
    "tl::prefetch_tma_descriptor",
    "__nanosleep",  # CUDA: waits about so long; orders nothing
    "TL_IKET_EVENT",  # TileLang, tools/cuda/iket: what a profiler notes
    "TL_IKET_EVENT_PAYLOAD_U32",
    "TL_IKET_EVENT_PAYLOAD_F32",
    formula=True,
)
@call(
    "prefetch_tma_descriptor",
    "warpgroup_fence_operand",
    formula=True,
)
def hint(e: Expr, program: KernelProgram) -> Computation:
    """Do nothing: the instruction changes no values."""
    return lambda frame: 0


@attribute(
    "kWarpSpecializationScope",
    "tl.pipeline_mvb_num_stages",
    "tl.pipeline_mvb_parity_expr",
    "tl.pipeline_mvb_stage_expr",
)
def notes_of_passes(stmt: Attr, program: KernelProgram) -> Step:
    """Return what one pass tells a later one; the code within says all that happens."""
    return program.step(stmt.body)
