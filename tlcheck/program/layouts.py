"""Layouts and fragments as functions: where a logical element lies, and which element a thread's register holds."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from tlcheck.algebra.algebra import Algebra, FragmentTable, unread
from tlcheck.algebra.evaluate import Evaluator, Values
from tlcheck.algebra.polynomial import Poly, add, as_constant, constant
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


def as_laid_out(
    layout: Layout, indices: Sequence[Poly], shape: Sequence[Poly], algebra: Algebra
) -> tuple[list[Poly], list[Poly]]:
    """An element's index and the buffer's shape, as the layout counts: of a view (`T.reshape`) it has as many elements
    in another shape.
    """
    wanted = [as_constant(algebra.poly(extent)) for extent in layout.input_shape]
    own = [as_constant(extent) for extent in shape]
    if wanted == own or None in (*wanted, *own) or prod(_known(wanted)) != prod(_known(own)):
        return list(indices), list(shape)
    number = flatten(indices, row_major(shape, algebra), algebra)
    found: list[Poly] = []
    for size in reversed(_known(wanted)):
        found.insert(0, algebra.floormod(number, size))
        number = algebra.floordiv(number, size)
    return found, [constant(size) for size in _known(wanted)]


def _known(sizes: Sequence[int | None]) -> list[int]:
    return [size for size in sizes if size is not None]


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
    """Return how often a layout holds a buffer of so many dimensions: its leading variables count the stages of a
    pipeline. 1 where these are not its outermost dimensions.
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


class IndexMap:
    """A layout as numbers: where elements lie whose indices are given, and which threads have them.

    shape: of the logical element, None for what only the caller knows. indices: one array for each dimension.
    replica: of those that hold an element.
    """

    def __init__(
        self, layout: Layout, shape: Sequence[int | None], indices: Sequence[Values], replica: Values = 0
    ) -> None:
        self._layout, self._algebra = layout, Algebra(unread)
        values: dict[int, Values] = {}
        for var, extent, index in zip(layout.vars, shape, indices, strict=True):
            self._algebra.ranges[var.uid] = (0, None if extent is None else extent - 1)
            values[var.uid] = index
        if layout.replica is not None:
            self._algebra.ranges[layout.replica.uid] = (0, layout.replicas - 1)
            values[layout.replica.uid] = replica
        self._known = frozenset(values)
        self._evaluate = Evaluator(self._algebra, values)

    def __call__(self, e: Expr) -> Values:
        """The value of one of the layout's expressions."""
        return self._evaluate(self._algebra.poly(e))

    def offset(self, first: int = 0) -> Values | None:
        """The physical index, from a dimension on, as one number: by the extents of the layout's whole image. None
        where these depend on what only the caller knows.
        """
        total: Values = 0
        for number, index in enumerate(self._layout.index[first:]):
            poly = self._algebra.poly(index)
            high = self._algebra.bounds(poly)[1]
            if not self._algebra.variables(poly) <= self._known or (high is None and number):
                return None
            total = total * ((high or 0) + 1) + self._evaluate(poly)
        return total


def fragment_table(layout: Layout) -> FragmentTable | None:
    """The inverse of a fragment of constant shape; None for others, for very large ones and where two elements share
    a register.
    """
    # the extents of a shape; None where one is not constant
    algebra = Algebra(unread)
    sizes = [as_constant(algebra.poly(extent)) for extent in layout.input_shape]
    known = [size for size in sizes if size is not None]
    logical = known if len(known) == len(sizes) else None
    if layout.thread is None or logical is None:
        return None
    shape = [*logical, *([] if layout.replica is None else [layout.replicas])]
    if not 0 < prod(shape) <= MAX_TABLE:
        return None
    points = np.indices(shape, sparse=True)
    found = IndexMap(layout, logical, points[: len(logical)], 0 if layout.replica is None else points[-1])
    offset = found.offset()
    if offset is None:
        return None
    local, thread = (np.broadcast_to(values, shape) for values in (offset, found(layout.thread)))
    numbers = np.arange(prod(logical), dtype=np.int64).reshape([*logical, *([1] * (local.ndim - len(logical)))])
    numbers = np.broadcast_to(numbers, local.shape)
    registers, threads = int(local.max()) + 1, int(thread.max()) + 1
    if local.min() < 0 or thread.min() < 0 or registers * threads > MAX_TABLE * 4:
        return None
    elements = np.full(registers * threads, -1, dtype=np.int64)
    elements[(thread * registers + local).ravel()] = numbers.ravel()
    if (elements[thread * registers + local] != numbers).any():
        return None
    return FragmentTable(registers, threads, elements)


def clash(layout: Layout) -> Clash | None:
    """Two logical elements with one physical index; twice the same one where it lies before the buffer.

    Dimensions that the layout hands through unchanged cannot cause any, and are left out; None as well where the rest
    is not constant or larger than `MAX_TABLE`.
    """
    algebra = Algebra(unread)
    through = [v.uid for v in layout.vars if sum(1 for e in layout.index if e is v) == 1]
    through = [u for u in through if sum(1 for e in layout.index if u in algebra.variables(algebra.poly(e))) == 1]
    pairs = zip(layout.vars, layout.input_shape, strict=True)
    shape = _enumerable([1 if var.uid in through else as_constant(algebra.poly(extent)) for var, extent in pairs])
    if shape is None:
        return None
    offset = IndexMap(layout, shape, np.indices(shape, sparse=True)).offset()
    if offset is None:
        return None
    offsets = np.broadcast_to(offset, shape).ravel()
    if offsets.min() < 0:
        lowest = tuple(map(int, np.unravel_index(int(offsets.argmin()), shape)))
        return lowest, lowest, int(offsets.min())
    taken = np.bincount(offsets)
    place = int(taken.argmax())
    if taken[place] < 2:
        return None
    one, other = (np.unravel_index(int(p), shape) for p in np.flatnonzero(offsets == place)[:2])
    return tuple(map(int, one)), tuple(map(int, other)), place


def negative(layout: Layout) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """The first element that a layout puts at a negative index, and that index; None for none, for layouts whose shape
    is not constant and for very large ones.
    """
    algebra = Algebra(unread)
    shape = _enumerable([as_constant(algebra.poly(extent)) for extent in layout.input_shape])
    if shape is None:
        return None
    points = np.indices(shape).reshape(len(shape), -1)
    places = IndexMap(layout, shape, list(points))
    image = np.array([np.broadcast_to(places(e), points.shape[1]) for e in layout.index])
    below = np.flatnonzero((image < 0).any(axis=0))
    if not below.size:
        return None
    first = below[0]
    return tuple(points[:, first].tolist()), tuple(image[:, first].tolist())


def _enumerable(sizes: Sequence[int | None]) -> list[int] | None:
    """The sizes of a shape whose elements can be looked at one by one; None for unknown ones, and too many elements."""
    shape = [size for size in sizes if size is not None]
    return shape if len(shape) == len(sizes) and 0 < prod(shape) <= MAX_TABLE else None
