"""Regions: the boxes of buffers that tile operators read and write.

A region is `region(first element, access, extents...)`; old releases also pass pointers to whole buffers. Its elements
are values with the axes (points, worlds, lanes), points in row-major order. Lanes is 1 where all threads of a block
work on one tile; in code that is written for each thread (registers of a thread, a place that depends on it) a tile
belongs to a lane.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from tlcheck.execute.compile.elements import BufferElement
from tlcheck.execute.compile.program import KernelProgram
from tlcheck.execute.events import Elements, Observer
from tlcheck.execute.memory.cells import Cells
from tlcheck.execute.memory.codes import Code, remembered
from tlcheck.execute.memory.frame import Frame, Mask
from tlcheck.execute.memory.places import Located
from tlcheck.execute.memory.values import Array, Value, kind_of
from tlcheck.execute.stops import NotModelled
from tlcheck.snapshot.ir import Alloc, Buffer, Expr
from tlcheck.snapshot.walk import statements

_MOST_KEPT = 32  # places of a tile
ZERO, ONE = Expr("int", "int32", (), 0), Expr("int", "int32", (), 1)


@dataclass(frozen=True, slots=True, eq=False)
class Region:
    """A box: starts and sizes along each axis of the buffer."""

    buffer: Buffer
    starts: tuple[Expr, ...]
    sizes: tuple[Expr, ...]

    @property
    def long(self) -> tuple[int, ...]:
        """The axes along which there is more than one element, as far as can be seen."""
        return tuple([axis for axis, size in enumerate(self.sizes) if not _is_one(size)])


def region_of(e: Expr, program: KernelProgram) -> Region:
    """The region that an argument stands for. Raises NotModelled."""
    if e.op == "call" and e.value == "region" and e.args[0].op == "load":
        return _box(e.args[0], e.args[2:], program)
    if e.op == "load":
        return _box(e, (), program)
    if e.op == "call" and e.value == "tvm_access_ptr":
        # a whole buffer; with an offset, the matrix of its last two axes that begins that many elements on
        buffer = _buffer(e.args[1].uid, program)
        offset = e.args[2]
        starts, sizes = (ZERO,) * len(buffer.shape), buffer.shape
        if offset.op == "int" and offset.value == 0:
            return Region(buffer, starts, sizes)
        shifted = replace(buffer, elem_offset=_sum(buffer.elem_offset, offset))
        return Region(shifted, starts, (*[ONE] * (len(sizes) - 2), *sizes[-2:]))
    raise NotModelled(f"region of {e.value if e.op == 'call' else e.op}")


def is_region(e: Expr) -> bool:
    """Whether an argument is a region of a buffer rather than a value."""
    return e.op == "call" and e.value in ("region", "tvm_access_ptr")


def _box(first: Expr, sizes: tuple[Expr, ...], program: KernelProgram) -> Region:
    assert first.buffer is not None
    firsts = [e.args[0] if e.op == "ramp" else e for e in first.args]
    starts = tuple([program.signs.resolved(e, size) for e, size in zip(firsts, first.buffer.shape, strict=True)])
    lanes = [replace(ONE, value=e.value) if e.op == "ramp" else ONE for e in first.args]
    if any(e.op == "ramp" and not _is_one(e.args[1]) for e in first.args):
        raise NotModelled("region with a stride")
    missing = len(starts) - len(sizes)
    if missing < 0:
        raise NotModelled("region with more extents than axes")
    return Region(first.buffer, starts, (*lanes[:missing], *sizes) if sizes else tuple(lanes))


def _sum(a: Expr | None, b: Expr) -> Expr:
    return b if a is None else Expr("add", b.dtype, (a, b))


def _buffer(uid: int, program: KernelProgram) -> Buffer:
    for buffer in program.function.buffers:
        if buffer.data.uid == uid:
            return buffer
    for stmt in statements(program.function.body):
        if isinstance(stmt, Alloc) and stmt.buffer.data.uid == uid:
            return stmt.buffer
    raise NotModelled("pointer to no buffer")


def _is_one(e: Expr) -> bool:
    return e.op == "int" and e.value == 1


class Lattice:
    """The points of a box in row-major order. Sizes that differ between lanes make it the largest box, with holes."""

    def __init__(self, sizes: Sequence[Expr], program: KernelProgram) -> None:
        self._sizes = [remembered(program.code(s)) for s in sizes]
        codes = self._sizes
        self.needs: frozenset[int] = frozenset().union(*(c.needs for c in codes))
        self.steady = all(c.steady for c in codes)
        self._is_even = all(c.uniform for c in codes)

    @property
    def axes(self) -> int:
        """The number of its axes; without any it has one point."""
        return len(self._sizes)

    def shape(self, frame: Frame) -> tuple[int, ...]:
        """The number of points along each axis."""
        return tuple([_largest(size.run(frame)) for size in self._sizes])

    @property
    def last(self) -> int:
        """The size of its last axis; 1 where that is no constant."""
        size = self._sizes[-1] if self._sizes else None
        if size is None or not size.uniform or size.needs:
            return 1
        try:
            return _largest(size.run(Frame({}, 1, 1)))
        except KeyError:  # a variable, which has its value only when the kernel runs
            return 1

    def axis(self, number: int) -> Code:
        """The coordinate along one axis, (points, 1, 1)."""
        return Code(lambda frame: _coordinates(self.shape(frame))[number], self.needs, self.steady)

    def holes(self, frame: Frame) -> Mask | None:
        """The points that a lane does not have; None where all lanes have all."""
        if self._is_even:
            return None
        sizes = [size.run(frame) for size in self._sizes]
        found: Mask | None = None
        for size, at in zip(sizes, _coordinates(self.shape(frame)), strict=False):
            if isinstance(size, np.ndarray):
                beyond = at >= size
                found = beyond if found is None else found | beyond
        return found if found is None or found.any() else None


def _largest(size: Value) -> int:
    return max(0, int(size.max() if isinstance(size, np.ndarray) else size))


@lru_cache(maxsize=256)
def _coordinates(shape: tuple[int, ...]) -> tuple[Array, ...]:
    if not shape:
        return (np.zeros((1, 1, 1), np.int64),)
    return tuple([grid.reshape(-1, 1, 1) for grid in np.indices(shape, dtype=np.int64)])


class Tile:
    """The elements of a region, reached through a lattice of its own or of the region that an operator loops over."""

    def __init__(
        self, region: Region, program: KernelProgram, lattice: Lattice, axes: Sequence[int], *, copied: bool = True
    ) -> None:
        """axes: the axis of the region that each axis of the lattice goes along; the others stay at their start.
        copied: by an operator whose elements out of bounds TileLang leaves out, in memory of the block too.
        """
        self._bounded = not copied and program.options.source and not program.options.midway
        self.program, self.lattice, self._observers = program, lattice, program.observers
        self.kind = kind_of(region.buffer.dtype)
        self.name, self.buffer = region.buffer.name, region.buffer
        self._starts = [remembered(program.code(e)) for e in region.starts]
        self._uneven = [start for start in self._starts if not start.uniform]
        steps = {axis: number for number, axis in enumerate(axes)}
        if not lattice.axes:
            steps = {len(region.starts) - 1: 0}
        self._firsts = [_of_frame(start) for start in self._starts]
        indices = [
            _moved(start, lattice.axis(steps[axis])) if axis in steps else start
            for axis, start in enumerate(self._firsts)
        ]
        self.place = program.addresses.place(region.buffer, indices)
        if axes and axes[-1] == len(region.starts) - 1 and steps[axes[-1]] == lattice.axes - 1:
            self.place.run = lattice.last
        self._keeps = lattice.steady and self.place.is_fixed
        self._kept: dict[tuple[object, ...], Located] = {}  # by where it starts
        self._kept_in: Cells | None = None

    @property
    def root(self) -> int:
        """The allocation that it lies in."""
        return self.place.root

    @property
    def shared(self) -> bool:
        """Whether it lies in shared memory."""
        return self.buffer.scope in ("shared", "shared.dyn")

    def flat(self, frame: Frame) -> Array:
        """Return where its elements are, as indices into the flat data of its allocation."""
        return self.place.memory.flat_position(self.located(frame).position)

    def located(self, frame: Frame) -> Located:
        """Where its elements are. In memory of a block that is the same object for the same starts."""
        place, memory = self.place, self.place.memory
        if frame.lanes > 1 or not self._keeps or not isinstance(memory, Cells):
            return place.located(frame)
        if self._kept_in is not memory or len(self._kept) >= _MOST_KEPT:
            self._kept, self._kept_in = {}, memory
        starts = [first.run(frame) for first in self._firsts]
        key = (self.lattice.shape(frame), *[s.tobytes() if isinstance(s, np.ndarray) else s for s in starts])
        if place.unseen or key not in self._kept:
            self._kept[key] = place.located(frame)
        return self._kept[key]

    def frame(self, frame: Frame, *others: Tile) -> Frame:
        """The frame in which an operator on this tile and others runs: lanes are those of the caller only where one
        of the tiles depends on them."""
        if any(tile.differs(frame) for tile in (self, *others)):
            return frame
        return block_frame(frame)

    def differs(self, frame: Frame) -> bool:
        """Whether each lane has a tile of its own."""
        memory = self.place.memory
        if isinstance(memory, Cells) and memory.data.shape[2] > 1:
            return True
        return any(differs(start.run(frame), frame.active) for start in self._uneven)

    def read(self, frame: Frame, unused: Mask | None = None) -> Array:
        """The elements, (points, worlds, lanes or 1); the buffer's safe value, or 0, where the region leaves it.

        unused: the points that the operator leaves out.
        """
        located = self._inside(frame, unused)
        if self._observers.hear(Observer.tile_accessed):
            mask = self._mask(frame, located)
            self._observers.tile_accessed(self.place, located.position, mask, frame.lanes, None)
        self._observers.acting(frame)
        found = self.place.memory.take(located.position, self.kind)
        self._observers.strayed(located.outside)
        self._left(frame, located, stores=False)
        if found.ndim < 3:
            found = found[None]
        if located.outside is None:
            return found
        return np.where(located.outside, self.kind.array.type(self.place.otherwise), found)

    def _left(self, frame: Frame, located: Located, stores: bool) -> None:
        """Publish that active lanes have points out of a tensor's bounds."""
        outside, holes = located.outside, self.lattice.holes(frame)
        if outside is None or not self._observers.hear(Observer.region_left):
            return
        outside = outside if holes is None else outside & ~holes
        if self.place.is_left(outside, frame):
            self._observers.region_left(self.place, frame, outside, stores)

    def elements(self, frame: Frame) -> Elements:
        """Return the region's elements, as an operation that the author waits for himself holds them."""
        located = self.located(frame)
        return Elements(self.place, located.position, self._mask(frame, located), frame.lanes)

    def write(self, frame: Frame, values: Value) -> None:
        """Write elements in the active lanes; those outside the buffer are dropped."""
        located = self._inside(frame)
        mask = self._mask(frame, located)
        self._left(frame, located, stores=True)
        self._observers.tile_accessed(self.place, located.position, mask, frame.lanes, values)
        self.place.memory.put(located.position, values, mask, self.kind)
        self._observers.tile_written(self.place, located.position, mask, frame.lanes, values)

    def combine(self, frame: Frame, values: Value, operation: np.ufunc) -> None:
        """Combine values into the elements, once for each lane that is active; several may have one element."""
        located = self._inside(frame)
        position = self.place.memory.flat_position(located.position)
        shape = np.broadcast_shapes((1, frame.worlds, frame.lanes), position.shape, np.shape(values))
        mask = self._mask(frame, located)
        self._left(frame, located, stores=True)
        where, terms = np.broadcast_to(position, shape), np.broadcast_to(values, shape)
        chosen: Any = ... if mask is None else np.broadcast_to(mask, shape)
        where, terms = where[chosen].reshape(-1), terms[chosen].reshape(-1)
        self._observers.combined(frame, position, mask)
        if operation is np.add and self._observers.hear(Observer.added):
            worlds = np.broadcast_to(np.arange(frame.worlds)[:, None], shape)[chosen].reshape(-1)
            origin = self.place.state.origin(frame)
            self._observers.added(self.place.memory, where, terms, worlds, np.full_like(worlds, -1), origin)
        combine_into(self.place, where, terms, operation)

    def require_inside(self, frame: Frame, unused: Mask | None = None) -> None:
        """Raise Illegal where active lanes have a region that leaves its buffer: of an operator without guards.

        unused: the points that the operator leaves out.
        """
        located = self.located(frame)
        for gone in (self.lattice.holes(frame), unused):
            if gone is not None and located.outside is not None:
                located = replace(located, outside=located.outside & ~gone)
        self.place.allowed(located, frame)

    def _inside(self, frame: Frame, unused: Mask | None = None) -> Located:
        """Return where its elements are. Raises Illegal where those of an author's operator without guards leave memory
        of the block.
        """
        if self._bounded and isinstance(self.place.memory, Cells):
            self.require_inside(frame, unused)
        return self.located(frame)

    def mask(self, frame: Frame) -> Mask | None:
        """The points and lanes that take part: active, of the lattice, and in the buffer."""
        return self._mask(frame, self.located(frame))

    def _mask(self, frame: Frame, located: Located) -> Mask | None:
        mask = frame.active
        for gone in (located.outside, self.lattice.holes(frame)):
            if gone is not None:
                mask = ~gone if mask is None else mask & ~gone
        return mask

    def array(self, frame: Frame) -> Array:
        """The elements with the axes of the lattice: (*shape, worlds, lanes or 1)."""
        found = self.read(frame)
        return found.reshape(*self.lattice.shape(frame), *found.shape[1:])


