"""A shadow with a grain of up to 16 bytes of shared memory, and the units that an access is to.

Units are as large as the accesses of threads to them, and are split when a smaller one comes. A part of a unit that is
read or written counts for all of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from tlcheck.execute.memory.cells import Cells, Position
from tlcheck.execute.memory.frame import Mask
from tlcheck.execute.memory.places import Place
from tlcheck.execute.memory.values import Array
from tlcheck.execute.observe.accesses import AccessedCells, content
from tlcheck.execute.observe.clock import Times, VectorClock
from tlcheck.execute.observe.shadow import MANY, Shadow
from tlcheck.execute.observe.suspects import UNIT, Suspects

_MOST_KEPT = 1 << 21  # units


class UnitShadow(Shadow):
    """The last accesses to each unit of an allocation, by its first flat cell; other cells do not count.

    size_of: cells of the units in each 16 bytes. version: of the division into units. suspected: which of the 16 bytes
    may be accessed out of order.
    """

    def __init__(self, cells: Cells, warps: int, suspected: Mask) -> None:
        super().__init__(cells.flat.size, warps)
        self.worlds, self.most = cells.stride, max(1, 8 * UNIT // cells.grain)
        self.size_of = np.full(-(-cells.data.shape[0] // self.most), self.most, np.int64)
        self.version, self.suspected = 0, suspected

    def suspect(self, cell: Array) -> None:
        """Accesses of the units at these flat cells may not be ordered."""
        self.suspected[cell // self.worlds // self.most] = True

    def units_of(self, cell: Array) -> Array:
        """The first cells of the units at some cells (of one world)."""
        return np.asarray(cell - cell % self.size_of[cell // self.most])

    def split(self, cell: Array, width: int) -> None:
        """Make units at these cells (of one world) at most `width` cells large."""
        accessed = np.zeros(len(self.size_of), np.bool_)
        accessed[cell // self.most] = True
        large = np.flatnonzero(accessed & (self.size_of > width))
        if not len(large):
            return
        inner = (large[:, None] * self.most + np.arange(self.most)).reshape(-1)
        inner = inner[inner < self.size // self.worlds]
        first = self.units_of(inner)
        for _, _, array in self.arrays():
            by_cell = array.reshape(len(array), -1, self.worlds)
            by_cell[:, inner] = by_cell[:, first]
        self.size_of[large] = width
        self.version += 1

    def times(self, first: Array) -> Iterator[Times]:
        """The times of the last accesses. first: of each world, see `Times`."""
        yield Times(self._heads(self.writes.time), first, self._heads(self.writes.agent))
        for last in self.others.values():
            yield Times(self._heads(last.time), first, np.arange(len(last.time))[:, None, None])

    def marks(self) -> Iterator[Array]:
        """Yield who made the last accesses."""
        yield self._heads(self.writes.agent)
        for last in (self.writes, *self.others.values()):
            yield self._heads(last.thread)

    def _heads(self, array: Array) -> Array:
        """Return what the first cells of units keep, and perhaps others: (rows, cells, worlds)."""
        return array.reshape(len(array), -1, self.worlds)[:, :: int(self.size_of.min())]


@dataclass(frozen=True, slots=True, eq=False)
class UnitAccess:
    """An access to units of shared memory.

    doubled: several threads access one cell, also in different iterations of a loop. version: the division into units
    that this is for. tensor: whether it is to tensor memory.
    """

    shadow: UnitShadow
    cells: AccessedCells
    doubled: bool
    version: int
    tensor: bool = False


class Units:
    """The shadows of shared memory; finds the units that an access is to, once for the same position and mask."""

    def __init__(self, clock: VectorClock, suspects: Suspects, dividing: Callable[[], None]) -> None:
        """clock: of the blocks whose memory it is. dividing: called before units may be divided."""
        self._clock, self._suspects, self._dividing = clock, suspects, dividing
        self.shadows: dict[int, UnitShadow] = {}
        self._kept: dict[tuple[object, ...], tuple[object, object, UnitAccess]] = {}  # with what the ids are of
        self._alike: dict[tuple[object, ...], UnitAccess] = {}  # the same, by what the position and the masks hold
        self._kept_size = self._alike_size = 0

    def forget(self, root: int) -> None:
        """An allocation is declared anew."""
        del self.shadows[root]
        self._drop()

    def clear(self) -> None:
        """Forget all of them."""
        self.shadows.clear()
        self._drop()

    def accessed(
        self, place: Place, position: Position, mask: Mask, whole: bool, lane: Mask | None = None, core: int = 0
    ) -> UnitAccess:
        """The units of an access by active lanes, or by the thread of `lane` (worlds, threads); the same object where
        a statement names equal ones again: rounds of a loop recur by it.

        whole: it is of 16 bytes, or parts of these do not matter. core: by how much the warp of a product is further.
        """
        mask = np.asarray(mask.any(axis=0)) if mask.ndim > 2 else mask
        everywhere = mask.strides == (0, 0) and bool(mask[0, 0])
        held = None if everywhere else mask if mask.base is None else mask.base
        where = id(position) if isinstance(position, np.ndarray) else repr(position)
        key: tuple[object, ...] = (place.root, where, id(held), whole)
        if lane is not None:
            key = place.root, where, mask.tobytes(), lane.tobytes(), core
        known = self._kept.get(key)
        if known is not None and known[2].version == known[2].shadow.version:
            return known[2]
        access = self._like(place, position, mask, whole, lane, core)
        self._kept_size += 64 + len(access.cells.cell)
        if self._kept_size > _MOST_KEPT:
            self._kept.clear()
            self._kept_size = 0
        self._kept[key] = (position, held, access)
        return access

    def _like(
        self, place: Place, position: Position, mask: Mask, whole: bool, lane: Mask | None, core: int
    ) -> UnitAccess:
        """The access that was found for a place, an equal position and equal masks, else a new one."""
        memory = place.memory
        assert isinstance(memory, Cells)
        about = None if lane is None else content(lane), whole, core
        key = place, memory.times, content(position), content(mask), *about
        known = self._alike.get(key)
        if known is None or known.version != known.shadow.version:
            self._dividing()
            known = self._found(place, position, mask, whole, lane, core)
            self._alike_size += 64 + len(known.cells.cell)
            if self._alike_size > _MOST_KEPT:
                self._drop()
            self._alike[key] = known
        return known

    def _drop(self) -> None:
        self._kept.clear()
        self._alike.clear()
        self._kept_size = self._alike_size = 0

    def _found(
        self, place: Place, position: Position, mask: Mask, whole: bool, lane: Mask | None, core: int
    ) -> UnitAccess:
        memory = place.memory
        assert isinstance(memory, Cells)
        if place.root not in self.shadows:
            self.shadows[place.root] = UnitShadow(memory, self._clock.rows, self._suspects.units_of(place.root, memory))
        shadow = self.shadows[place.root]
        worlds, clock = self._clock.worlds, self._clock
        rows, lanes = np.nonzero(mask)
        flat = memory.flat_position(position)
        flat = flat if flat.ndim > 2 else flat[None]
        if not len(rows):
            no = np.empty(0, np.int64)
            return UnitAccess(shadow, AccessedCells(no, no, no, no, clock.warps, shadow.size), False, shadow.version)
        cell, there = np.divmod(flat[:, rows, lanes if flat.shape[2] > 1 else 0], shadow.worlds)
        parts = memory.parts(place.kind)
        if not whole:
            shadow.split(cell, _width(cell, parts, shadow.most))
        unit = np.concatenate([shadow.units_of(cell + part) * shadow.worlds + there for part in range(parts)])
        if len(unit) > 1:
            others = np.flatnonzero((unit[1:] != unit[:-1]).any(axis=1)) + 1
            unit = unit[[0, *others.tolist()]]
        world = rows % worlds
        thread = lanes if lane is None else lane.argmax(axis=-1)[world]
        where, thread, world = (np.broadcast_to(x, unit.shape).reshape(-1) for x in (unit, thread, world))
        warp = thread // clock.width + core + clock.first_row[world]
        if place.arranged:  # lanes read what others point to: no thread in particular
            _, once = np.unique(where * clock.rows + warp, return_index=True)
            where, world, warp, thread = where[once], world[once], warp[once], np.full(len(once), MANY)
        doubled = not whole and _is_shared_by_threads(cell * worlds + there, lanes)
        cells = AccessedCells(where, world, thread.astype(np.int16), warp, clock.warps, shadow.size)
        return UnitAccess(shadow, cells, doubled, shadow.version, bool(place.lanes))


def _is_shared_by_threads(cell: Array, thread: Array) -> bool:
    """Whether several threads access one cell."""
    thread = np.broadcast_to(thread, cell.shape).reshape(-1)
    first = np.empty(int(cell.max()) + 1, np.int16)  # of which only these cells are looked at
    first[cell.reshape(-1)] = thread
    return bool((first[cell.reshape(-1)] != thread).any())


def _width(cell: Array, parts: int, most: int) -> int:
    """Return how many cells each thread accesses side by side, from a multiple of that on; at most those of a unit."""
    run = 1
    while run * 2 <= len(cell) and len(cell) % (run * 2) == 0 and run * 2 * parts <= most:
        heads = cell[:: run * 2]
        if ((cell[run :: run * 2] - heads) != run * parts).any() or (heads % (run * 2 * parts)).any():
            break
        run *= 2
    return run * parts
