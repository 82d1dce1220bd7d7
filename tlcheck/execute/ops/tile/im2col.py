"""T.im2col: patches of an image as rows of a matrix (TileLang, language/copy_op.py, op/copy.cc).

The image is N x H x W x C. Row m of the result is a place of the kernel (image, row, column of the output, in this
order), column k an element of the patch (row, column of the kernel, channel). A tile holds the rows from
nhw_step * rows and the columns from c_step * columns on; what lies outside of the image is 0. Arguments: image, tile,
nhw_step, c_step, kernel, stride, dilation, pad.
"""

from __future__ import annotations

import numpy as np

from tlcheck.execute.compile.program import KernelProgram
from tlcheck.execute.compile.registry import call
from tlcheck.execute.memory.codes import Code, Computation
from tlcheck.execute.memory.frame import Frame, one_per_world
from tlcheck.execute.memory.values import Array, Value
from tlcheck.execute.ops.tile.regions import block_frame, region_of, whole
from tlcheck.execute.stops import NotModelled
from tlcheck.snapshot.ir import Expr


@call("im2col", "c2d_im2col", formula=True)
def im2col(e: Expr, program: KernelProgram) -> Computation:
    """The tile becomes a block of the matrix of patches."""
    image, target = region_of(e.args[0], program), whole(region_of(e.args[1], program), program)
    if len(image.buffer.shape) != 4:
        raise NotModelled("im2col of an image that is not N x H x W x C")
    row, column = program.code(e.args[2]), program.code(e.args[3])
    patch = _Patches(image.buffer.shape, [int(a.value or 0) for a in e.args[4:8]], program)
    at: list[Value] = [0] * 4
    place = program.addresses.place(image.buffer, [_kept(at, axis) for axis in range(4)])

    def run(frame: Frame) -> int:
        inner = block_frame(frame)
        rows, columns = target.lattice.shape(inner)[-2:]
        m = _first(row, frame, rows, program) + np.arange(rows * columns).reshape(-1, 1, 1) // columns
        k = _first(column, frame, columns, program) + np.arange(rows * columns).reshape(-1, 1, 1) % columns
        at[:], inside = patch.elements(m, k, inner)
        located = place.located(inner)
        found = place.memory.take(located.position, target.kind)
        missing = ~inside if located.outside is None else located.outside | ~inside
        target.write(inner, np.where(missing, target.kind.array.type(0), found))
        return 0

    return run


def _first(step: Code, frame: Frame, size: int, program: KernelProgram) -> Value:
    return one_per_world(step.run(frame), "step of im2col") * size


def _kept(at: list[Value], axis: int) -> Code:
    return Code(lambda frame: at[axis])


class _Patches:
    """A record of which element of the image an element of the matrix is."""

    def __init__(self, shape: tuple[Expr, ...], form: list[int], program: KernelProgram) -> None:
        """form: kernel, stride, dilation, pad."""
        self._shape = [program.code(size) for size in shape]
        self._form = form

    def elements(self, m: Value, k: Value, frame: Frame) -> tuple[list[Value], Array]:
        """The indices into the image, and which of them are inside."""
        kernel, stride, dilation, pad = self._form
        _, height, width, channels = (size.run(frame) for size in self._shape)
        reach = (kernel - 1) * dilation + 1
        down, across = (height + 2 * pad - reach) // stride + 1, (width + 2 * pad - reach) // stride + 1
        y = m % (down * across) // across * stride + k // (kernel * channels) * dilation - pad
        x = m % across * stride + k // channels % kernel * dilation - pad
        inside = np.asarray((y >= 0) & (y < height) & (x >= 0) & (x < width))
        return [m // (down * across), np.where(inside, y, 0), np.where(inside, x, 0), k % channels], inside
