"""Describe what changes how a kernel runs and not what it computes: hints, and waits for what is complete in the
source.

T.use_swizzle, T.annotate_*, pdl_*, register counts (TileLang, language/annotations.py, language/builtin.py).
"""

from __future__ import annotations

from tlcheck.execute.compile.program import KernelProgram
from tlcheck.execute.compile.registry import attribute, call
from tlcheck.execute.memory.codes import Computation, Step
from tlcheck.snapshot.ir import Attr, Expr


@call(
    "annotate_consumer_reg_alloc",
    "annotate_producer_reg_dealloc",
    "no_set_max_nreg",
    "pdl_sync",
    "pdl_trigger",
    "set_max_nreg",
    formula=True,
)
def hint(e: Expr, program: KernelProgram) -> Computation:
    """Do nothing."""
    return lambda frame: 0


@attribute(
    "threadblock_swizzle_pattern",
    "tl.min_blocks_per_sm",
    "tl.ws_op_id",
    "tl.ws_pipeline_depth",
)
def hint_on(stmt: Attr, program: KernelProgram) -> Step:
    """The statement means what it means without the attribute."""
    return program.step(stmt.body)
