"""Threads that reach a tile operator of the source, where these are not all threads of the block."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING

import numpy as np

from tlcheck.execute.events import Observer
from tlcheck.execute.memory.frame import Frame, Mask
from tlcheck.program.parted_tiles import PartedTile, is_shifted, parted_tiles, shared_among

if TYPE_CHECKING:
    from tlcheck.execute.machine import Machine
    from tlcheck.snapshot.ir import Stmt


class Participation(IntEnum):
    """How certain it is that a part of the block cannot do what an operator says.

    MEANT: whole warps, which are those that TileLang expects: a warp group by hand. OPEN: nobody says; so in a loop
    that all threads run equally often, each with its own numbers. BROKEN: single threads, of which TileLang does not
    know.
    """

    MEANT, OPEN, BROKEN = range(3)


@dataclass(frozen=True, slots=True, eq=False)
class PartReached:
    """The first time that a part of a block reaches an operator. lane: the first thread that does."""

    tile: PartedTile
    participation: Participation
    block: tuple[int, int, int]
    lane: int
    count: int
    threads: int


class TileThreads(Observer):
    """Notes which threads reach operators.

    reached: by operator, all threads that ever do. parts: by operator, the first part of a block that does, of those
    that are least certain to be right.
    """

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._tiles = {id(tile.stmt): tile for tile in parted_tiles(machine.function)}
        self.reached: dict[Stmt, Mask] = {}
        self.parts: dict[Stmt, PartReached] = {}

    def tile_reached(self, stmt: Stmt, frame: Frame) -> None:
        """Active threads reach a tile operator or a T.Parallel."""
        tile = self._tiles.get(id(stmt))
        if tile is None or frame.lanes != self._machine.state.threads:
            return
        mask = frame.mask()
        come = mask.sum(axis=1)
        self.reached[stmt] = self.reached.get(stmt, np.False_) | mask.any(axis=0)
        for world in np.flatnonzero((come > 0) & (come < frame.lanes)).tolist():
            self._note(tile, world, mask[world])

    def _note(self, tile: PartedTile, world: int, threads: Mask) -> None:
        participation, known = self._participation(tile, threads), self.parts.get(tile.stmt)
        if known is None or known.participation < participation:
            block, first = self._machine.worlds[world].block, int(np.argmax(threads))
            self.parts[tile.stmt] = PartReached(tile, participation, block, first, int(threads.sum()), len(threads))

    def _participation(self, tile: PartedTile, threads: Mask) -> Participation:
        warp = self._machine.options.target.warp
        warps = [threads[first : first + warp] for first in range(0, len(threads), warp)]
        whole = all(part.all() or not part.any() for part in warps)
        low, high = shared_among(self._machine.function, tile, len(threads))
        expected = np.zeros_like(threads)
        expected[low : high + 1] = True
        found = Participation(Participation.BROKEN - int(whole) - int(np.array_equal(threads, expected)))
        return Participation.OPEN if is_shifted(self._machine.function, tile) else found


class OperatorsReached(Observer):
    """Notes which operators any thread reaches."""

    def __init__(self) -> None:
        self.found: set[Stmt] = set()

    def tile_reached(self, stmt: Stmt, frame: Frame) -> None:
        """Active threads reach a tile operator or a T.Parallel."""
        if frame.mask().any():
            self.found.add(stmt)


class TileThreadsOfRun:
    """Makes an observer for each machine."""

    def __init__(self) -> None:
        self._made: list[TileThreads] = []

    def __call__(self, machine: Machine) -> list[TileThreads]:
        self._made.append(TileThreads(machine))
        return self._made[-1:]

    @property
    def parts(self) -> list[PartReached]:
        """The first part of a block that reaches each operator, the least certain ones first."""
        found: dict[Stmt, PartReached] = {}
        for part in (part for one in self._made for part in one.parts.values()):
            known = found.get(part.tile.stmt)
            if known is None or known.participation < part.participation:
                found[part.tile.stmt] = part
        return sorted(found.values(), key=lambda part: -part.participation)

    def reached(self, stmt: Stmt) -> Mask | None:
        """The threads that ever reach an operator; None where none does."""
        found = [one.reached[stmt] for one in self._made if stmt in one.reached]
        return np.logical_or.reduce(found) if found else None
