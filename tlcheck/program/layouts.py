"""Layouts and fragments as functions: where a logical element lies, and which element a thread's register holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

import numpy as np
import numpy.typing as npt

from tlcheck.algebra.algebra import Algebra, FragmentTable, Poly, add, as_constant, constant, unread
from tlcheck.algebra.evaluate import Dimension, Evaluator, chunks
from tlcheck.program.walk import Program
from tlcheck.snapshot.ir import Expr, Layout

MAX_TABLE = 1 << 22
Clash = tuple[tuple[int, ...], tuple[int, ...], int]  # two elements and their one physical offset


def layouts(*programs: Program) -> dict[str, Layout]:
    """Root -> its layout, by the first program that has one for it: `intent` annotates, `tile-ops` has all that were
    inferred.
    """
    found: dict[str, Layout] = {}
    for program in programs:
        for block in program.blocks:
            for data, layout in block.layouts:
                found.setdefault(program.roots.of(data), layout)
    return found


def flatten(indices: Sequence[Poly], strides: Sequence[Poly], algebra: Algebra) -> Poly:
    """The offset of an element, in elements."""
    total: Poly = {}
    for index, stride in zip(indices, strides, strict=True):
        total = add(total, algebra.product(index, stride))
    return total


def row_major(shape: Sequence[Poly], algebra: Algebra) -> list[Poly]:
    """Strides of a compact array."""
    strides: list[Poly] = [constant(1)]
    for extent in reversed(shape[1:]):
        strides.insert(0, algebra.product(strides[0], extent))
    return strides[: len(shape)]


def physical(layout: Layout, indices: Sequence[Poly], shape: Sequence[Poly], algebra: Algebra) -> list[Poly]:
    """The layout's image of a logical index. A buffer that got leading dimensions since (a stage of a pipeline) keeps
    them; where the layout has them and the index not yet, it is in the first stage.
    """
    indices = [*([constant(0)] * (len(layout.vars) - len(indices))), *indices]
    extra = len(indices) - len(layout.vars)
    values = {v.uid: i for v, i in zip(layout.vars, indices[extra:], strict=True)}
    return [*indices[:extra], *(algebra.instantiate(e, values) for e in layout.index)]


def physical_shape(layout: Layout, shape: Sequence[Poly], algebra: Algebra) -> list[Poly] | None:
    """Extents of the physical index: one more than its largest value in each dimension; None if unknown."""
    for var, extent in zip(layout.vars, layout.input_shape, strict=True):
        size = as_constant(algebra.poly(extent))
        algebra.ranges[var.uid] = (0, None if size is None else size - 1)
    image = _image(layout, algebra)
    return None if image is None else [*shape[: max(len(shape) - len(layout.vars), 0)], *image]


def stages(layout: Layout, rank: int, algebra: Algebra) -> int:
    """How often a layout holds a buffer of so many dimensions: its leading variables count the stages of a pipeline.
    1 where these are not its outermost dimensions.
    """
    leading = layout.vars[: max(len(layout.vars) - rank, 0)]
    places = [i for i in layout.index if as_constant(algebra.poly(i)) is None][: len(leading)]
    if [(i.op, i.uid) for i in places] != [("var", v.uid) for v in leading]:
        return 1
    counts = [as_constant(algebra.poly(e)) for e in layout.input_shape[: len(leading)]]
    return prod(n or 1 for n in counts)


def _image(layout: Layout, algebra: Algebra) -> list[Poly] | None:
    """Extents of the layout's image, for the ranges that the algebra has for its variables."""
    extents: list[Poly] = []
    for index in layout.index:
        high = algebra.bounds(algebra.instantiate(index, {}))[1]
        if high is None:
            return None
        extents.append(constant(high + 1))
    return extents


