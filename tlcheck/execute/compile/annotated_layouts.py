"""Annotated layouts of global tensors: where in memory a logical element lies (T.annotate_layout)."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import numpy as np

from tlcheck.execute.compile.program import KernelProgram
from tlcheck.execute.memory.codes import Code
from tlcheck.execute.memory.frame import Frame, one_value
from tlcheck.execute.memory.pages import Pages
from tlcheck.execute.memory.plain import index_of
from tlcheck.execute.memory.values import Array
from tlcheck.execute.stops import NotModelled
from tlcheck.snapshot.ir import Block, Expr, Layout
from tlcheck.snapshot.walk import postorder, statements

_MOST_POINTS = 1 << 22
HappensBefore = Callable[[Array], Array]


def annotate(program: KernelProgram) -> None:
    """Put the elements of annotated global tensors where their layouts say."""
    for stmt in statements(program.function.body):
        if isinstance(stmt, Block):
            for data, layout in stmt.layouts:
                tensor = program.state.memory.get(data.uid)
                if isinstance(tensor, Pages):
                    tensor.order = order(layout, tensor.size, program)


def order(layout: Layout, size: int, program: KernelProgram) -> HappensBefore:
    """The place in memory of each logical element, in row-major order."""
    shape = [_constant(e, program) for e in layout.input_shape]
    for var in layout.vars:
        program.variables[var.uid] = _variable(var.uid)
    ranges = {var.uid: extent for var, extent in zip(layout.vars, shape, strict=True)}
    extents = [_extent(e, ranges, program) for e in layout.index]
    if prod(extents) > size or prod(shape) != size:
        raise NotModelled("layout of another size than its tensor")
    codes = [program.code(e) for e in layout.index]
    uids = [var.uid for var in layout.vars]

    def apply(elements: Array) -> Array:
        frame = Frame(dict(zip(uids, index_of(elements, shape), strict=True)), 1, 1)
        place: Array = np.zeros(elements.shape, np.intp)
        for code, extent in zip(codes, extents, strict=True):
            place = place * extent + code.run(frame)
        return place

    return apply


def _variable(uid: int) -> Code:
    return Code(lambda frame: frame.variables[uid])


def _constant(e: Expr, program: KernelProgram) -> int:
    return one_value(program.code(e).run(Frame(dict(program.parameters), 1, 1)), "size of a layout")


def _extent(e: Expr, ranges: dict[int, int], program: KernelProgram) -> int:
    """One more than the largest value of a physical index."""
    used = list(dict.fromkeys(x.uid for x in postorder([e]) if x.op == "var" and x.uid in ranges))
    if prod(ranges[uid] for uid in used) > _MOST_POINTS:
        raise NotModelled("layout with a large index")
    grids = np.indices([ranges[uid] for uid in used], sparse=True)
    frame = Frame(dict(zip(used, grids, strict=True)), 1, 1)
    return int(np.max(program.code(e).run(frame))) + 1
