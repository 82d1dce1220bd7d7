"""Every addition to one element of a tensor, while a kernel runs again: by atomics, bulk copies, `B[i] = B[i] + x`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tlcheck.execute.events import Observer
from tlcheck.execute.machine import Machine
from tlcheck.execute.memory.cells import Cells, Position
from tlcheck.execute.memory.frame import Mask
from tlcheck.execute.memory.pages import Pages
from tlcheck.execute.memory.places import Place
from tlcheck.execute.memory.state import Origin
from tlcheck.execute.memory.values import Array, Value
from tlcheck.snapshot.ir import Function, Stmt, Store
from tlcheck.snapshot.walk import postorder

_MOST = 4096  # additions to one element that are kept


@dataclass(frozen=True, slots=True)
class MadeAddition:
    """A term that was added. thread: -1 where no thread adds it, or it is not known which."""

    value: float
    block: tuple[int, int, int]
    thread: int
    origin: Origin


class Additions:
    """Makes a recorder for each machine of an invocation's last kernel. Raises KeyError where it has no such tensor.

    start: what the element was before all of `made`. whole: whether these are all that changed it since.
    """

    def __init__(self, kernel: Function, name: str, seed: int, element: int) -> None:
        self._kernel, self._name, self._seed, self._element = kernel, name, seed, element
        self.start: float | None = None
        self.made: list[MadeAddition] = []
        self.whole = True

    def __call__(self, machine: Machine) -> Sequence[Observer]:
        if machine.function is not self._kernel:
            return []
        pages = machine.pages(self._name)
        cell = pages.position_of(self._seed, self._element)
        if self.start is None:
            self.begin(float(pages.flat[cell]))
        return [_AdditionRecorder(machine, pages, cell, self)]

    def begin(self, value: float) -> None:
        """Begin anew: the element is set to a value."""
        self.start, self.whole = value, True
        self.made.clear()

    def add(self, addition: MadeAddition) -> None:
        """Keep an addition."""
        if len(self.made) < _MOST:
            self.made.append(addition)
        else:
            self.whole = False


class _AdditionRecorder(Observer):
    """Listens for what changes a cell of a tensor, in the worlds of a machine."""

    def __init__(self, machine: Machine, pages: Pages, cell: int, kept: Additions) -> None:
        self._machine, self._pages, self._cell, self._kept = machine, pages, cell, kept
        self._before = 0.0

    def covers(self, place: Place) -> bool:
        """Whether a place is in the tensor."""
        return self._is_tensor(place.memory)

    def added(
        self, memory: Cells | Pages, cells: Array, terms: Array, worlds: Array, threads: Array, origin: Origin
    ) -> None:
        """Keep the additions to the cell."""
        if not self._is_tensor(memory):
            return
        for place in np.flatnonzero(cells == self._cell).tolist():
            block = self._machine.worlds[int(worlds[place])].block
            self._kept.add(MadeAddition(float(terms[place]), block, int(threads[place]), origin))

    def _is_tensor(self, memory: Cells | Pages) -> bool:
        return isinstance(memory, Pages) and memory.table is self._pages.table

    def write(self, place: Place, position: Position, mask: Mask, origin: Origin, value: Value) -> None:
        """Note what a store is about to replace."""
        self._before = float(self._pages.flat[self._cell])

    def written(self, place: Place, position: Position, mask: Mask, origin: Origin, value: Value) -> None:
        """Keep what a store has added, or begin with what it has set."""
        where = np.asarray(place.memory.flat_position(position))
        shape = np.broadcast_shapes(where.shape, mask.shape)
        hits = np.argwhere(np.broadcast_to(where == self._cell, shape) & np.broadcast_to(mask, shape))
        if not len(hits):
            return
        now = float(self._pages.flat[self._cell])
        if adds_to_itself(origin.stmt):
            *_, world, thread = (int(axis) for axis in hits[-1])
            self._kept.add(MadeAddition(now - self._before, self._machine.worlds[world].block, thread, origin))
        else:
            self._kept.begin(now)

    def tile_written(self, place: Place, position: Position, mask: Mask | None, lanes: int, value: Value) -> None:
        """Begin with what a tile operator has set."""
        where = np.asarray(place.memory.flat_position(position))
        hit = where == self._cell if mask is None else (where == self._cell) & mask
        if self.covers(place) and hit.any():
            self._kept.begin(float(self._pages.flat[self._cell]))


def adds_to_itself(stmt: Stmt | None) -> bool:
    """Whether a statement is a store such as `B[i] = B[i] + x`."""
    if not isinstance(stmt, Store) or stmt.value.op != "add":
        return False
    return any(part.op == "load" and part.buffer is stmt.buffer for part in postorder([stmt.value]))
