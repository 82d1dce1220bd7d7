"""T.fill and T.clear: every element of a region becomes one value (TileLang, language/fill_op.py, op/fill.cc).

The value is converted to the buffer's dtype. T.clear fills with 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tlcheck.execute.compile.codes import Run
from tlcheck.execute.compile.registry import call
from tlcheck.execute.memory.frame import Frame
from tlcheck.execute.memory.values import converted, kind_of
from tlcheck.execute.ops.tile.regions import block_frame, differs, region_of, whole
from tlcheck.snapshot.ir import Expr

if TYPE_CHECKING:
    from tlcheck.execute.schedule.machine import Machine


@call("fill")
def fill(e: Expr, machine: Machine) -> Run:
    """The region's elements become the value."""
    target, value = whole(region_of(e.args[0], machine), machine), machine.code(e.args[1])
    source, exact = kind_of(e.args[1].dtype), machine.options.exact

    def run(frame: Frame) -> int:
        found = converted(value.run(frame), source, target.kind, exact)
        own = differs(found) or target.differs(frame)
        target.write(frame if own else block_frame(frame), found)
        return 0

    return run