def combine_into(place: BufferElement, where: Array, terms: Array, operation: np.ufunc) -> None:
    """Combine terms into elements at indices into the flat memory, some of them several times."""
    place.memory.accumulate(where, terms, operation, place.kind)
    if place.kind.is_float and not place.state.options.exact:
        elements, times = np.unique(where, return_counts=True)
        settle = place.state.summed(place.kind, times)
        if settle is not None:
            place.memory.put(elements, settle(place.memory.take(elements, place.kind)), None, place.kind)


def whole(region: Region, program: KernelProgram) -> Tile:
    """The tile of all elements of a region, with all of its axes, for an operator that copies none of them."""
    return Tile(region, program, Lattice(region.sizes, program), range(len(region.sizes)), copied=False)


def block_frame(frame: Frame) -> Frame:
    """A frame with one lane for each world: for what a block does once if one of its threads is active."""
    active, leaders = (None, None) if frame.active is None else _of_block(frame.active.tobytes(), frame.active.shape)
    inner = Frame(frame.variables, frame.worlds, 1, active)
    inner.leaders = frame.leaders if frame.lanes == 1 else leaders
    return inner


@lru_cache(maxsize=64)
def _of_block(active: bytes, shape: tuple[int, ...]) -> tuple[Mask, Array | None]:
    """The worlds with an active lane, (worlds, 1), and the first one of each: the same objects for equal lanes."""
    lanes = np.frombuffer(active, np.bool_).reshape(shape)
    return np.asarray(lanes.any(axis=-1, keepdims=True)), _leaders(lanes)


