"""Find which elements of its outputs no block of a kernel writes, whatever its inputs.

Every write of every block is put into a box that holds all that it may write (`demand`): what lies in no box is never
written. A stride within a box is not seen.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from tlcheck.execute.memory.plain import evaluated
from tlcheck.execute.memory.values import Array
from tlcheck.execute.schedule.launches import grid, kernels
from tlcheck.execute.stops import NotModelled
from tlcheck.execute.worlds.blocks import coordinates
from tlcheck.execute.worlds.demand import AccessBox, boxes
from tlcheck.program.roles import WRITE, accesses, roles
from tlcheck.snapshot.ir import Buffer, Function, Stmt, Store
from tlcheck.snapshot.walk import expressions, statements

_MOST_BLOCKS = 1 << 14
_MOST_BOXES = 1 << 15
_MOST_CELLS = 1 << 22


@dataclass(frozen=True, slots=True, eq=False)
class Gap:
    """Elements of an output that nothing writes: the first one's index, how many there are, of all.

    stmt: the last one that writes the output.
    """

    buffer: Buffer
    index: tuple[int, ...]
    count: int
    every: int
    stmt: Stmt | None


def unwritten(function: Function, sizes: Mapping[str, int]) -> Iterator[Gap]:
    """The outputs that are never read and not written in full. Nothing where that is not known."""
    found: list[AccessBox] = []
    for kernel in kernels(function):
        extents = grid(kernel, sizes)
        if not 0 < prod(extents) <= _MOST_BLOCKS:
            return
        every = np.array(coordinates(np.arange(prod(extents)), extents))
        found += [box for box in boxes(kernel, sizes, every) if box.mode & WRITE]
    for buffer in roles(function).unread:
        gap = _gap(buffer, [box for box in found if box.tensor == buffer.data.uid], function, sizes)
        if gap is not None:
            yield gap


def _gap(buffer: Buffer, written: Sequence[AccessBox], function: Function, sizes: Mapping[str, int]) -> Gap | None:
    try:
        shape = tuple([int(evaluated(e, sizes)) for e in buffer.shape])
    except NotModelled:
        return None
    parts = []
    for box in written:
        if box.first is None or box.last is None or box.shape != shape:
            return None
        parts.append(np.concatenate([np.clip(box.first, 0, _limits(shape)), np.clip(box.last + 1, 0, _limits(shape))]))
    if not parts or not prod(shape):
        return None
    corners = np.unique(np.concatenate(parts, axis=1), axis=1)
    cuts = [np.unique(np.r_[0, size, corners[n], corners[len(shape) + n]]) for n, size in enumerate(shape)]
    if corners.shape[1] > _MOST_BOXES or prod(map(len, cuts)) > _MOST_CELLS:
        return None
    return _first_gap(buffer, corners, cuts, shape, _writer(function, buffer))


def _first_gap(
    buffer: Buffer, corners: Array, cuts: Sequence[Array], shape: tuple[int, ...], stmt: Stmt | None
) -> Gap | None:
    """corners: the first and the last element (exclusive) of each box, (2 axes, boxes). cuts: of each axis."""
    axes = len(shape)
    covered = np.zeros([len(cut) - 1 for cut in cuts], np.bool_)
    at = [np.searchsorted(cuts[n % axes], corners[n]) for n in range(2 * axes)]
    for number in range(corners.shape[1]):
        covered[tuple([slice(at[n][number], at[axes + n][number]) for n in range(axes)])] = True
    if covered.all():
        return None
    lengths = np.ones(covered.shape, np.int64)
    for n, cut in enumerate(cuts):
        lengths = lengths * np.diff(cut).reshape([-1 if axis == n else 1 for axis in range(axes)])
    first = np.argwhere(~covered)[0]
    index = tuple([int(cuts[n][place]) for n, place in enumerate(first)])
    return Gap(buffer, index, int(lengths[~covered].sum()), prod(shape), stmt)


def _limits(shape: Sequence[int]) -> Array:
    return np.array(shape, np.int64).reshape(-1, 1)


def _writer(function: Function, buffer: Buffer) -> Stmt | None:
    """The last statement that writes a parameter."""
    found = None
    for stmt in statements(function.body):
        into = isinstance(stmt, Store) and stmt.buffer.data.uid == buffer.data.uid
        named = (data.uid for e in expressions(stmt) for data, mode in accesses(e) if mode & WRITE)
        if into or buffer.data.uid in named:
            found = stmt
    return found
