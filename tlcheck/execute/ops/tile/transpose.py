"""T.transpose: the last two axes change places, dst[..., j, i] = src[..., i, j] (TileLang, language/copy_op.py)."""

from __future__ import annotations

from tlcheck.execute.compile.program import KernelProgram
from tlcheck.execute.compile.registry import call
from tlcheck.execute.memory.codes import Computation
from tlcheck.execute.memory.frame import Frame
from tlcheck.execute.memory.values import converted
from tlcheck.execute.ops.tile.regions import region_of, whole
from tlcheck.execute.stops import NotModelled
from tlcheck.snapshot.ir import Expr


@call("transpose", formula=True)
def transpose(e: Expr, program: KernelProgram) -> Computation:
    """The destination becomes the transposed source."""
    source, target = (whole(region_of(e.args[i], program), program) for i in (0, 1))
    exact = program.options.exact

    def run(frame: Frame) -> int:
        inner = source.frame(frame, target)
        *outer, rows, columns = source.lattice.shape(inner)
        if target.lattice.shape(inner) != (*outer, columns, rows):
            raise NotModelled("transpose between regions of unlike sizes")
        found = source.array(inner).swapaxes(-4, -3)
        found = found.reshape(-1, *found.shape[-2:])
        target.write(inner, converted(found, source.kind, target.kind, exact))
        return 0

    return run