def differs(value: Value, active: Mask | None = None) -> bool:
    """Whether a value is another one in different active lanes of a block."""
    if not isinstance(value, np.ndarray) or not value.ndim or value.shape[-1] == 1:
        return False
    other = value != _of_leaders(value, _leaders(active))
    return bool((other if active is None else other & active).any())


def _leaders(active: Mask | None) -> Array | None:
    """The first active lane of each world."""
    return None if active is None or active.shape[-1] == 1 else np.asarray(active.argmax(axis=-1))


def _of_leaders(value: Array, leaders: Array | None) -> Array:
    """Return what these lanes have of a value, (..., worlds, 1)."""
    if leaders is None:
        return value[..., :1]
    if len(leaders) == 1:
        return np.asarray(value[..., leaders])
    own = np.arange(len(leaders)) if value.shape[-2] > 1 else 0
    return np.asarray(value[..., own, leaders, None])


def _of_frame(start: Code) -> Code:
    """A start with as many lanes as its frame: of a block what its first active thread has, as all others."""
    if start.uniform:
        return start

    def run(frame: Frame) -> Value:
        value = start.run(frame)
        if frame.lanes > 1 or not isinstance(value, np.ndarray) or value.shape[-1] == 1:
            return value
        return _of_leaders(value, frame.leaders)

    return Code(run, start.needs, start.steady, growths=start.growths)


def _moved(start: Code, step: Code) -> Code:
    return Code(
        lambda frame: start.run(frame) + step.run(frame), start.needs | step.needs, start.steady and step.steady
    )
