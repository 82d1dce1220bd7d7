"""The elements and cells that lanes access in one statement, one by one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from tlcheck.execute.memory.cells import Cells, Position
from tlcheck.execute.memory.frame import Mask
from tlcheck.execute.memory.pages import Pages
from tlcheck.execute.memory.values import Array, Value

if TYPE_CHECKING:
    from tlcheck.execute.memory.places import Place

Chosen = Callable[[Array], Mask]  # which of some flat cells matter
About = tuple[Position, Mask, Any]  # an access: its position, its active lanes, and the thread of each element
_SMALL = 1 << 15  # bytes of an array that is compared; of a larger one the same object counts
_MOST_KEPT = 1 << 20  # cells


@dataclass(frozen=True, eq=False)
class AccessedCells:
    """The cells of one access: flat index, world, thread and warp of each.

    warp: among those of its cluster. warps: of a block. size: of the allocation, in cells. leaders: of each world, the
    first one of its cluster; None where each block is by itself.
    """

    cell: Array
    world: Array
    thread: Array
    warp: Array
    warps: int
    size: int
    leaders: Array | None = None

    @cached_property
    def row(self) -> Array:
        """The warp of each among those of all worlds."""
        return np.asarray(self.world * self.warps + self.warp % self.warps)

    @cached_property
    def cluster(self) -> Array:
        """A number for the cluster of each."""
        return np.asarray(self.world if self.leaders is None else self.leaders[self.world])

    @cached_property
    def slot(self) -> Array:
        """The index of each in arrays of (warps, size), flat."""
        return self.warp * self.size + self.cell


@dataclass(frozen=True, slots=True)
class Disagreement:
    """Two threads that have stored different values to one element in one statement. last: whose value is there."""

    cell: int
    world: int
    thread: int
    last_world: int
    last_thread: int


class AccessedElements:
    """The elements that active lanes access: by vector lane, world and lane. cell: of each the first one, flat."""

    def __init__(self, place: Place, position: Position, active: Mask, chosen: Chosen | None = None) -> None:
        """chosen: which of the cells matter; None for all."""
        where = place.memory.flat_position(position)
        shape = np.broadcast_shapes((1, 1, 1), where.shape, active.shape)
        self._place, self._shape = place, shape
        self._chosen: Any = slice(None)
        if active.all():
            self._at: Any = ...
        elif active.ndim == 2:
            self._at = (slice(None), *np.nonzero(np.broadcast_to(active, shape[1:])))
        else:
            self._at = np.nonzero(np.broadcast_to(active, shape))
        self.cell = self.of(where)
        if chosen is not None:
            self._chosen = chosen(self.cell)
            self.cell = self.cell[self._chosen]

    def of(self, value: Value) -> Array:
        """A value in each of the elements."""
        return np.asarray(np.broadcast_to(value, self._shape)[self._at].reshape(-1)[self._chosen])

    def world(self, worlds: int) -> Array:
        """The world of each; several of `worlds` may follow one another."""
        return self.of((np.arange(self._shape[1]) % worlds).reshape(-1, 1))

    def lane(self) -> Array:
        """The lane of each."""
        return self.of(np.arange(self._shape[2]))

    def cells(self, worlds: int, warps: int, width: int, by: Any = None) -> AccessedCells:
        """Their cells, in so many worlds and warps of a block. width: threads of a warp. by: the thread of each
        element, if not its lane.
        """
        cell, world, thread = self.cell, self.world(worlds), self.lane() if by is None else self.of(by)
        memory, parts = self._place.memory, self._parts
        if parts > 1:
            assert isinstance(memory, Cells)
            steps = np.arange(parts).reshape(-1, 1) * memory.stride
            cell = (cell + steps).reshape(-1)
            world, thread = np.tile(world, parts), np.tile(thread, parts)
        return AccessedCells(cell, world, thread, thread // width, warps, memory.flat.size)

    def unchanged(self, value: Value) -> Mask:
        """Return which of their cells a write leaves as they are: those of an element together."""
        before: Any = self._place.memory.take(self.cell, self._place.kind)
        return np.tile(_same(before, self.of(value)), self._parts)

    def bits(self, value: Array) -> Array:
        """The bits of a value for each of their cells."""
        found = self.of(value)
        return np.tile(
            found.astype(np.float64).view(np.int64) if found.dtype.kind == "f" else found.astype(np.int64), self._parts
        )

    @property
    def _parts(self) -> int:
        memory = self._place.memory
        return memory.parts(self._place.kind) if isinstance(memory, Cells) else 1

    def disagreement(self, worlds: int, value: Value) -> Disagreement | None:
        """An element into which two lanes have just written different values; None for none.

        Of lanes that write one element the last one wins, so that the others find another value there than their own.
        """
        memory, kind = self._place.memory, self._place.kind
        lost = np.flatnonzero(~_same(memory.take(self.cell, kind), self.of(value).astype(kind.array)))
        if not len(lost):
            return None
        at = int(lost[0])
        world, lane = self.world(worlds), self.lane()
        elsewhere = (world != world[at]) & isinstance(memory, Pages)
        others = np.flatnonzero((self.cell == self.cell[at]) & ((lane != lane[at]) | elsewhere))
        if not len(others):
            return None
        last = others[-1]
        return Disagreement(int(self.cell[at]), int(world[at]), int(lane[at]), int(world[last]), int(lane[last]))


class KnownAccesses:
    """The elements and cells of accesses to shared memory: found once for a place and what is equal about them."""

    def __init__(self) -> None:
        self._kept: dict[tuple[object, ...], tuple[About, tuple[AccessedElements, AccessedCells]]] = {}
        self._size = 0

    def of(
        self,
        place: Place,
        about: About,
        core: int,
        find: Callable[[Place, About, int], tuple[AccessedElements, AccessedCells]],
    ) -> tuple[AccessedElements, AccessedCells]:
        """Return the result of `find`, from now or before. core: by how much the warp of a product is further."""
        memory = place.memory
        if not isinstance(memory, Cells):
            return find(place, about, core)
        key = (place, memory.times, core, *map(_sign, about))
        known = self._kept.get(key)
        if known is None:
            known = about, find(place, about, core)
            self._size += 64 + len(known[1][0].cell)
            if self._size > _MOST_KEPT:
                self.clear()
            self._kept[key] = known
        return known[1]

    def clear(self) -> None:
        """Forget all of them."""
        self._kept.clear()
        self._size = 0


def content(value: object) -> object:
    """Return a key that is equal for equal positions, masks or threads."""
    return (value.shape, value.dtype, value.tobytes()) if isinstance(value, np.ndarray) else repr(value)


def _sign(value: object) -> object:
    """Return the content of a value; a large array counts by itself, as long as it lives."""
    return id(value) if isinstance(value, np.ndarray) and value.nbytes > _SMALL else content(value)


def _same(before: Any, after: Any) -> Mask:
    """Return which values are equal, or both no number."""
    same: Mask = (before == after) | ((before != before) & (after != after))
    return same
