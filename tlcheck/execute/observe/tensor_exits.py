"""Plain indices of the source that leave a tensor: TileLang reads 0 there, and drops what is stored.

A tail that leaves its tensor in all of a statement is right. A statement is noted where it stores a 0 that it has read
out of bounds, or drops what it has read in bounds; and where its index alone says so (`compare.warnings`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tlcheck.execute.events import Observer
from tlcheck.execute.memory.cells import Position
from tlcheck.execute.memory.frame import Frame, Mask
from tlcheck.execute.memory.pages import Pages
from tlcheck.execute.memory.state import Origin
from tlcheck.execute.memory.values import Value
from tlcheck.snapshot.ir import Stmt, Store

if TYPE_CHECKING:
    from tlcheck.execute.machine import Machine
    from tlcheck.execute.memory.places import Place


@dataclass(frozen=True, slots=True, eq=False)
class TensorExit:
    """An access of a statement that leaves a tensor in some lanes, or the region of a tile operator that does.

    buffer: its name. index, extent: of an element out of bounds, and of the tensor. stores: whether it is the store.
    mixed: whether other accesses of the statement are in bounds in the same lanes, so that a 0 is stored or combined,
    or a number that was read is dropped. others: the tensors that are read in bounds in the lanes of a store.
    """

    stmt: Stmt
    buffer: str
    index: tuple[int, ...]
    extent: tuple[int, ...]
    block: tuple[int, int, int]
    lane: int
    stores: bool
    mixed: bool = False
    others: frozenset[str] = frozenset()


class TensorExits(Observer):
    """Notes the first access of each statement and tensor that leaves it, one that is mixed before others."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self.found: dict[tuple[Stmt, str, bool], TensorExit] = {}
        self.regions: dict[tuple[Stmt, str, bool], TensorExit] = {}
        self.atomics: dict[tuple[Stmt, str], TensorExit] = {}
        self._stmt: Stmt | None = None
        self._left: list[tuple[TensorExit, Mask]] = []  # loads of the statement that runs
        self._read: list[tuple[str, Mask]] = []  # the lanes of those that are in bounds

    def covers(self, place: Place) -> bool:
        """Whether it is a tensor."""
        return isinstance(place.memory, Pages)

    def tensor_left(self, place: Place, frame: Frame, outside: Mask, stores: bool) -> None:
        """A plain index is out of a tensor's bounds in these lanes."""
        stmt = self._machine.state.at
        if stmt is None:
            return
        self._begin(stmt)
        left, lanes = self._made(stmt, place, frame, outside, stores)
        if not stores:
            self._left.append((left, lanes))
            self._note(left)
            return
        inside = frozenset(name for name, read in self._read if _meet(read, lanes))
        self._note(replace(left, mixed=bool(inside), others=inside))

    def region_left(self, place: Place, frame: Frame, outside: Mask, stores: bool) -> None:
        """The region of a tile operator is out of a tensor's bounds at these points."""
        stmt = self._machine.state.at
        if stmt is not None and (stmt, place.name, stores) not in self.regions:
            self.regions[stmt, place.name, stores] = self._made(stmt, place, frame, outside, stores)[0]

    def atomic_left(self, place: Place, frame: Frame, outside: Mask) -> None:
        """The element that an atomic changes is out of a tensor's bounds in these lanes."""
        stmt = self._machine.state.at
        if stmt is not None and (stmt, place.name) not in self.atomics:
            self.atomics[stmt, place.name] = self._made(stmt, place, frame, outside, True)[0]

    def read(
        self, place: Place, position: Position, mask: Mask, origin: Origin, proxy: str = "generic", by: Any = None
    ) -> None:
        """Lanes of a statement read a tensor in bounds."""
        stmt = self._machine.state.at
        if isinstance(stmt, Store):
            self._begin(stmt)
            self._read.append((place.name, mask))

    def written(self, place: Place, position: Position, mask: Mask, origin: Origin, value: Value) -> None:
        """Lanes of a statement have written a tensor in bounds: a 0 where a load of theirs was not."""
        if self._machine.state.at is self._stmt:
            for left, lanes in self._left:
                if _meet(mask, lanes):
                    self._note(
                        TensorExit(left.stmt, left.buffer, left.index, left.extent, left.block, left.lane, False, True)
                    )
        self._stmt = None

    def combined(self, frame: Frame, position: Position, mask: Mask | None) -> None:
        """Lanes take part in an atomic: it has operands that were not in bounds."""
        if self._machine.state.at is self._stmt:
            for left, lanes in self._left:
                if _meet(frame.mask() if mask is None else mask, lanes):
                    self._note(replace(left, mixed=True))

    def _made(self, stmt: Stmt, place: Place, frame: Frame, outside: Mask, stores: bool) -> tuple[TensorExit, Mask]:
        """The exit of the first lane that is out of bounds, and all of these lanes."""
        mask = outside & frame.mask()
        any_lane = mask.any(axis=0) if mask.ndim == 3 else mask
        lanes = np.broadcast_to(any_lane, (frame.worlds, max(frame.lanes, any_lane.shape[-1])))
        world, lane = (int(n) for n in np.argwhere(lanes)[0])
        index, extent = place.outside_at(frame, np.asarray(mask), world, lane)
        block = self._machine.worlds[world % len(self._machine.worlds)].block
        return TensorExit(stmt, place.name, index, extent, block, lane, stores), lanes

    def _begin(self, stmt: Stmt) -> None:
        if stmt is not self._stmt:
            self._stmt = stmt
            self._left.clear()
            self._read.clear()

    def _note(self, left: TensorExit) -> None:
        key = left.stmt, left.buffer, left.stores
        known = self.found.get(key)
        if known is None or (left.mixed and not known.mixed):
            self.found[key] = left


class TensorExitsOfRun:
    """Makes an observer for each machine."""

    def __init__(self) -> None:
        self._made: list[TensorExits] = []

    def __call__(self, machine: Machine) -> list[TensorExits]:
        self._made.append(TensorExits(machine))
        return self._made[-1:]

    @property
    def found(self) -> list[TensorExit]:
        """The first access of each statement and tensor."""
        return [left for one in self._made for left in one.found.values()]

    @property
    def regions(self) -> list[TensorExit]:
        """The first region of each tile operator and tensor."""
        return [left for one in self._made for left in one.regions.values()]

    @property
    def atomics(self) -> list[TensorExit]:
        """The first element that each atomic would change."""
        return [left for one in self._made for left in one.atomics.values()]


def _meet(one: Mask, other: Mask) -> bool:
    """Whether two masks have a lane in common."""
    first, second = (np.asarray(mask.any(axis=0)) if mask.ndim == 3 else mask for mask in (one, other))
    return bool((first & second).any())
