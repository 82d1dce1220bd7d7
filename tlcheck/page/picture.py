"""A layout as a picture: which thread and register holds each element, or at which physical offset it lies.

A picture is a grid of cells with a value each. `layout_svg` draws it, and so does the page.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
import numpy.typing as npt

from tlcheck.algebra.algebra import Algebra, unread
from tlcheck.algebra.evaluate import Values
from tlcheck.algebra.polynomial import as_constant
from tlcheck.page.colours import by_bank, by_place, by_thread
from tlcheck.program.layouts import IndexMap
from tlcheck.snapshot.dtypes import dtype_of
from tlcheck.snapshot.expression_text import render_layout
from tlcheck.snapshot.ir import Buffer, Layout

Grid = npt.NDArray[np.int64]
COLUMNS = 128  # cells in a row at most
CELLS = 64 * COLUMNS
_WRAP = 64  # elements of a one-dimensional buffer in a row
THREAD, OFFSET = "thread", "offset"


@dataclass(frozen=True)
class Mark:
    """A cell that an atomic is about. kind: `lane` (a lane of its vector instruction), `intended`, or `written`: where
    a wrong lane goes. text: in words.
    """

    row: int
    column: int
    kind: str
    text: str


@dataclass(frozen=True)
class Window:
    """The elements that are shown: one index array (rows, columns) for each dimension. inside: which cells have one."""

    indices: tuple[Grid, ...]
    inside: npt.NDArray[np.bool_]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Picture:
    """kind: `thread`, then `values` are threads and `registers` local indices; or `offset`, then `values` are physical
    offsets in elements and `registers` is None. -1 is no element.

    colours: cell -> place in `palette`. vector: elements that an atomic adds with one instruction, 0 without one.
    width: bits of an element, 0 if unknown.
    """

    buffer: str
    title: str
    kind: str
    window: Window
    values: Grid
    registers: Grid | None
    colours: Grid
    palette: tuple[str, ...]
    notes: tuple[str, ...] = ()
    marks: tuple[Mark, ...] = ()
    vector: int = 0

    @property
    def rows(self) -> int:
        return int(self.values.shape[0])

    @property
    def columns(self) -> int:
        return int(self.values.shape[1])

    def label(self, row: int, column: int) -> str:
        """Return what stands in a cell: `12:3` is register 3 of thread 12."""
        value = int(self.values[row, column])
        if value < 0:
            return ""
        return str(value) if self.registers is None else f"{value}:{int(self.registers[row, column])}"


def extents(layout: Layout | None, buffer: Buffer | None) -> list[int | None]:
    """Return the extents of a buffer's logical dimensions; None for those that the caller decides."""
    shape = layout.input_shape if layout is not None else buffer.shape if buffer is not None else ()
    algebra = Algebra(unread)
    return [as_constant(algebra.poly(extent)) for extent in shape]


def window(shape: Sequence[int | None], at: Sequence[int] = ()) -> Window:
    """The last two dimensions around an element, or a corner; one dimension is broken into rows."""
    known = [_WRAP if extent is None else extent for extent in shape]
    place = list(at) if len(at) == len(known) else [0] * len(known)
    return _line(known, place) if len(known) == 1 else _plane(known, place)


