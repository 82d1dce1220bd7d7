"""Reads of a fragment's element that one thread has stored, by others.

TileLang keeps a fragment that is accessed outside of tile operators whole in the registers of every thread
(LayoutInference). Tile operators and T.Parallel set it in all of them; a plain store sets it in the thread's own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tlcheck.execute.events import Observer
from tlcheck.execute.memory.cells import Cells, Position
from tlcheck.execute.memory.frame import Mask
from tlcheck.execute.memory.state import Origin
from tlcheck.execute.memory.values import Array, Value
from tlcheck.execute.observe.accesses import AccessedElements
from tlcheck.execute.observe.race_watch import offset_of
from tlcheck.program.divergence import fragments_of_threads

if TYPE_CHECKING:
    from tlcheck.execute.machine import Machine
    from tlcheck.execute.memory.places import Place
    from tlcheck.snapshot.ir import Stmt

_MOST = 1 << 24  # cells times threads


@dataclass(frozen=True, slots=True, eq=False)
class ForeignRead:
    """The first read, by a statement, of an element of a fragment that the thread has not stored, and others have.

    owner: a thread that has. lane: that reads, -1 for a tile operator or T.Parallel. writer, stmt: the statements.
    """

    buffer: str
    uid: int
    element: int
    block: tuple[int, int, int]
    owner: int
    lane: int
    writer: Stmt | None
    stmt: Stmt | None


@dataclass(eq=False)
class _Holders:
    """By cell of a fragment: the number of the plain store that set it last, -1 for a tile operator; which threads took
    part, (cells, threads).
    """

    store: Array
    threads: Mask


class ForeignReads(Observer):
    """Follows which threads have which elements of fragments. found: the first read of each fragment and statement."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._roots = {machine.pointers.root(uid) for uid in fragments_of_threads(machine.function)}
        self._holders: dict[int, _Holders] = {}
        self._stores: list[Stmt | None] = []
        self._iterating = False
        self.found: dict[tuple[int, int], ForeignRead] = {}

    def covers(self, place: Place) -> bool:
        """Whether it is such a fragment."""
        if place.root not in self._roots or not isinstance(place.memory, Cells):
            return False
        return place.memory.flat.size * self._machine.state.threads <= _MOST

    def reallocated(self, root: int) -> None:
        """The fragment is declared anew."""
        self._holders.pop(root, None)

    def parallel_loop(self, begins: bool) -> None:
        """A T.Parallel begins or ends."""
        self._iterating = begins

    def read(
        self, place: Place, position: Position, mask: Mask, origin: Origin, proxy: str = "generic", by: Any = None
    ) -> None:
        """Active threads, or iterations, read elements."""
        self._read(place, position, mask, alone=not self._iterating)

    def written(self, place: Place, position: Position, mask: Mask, origin: Origin, value: Value) -> None:
        """Active threads, or iterations, have written elements."""
        if not mask.any():
            return
        holders, cells = self._known(place), AccessedElements(place, position, mask).cells(*self._shape)
        if self._iterating:
            holders.store[cells.cell] = -1
            return
        holders.store[cells.cell] = len(self._stores)
        holders.threads[cells.cell] = False
        holders.threads[cells.cell, cells.thread] = True
        self._stores.append(self._machine.state.at)

    def tile_accessed(
        self, place: Place, position: Position, mask: Mask | None, lanes: int, value: Value | None
    ) -> None:
        """A tile operator reads a region (value: None) or is about to write it."""
        if not self.covers(place):
            return
        everywhere = np.asarray(True if mask is None else mask)
        active = np.broadcast_to(everywhere, (*everywhere.shape[:-2], len(self._machine.worlds), lanes))
        if value is None:
            self._read(place, position, active, alone=False)
        elif active.any():
            self._known(place).store[AccessedElements(place, position, active).cells(*self._shape).cell] = -1

    @property
    def _shape(self) -> tuple[int, int, int]:
        return len(self._machine.worlds), 1, self._machine.state.threads

    def _known(self, place: Place) -> _Holders:
        if place.root not in self._holders:
            cells, threads = place.memory.flat.size, self._machine.state.threads
            self._holders[place.root] = _Holders(np.full(cells, -1, np.int64), np.zeros((cells, threads), np.bool_))
        return self._holders[place.root]

    def _read(self, place: Place, position: Position, mask: Mask, *, alone: bool) -> None:
        """Look for an element that some thread of those that read it has not. alone: each thread reads its own."""
        stmt = self._machine.state.at
        if (place.root, id(stmt)) in self.found or not mask.any():
            return
        holders, cells = self._known(place), AccessedElements(place, position, mask).cells(*self._shape)
        held = holders.threads[cells.cell, cells.thread] if alone else holders.threads[cells.cell].all(axis=1)
        foreign = np.flatnonzero((holders.store[cells.cell] >= 0) & ~held)
        if len(foreign):
            at = int(foreign[0])
            cell, block = int(cells.cell[at]), self._machine.worlds[int(cells.world[at])].block
            owner, lane = int(np.argmax(holders.threads[cell])), int(cells.thread[at]) if alone else -1
            writer = self._stores[int(holders.store[cell])]
            element = offset_of(place, cell)
            read = ForeignRead(place.name, place.root, element, block, owner, lane, writer, stmt)
            self.found[place.root, id(stmt)] = read


class ForeignReadsOfRun:
    """Makes an observer for each machine."""

    def __init__(self) -> None:
        self._made: list[ForeignReads] = []

    def __call__(self, machine: Machine) -> list[ForeignReads]:
        self._made.append(ForeignReads(machine))
        return self._made[-1:]

    @property
    def found(self) -> list[ForeignRead]:
        """The first read of each fragment and statement, in order."""
        return [read for one in self._made for read in one.found.values()]
