"""T.transpose: the last two axes change places, dst[..., j, i] = src[..., i, j] (TileLang, language/copy_op.py)."""

from __future__ import annotations

from tlcheck.execute.compile.program import KernelProgram
from tlcheck.execute.compile.registry import call
from tlcheck.execute.memory.codes import Computation
from tlcheck.execute.memory.frame import Frame
from tlcheck.execute.memory.values import converted
from tlcheck.execute.ops.tile.regions import Lattice, Tile, region_of, whole
from tlcheck.execute.stops import NotModelled
from tlcheck.snapshot.ir import Expr


@call("transpose", formula=True)
def transpose(e: Expr, program: KernelProgram) -> Computation:
    """The destination becomes the transposed source. Its elements go in the source's order, as a trace pairs them."""
    source, region = whole(region_of(e.args[0], program), program), region_of(e.args[1], program)
    *outer, rows, columns = range(len(region.sizes))
    axes = (*outer, columns, rows)
    target = Tile(region, program, Lattice([region.sizes[axis] for axis in axes], program), axes, copied=False)
    exact = program.options.exact

    def run(frame: Frame) -> int:
        inner = source.frame(frame, target)
        if target.lattice.shape(inner) != source.lattice.shape(inner):
            raise NotModelled("transpose between regions of unlike sizes")
        target.write(inner, converted(source.read(inner), source.kind, target.kind, exact))
        return 0

    return run
