"""T.cumsum and T.cummax: inclusive scans along an axis (TileLang, language/scan_op.py).

BufferElement i of a line becomes the combination of the elements 0 ... i, with `reverse` of i ... the last. Source and
destination have one form and may be one buffer. Arguments: source, destination, axis, reverse.
"""

from __future__ import annotations

import numpy as np

from tlcheck.execute.compile import formulas
from tlcheck.execute.compile.program import KernelProgram
from tlcheck.execute.compile.registry import call
from tlcheck.execute.memory.codes import Computation
from tlcheck.execute.memory.frame import Frame
from tlcheck.execute.memory.values import converted
from tlcheck.execute.ops.tile.extremes import accumulated
from tlcheck.execute.ops.tile.regions import region_of, whole
from tlcheck.execute.stops import NotModelled
from tlcheck.snapshot.ir import Expr


@call("cumsum", formula=True)
def cumsum(e: Expr, program: KernelProgram) -> Computation:
    """The destination becomes the running sums of the source; integers wrap."""
    return _scan(e, program, np.add)


@call("cummax", formula=True)
def cummax(e: Expr, program: KernelProgram) -> Computation:
    """The destination becomes the running maxima of the source."""
    return _scan(e, program, np.maximum)


def _scan(e: Expr, program: KernelProgram, combine: np.ufunc) -> Computation:
    axis, back = e.args[2].value, bool(e.args[3].value)
    if not isinstance(axis, int):
        raise NotModelled(f"{e.value} along a variable axis")
    source, target = (whole(region_of(e.args[i], program), program) for i in (0, 1))
    exact = program.options.exact
    formulas.require_sum(combine, program.options.field if source.kind.is_float else None)

    def run(frame: Frame) -> int:
        inner = source.frame(frame, target)
        for tile in (source, target):
            tile.require_inside(inner)
        lines = source.array(inner)
        lines = np.flip(lines, axis) if back else lines
        found = accumulated(combine, lines, axis)
        found = np.flip(found, axis) if back else found
        found = found.reshape(-1, *found.shape[-2:])
        settle = program.state.summed(source.kind, lines.shape[axis])
        found = found if settle is None else np.asarray(settle(found))
        target.write(inner, converted(found, source.kind, target.kind, exact))
        return 0

    return run
