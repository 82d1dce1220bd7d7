"""T.fill and T.clear: every element of a region becomes one value (TileLang, language/fill_op.py, op/fill.cc).

The value is converted to the buffer's dtype. T.clear fills with 0.
"""

from __future__ import annotations

from tlcheck.execute.compile.program import KernelProgram
from tlcheck.execute.compile.registry import call
from tlcheck.execute.memory.codes import Computation
from tlcheck.execute.memory.frame import Frame
from tlcheck.execute.memory.values import converted, kind_of
from tlcheck.execute.ops.tile.regions import block_frame, differs, region_of, whole
from tlcheck.snapshot.ir import Expr


@call("fill", formula=True)
def fill(e: Expr, program: KernelProgram) -> Computation:
    """The region's elements become the value."""
    target, value = whole(region_of(e.args[0], program), program), program.code(e.args[1])
    source, exact = kind_of(e.args[1].dtype), program.options.exact

    def run(frame: Frame) -> int:
        found = converted(value.run(frame), source, target.kind, exact)
        own = differs(found) or target.differs(frame)
        target.write(frame if own else block_frame(frame), found)
        return 0

    return run