def _line(shape: Sequence[int], at: Sequence[int]) -> Window:
    columns = min(shape[0], _WRAP)
    count = min(shape[0], CELLS)
    first = at[0] // CELLS * CELLS
    cells = first + np.arange(-(-count // columns) * columns, dtype=np.int64).reshape(-1, columns)
    inside = cells < shape[0]
    notes = [f"rows of {columns} elements"] if shape[0] > columns else []
    notes += [f"elements {first} to {int(cells[inside][-1])} of {shape[0]}"] if shape[0] > CELLS else []
    return Window((np.where(inside, cells, 0),), inside, tuple(notes))


def _plane(shape: Sequence[int], at: Sequence[int]) -> Window:
    columns = min(shape[-1], COLUMNS)
    rows = min(shape[-2], max(CELLS // columns // 2, 1) if shape[-2] > COLUMNS else CELLS // columns)
    rows = min(rows, COLUMNS)
    top, left = at[-2] // rows * rows, at[-1] // columns * columns
    row, column = np.meshgrid(np.arange(top, top + rows), np.arange(left, left + columns), indexing="ij")
    inside = (row < shape[-2]) & (column < shape[-1])
    fixed = [np.full_like(row, index) for index in at[:-2]]
    notes = [f"rows {top} to {min(top + rows, shape[-2]) - 1} of {shape[-2]}"] if rows < shape[-2] else []
    if columns < shape[-1]:
        notes.append(f"columns {left} to {min(left + columns, shape[-1]) - 1} of {shape[-1]}")
    if any(extent > 1 for extent in shape[:-2]):
        notes.append(f"the leading {'indices are' if len(shape) > 3 else 'index is'} {', '.join(map(str, at[:-2]))}")
    indices = (*fixed, np.where(inside, row, 0), np.where(inside, column, 0))
    return Window(indices, inside, tuple(notes))


def picture(
    name: str, layout: Layout | None, buffer: Buffer | None, warp: int, at: Sequence[int] = ()
) -> Picture | str:
    """Draw a buffer with its layout, row-major without one; return why, in words, where it cannot be drawn.

    warp: threads of one. at: an element that shall be seen.
    """
    shape = extents(layout, buffer)
    if not shape or any(extent == 0 for extent in shape):
        return f"{name} has no elements to draw"
    if layout is not None and layout.thread is not None:
        return _fragment(name, layout, shape, warp, at)
    return _memory(name, layout, buffer, shape, at)


def _fragment(name: str, layout: Layout, shape: Sequence[int | None], warp: int, at: Sequence[int]) -> Picture | str:
    seen = window(shape, at)
    found = IndexMap(layout, shape, seen.indices)
    assert layout.thread is not None
    thread = _grid(found(layout.thread), seen) + layout.thread_start
    offset = found.offset()
    if offset is None:
        return f"the registers of {name} depend on sizes that only the caller knows"
    values, register = np.where(seen.inside, thread, -1), _grid(offset, seen)
    colours, palette = by_thread(values, warp)
    notes = list(seen.notes)
    if layout.replicas > 1:
        notes.append(f"{layout.replicas} threads hold each element; the first is shown")
    return Picture(name, render_layout(layout, name), THREAD, seen, values, register, colours, palette, tuple(notes))


def _memory(
    name: str, layout: Layout | None, buffer: Buffer | None, shape: Sequence[int | None], at: Sequence[int]
) -> Picture | str:
    seen = window(shape, at)
    offset = IndexMap(layout, shape, seen.indices).offset() if layout is not None else _row_major(shape, seen)
    if offset is None:
        return f"the offsets of {name} depend on sizes that only the caller knows"
    values = np.where(seen.inside, _grid(offset, seen), -1)
    if buffer is not None and buffer.scope.startswith("shared"):
        colours, palette = by_bank(values, dtype_of(buffer.dtype).bits)
    else:
        colours, palette = by_place(values)
    title = render_layout(layout, name) if layout is not None else f"{name}: row-major"
    return Picture(name, title, OFFSET, seen, values, None, colours, palette, seen.notes)


def _grid(values: Values, seen: Window) -> Grid:
    return np.array(np.broadcast_to(np.asarray(values, dtype=np.int64), seen.inside.shape))


def _row_major(shape: Sequence[int | None], seen: Window) -> Values | None:
    sizes = [extent for extent in shape[1:] if extent is not None]
    if len(sizes) < len(shape) - 1:
        return None
    strides = [prod(sizes[place:]) for place in range(len(shape))]
    return sum(index * stride for index, stride in zip(seen.indices, strides, strict=True))
