"""Reads of a block's memory that nothing has set: registers, fragments and shared memory of the source.

A shuffle that reads a thread that takes no part counts as such a read, of ABSENT.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tlcheck.execute.events import Observer, Operation
from tlcheck.execute.machine_options import ABSENT
from tlcheck.execute.memory.cells import Cells, Position
from tlcheck.execute.memory.frame import Mask
from tlcheck.execute.memory.state import Origin
from tlcheck.execute.memory.values import Array, Value
from tlcheck.execute.observe.accesses import AccessedElements
from tlcheck.execute.observe.race_watch import offset_of

if TYPE_CHECKING:
    from tlcheck.execute.machine import Machine
    from tlcheck.execute.memory.places import Place
    from tlcheck.snapshot.ir import Stmt


@dataclass(frozen=True, slots=True, eq=False)
class UnsetRead:
    """The first read of a buffer's element that nothing has set, by a statement. lane: -1 for a tile operator. bare:
    nothing has set any other element of the buffer either.
    """

    buffer: str
    uid: int
    element: int
    block: tuple[int, int, int]
    lane: int
    stmt: Stmt | None
    bare: bool = False


class Uninitialized(Observer):
    """Follows which cells of a block are set. found: the first read of each buffer and statement, in order."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._set: dict[int, Mask] = {}
        self.found: dict[tuple[int, int], UnsetRead] = {}

    def covers(self, place: Place) -> bool:
        """Whether it is memory of a block."""
        return isinstance(place.memory, Cells)

    def reallocated(self, root: int) -> None:
        """The allocation is declared anew."""
        self._set.pop(root, None)

    def read(
        self, place: Place, position: Position, mask: Mask, origin: Origin, proxy: str = "generic", by: Any = None
    ) -> None:
        """Active threads read elements."""
        self._read(place, position, mask, tile=False)

    def absent_read(self, mask: Mask) -> None:
        """Threads read others that take no part in a shuffle."""
        stmt = self._machine.state.at
        if mask.any() and (ABSENT, id(stmt)) not in self.found:
            world, lane = (int(n) for n in np.argwhere(mask)[0])
            block = self._machine.worlds[world].block
            self.found[ABSENT, id(stmt)] = UnsetRead("a shuffled value", ABSENT, 0, block, lane, stmt)

    def written(self, place: Place, position: Position, mask: Mask, origin: Origin, value: Value) -> None:
        """Active threads have written elements."""
        self._written(place, position, mask)

    def atomic(self, place: Place, position: Position, mask: Mask, origin: Origin) -> None:
        """Active threads add to elements: what was not set is not set after it."""
        self._read(place, position, mask, tile=False)

    def tile_accessed(
        self, place: Place, position: Position, mask: Mask | None, lanes: int, value: Value | None
    ) -> None:
        """A tile operator reads a region (value: None) or writes it."""
        if not self.covers(place):
            return
        active = self._active(mask, lanes)
        if value is None:
            self._read(place, position, active, tile=True)
        else:
            self._written(place, position, active)

    def operation_begun(self, operation: Operation) -> None:
        """The memory that an asynchronous operation writes is set."""
        for elements, is_written in operation.elements:
            if is_written and self.covers(elements.place):
                self._written(elements.place, elements.position, self._active(elements.mask, elements.lanes))

    def _active(self, mask: Mask | None, lanes: int) -> Mask:
        everywhere = np.asarray(True if mask is None else mask)
        return np.broadcast_to(everywhere, (*everywhere.shape[:-2], len(self._machine.worlds), lanes))

    def _cells(self, place: Place, position: Position, mask: Mask) -> tuple[AccessedElements, Array]:
        accessed = AccessedElements(place, position, mask)
        return accessed, accessed.cells(len(self._machine.worlds), 1, self._machine.state.threads).cell

    def _known(self, place: Place) -> Mask:
        """Return which cells are set. In T.Parallel registers are copies, one for each iteration."""
        assert isinstance(place.memory, Cells)
        shape, known = place.memory.data.shape, self._set.get(place.root)
        if known is None:
            known = np.zeros(shape, np.bool_)
        elif known.shape != shape:
            known = np.repeat(known.any(axis=-1, keepdims=True), shape[-1], axis=-1)
        self._set[place.root] = known
        return known.reshape(-1)

    def _read(self, place: Place, position: Position, mask: Mask, tile: bool) -> None:
        stmt = self._machine.state.at
        if (place.root, id(stmt)) in self.found or not mask.any():
            return
        accessed, cells = self._cells(place, position, mask)
        known = self._known(place)
        unset = ~known[cells]
        if unset.any():
            at = int(np.argmax(unset)) % len(accessed.cell)
            block = self._machine.worlds[int(accessed.world(len(self._machine.worlds))[at])].block
            lane = -1 if tile else int(accessed.lane()[at])
            element = offset_of(place, int(cells[np.argmax(unset)]))
            bare = not known.any()
            self.found[place.root, id(stmt)] = UnsetRead(place.name, place.root, element, block, lane, stmt, bare)

    def _written(self, place: Place, position: Position, mask: Mask) -> None:
        if mask.any():
            self._known(place)[self._cells(place, position, mask)[1]] = True


class UnsetReads:
    """Makes an observer for each machine. found: the reads that all of them saw."""

    def __init__(self) -> None:
        self._made: list[Uninitialized] = []

    def __call__(self, machine: Machine) -> list[Uninitialized]:
        self._made.append(Uninitialized(machine))
        return self._made[-1:]

    @property
    def found(self) -> list[UnsetRead]:
        """The first read of each buffer and statement, in order."""
        return [read for one in self._made for read in one.found.values()]