def fragment_table(layout: Layout) -> FragmentTable | None:
    """The inverse of a fragment of constant shape; None for others, for very large ones and where two elements share
    a register.
    """
    if layout.thread is None:
        return None
    algebra = Algebra(unread)
    space: list[Dimension] = []
    for var, extent in zip(layout.vars, layout.input_shape, strict=True):
        size = as_constant(algebra.poly(extent))
        if size is None:
            return None
        space.append(Dimension(var.uid, 0, size))
    if layout.replica is not None:
        space.append(Dimension(layout.replica.uid, 0, layout.replicas))
    for dim in space:
        algebra.ranges[dim.uid] = (0, dim.extent - 1)
    points = int(np.prod([d.extent for d in space], dtype=np.int64))
    if points > MAX_TABLE:
        return None
    (env,) = chunks(space, max(points, 1))
    return _invert(algebra, layout, space, env)


def _invert(
    algebra: Algebra, layout: Layout, space: list[Dimension], env: Mapping[int, npt.NDArray[np.int64] | int]
) -> FragmentTable | None:
    evaluate = Evaluator(algebra, env)
    shape = tuple(d.extent for d in space)
    assert layout.thread is not None
    extents = physical_shape(layout, [algebra.poly(e) for e in layout.input_shape], algebra)
    if extents is None:
        return None
    index = [algebra.poly(e) for e in layout.index]
    local = np.broadcast_to(evaluate(flatten(index, row_major(extents, algebra), algebra)), shape)
    thread = np.broadcast_to(evaluate(algebra.poly(layout.thread)), shape)
    dims = len(layout.vars)
    logical = np.arange(int(np.prod(shape[:dims], dtype=np.int64)), dtype=np.int64).reshape(shape[:dims])
    if len(shape) > dims:
        logical = logical[..., None]
    logical = np.broadcast_to(logical, shape)
    registers, threads = int(local.max()) + 1, int(thread.max()) + 1
    if local.min() < 0 or thread.min() < 0 or registers * threads > MAX_TABLE * 4:
        return None
    elements = np.full(registers * threads, -1, dtype=np.int64)
    elements[(thread * registers + local).ravel()] = logical.ravel()
    if (elements[thread * registers + local] != logical).any():
        return None
    return FragmentTable(registers, threads, elements)


def clash(layout: Layout) -> Clash | None:
    """Two logical elements with one physical index. Dimensions that the layout hands through unchanged cannot cause
    any, and
    are left out; None as well where the rest is not constant or larger than `MAX_TABLE`."""
    algebra = Algebra(unread)
    through = [v.uid for v in layout.vars if sum(1 for e in layout.index if e is v) == 1]
    through = [u for u in through if sum(1 for e in layout.index if _uses(algebra, e, u)) == 1]
    space: list[Dimension] = []
    for var, extent in zip(layout.vars, layout.input_shape, strict=True):
        size = 1 if var.uid in through else as_constant(algebra.poly(extent))
        if size is None:
            return None
        algebra.ranges[var.uid] = (0, size - 1)
        space.append(Dimension(var.uid, 0, size))
    algebra.forget()
    extents = _image(layout, algebra)
    points = int(np.prod([d.extent for d in space], dtype=np.int64))
    if extents is None or not 0 < points <= MAX_TABLE:
        return None
    (env,) = chunks(space, points)
    index = [algebra.poly(e) for e in layout.index]
    shape = tuple(d.extent for d in space)
    offsets = np.broadcast_to(
        Evaluator(algebra, env)(flatten(index, row_major(extents, algebra), algebra)), shape
    ).ravel()
    taken = np.bincount(offsets)
    offset = int(taken.argmax())
    if taken[offset] < 2:
        return None
    one, other = (np.unravel_index(int(p), shape) for p in np.flatnonzero(offsets == offset)[:2])
    return tuple(map(int, one)), tuple(map(int, other)), offset


def _uses(algebra: Algebra, e: Expr, uid: int) -> bool:
    return uid in algebra.variables(algebra.poly(e))
