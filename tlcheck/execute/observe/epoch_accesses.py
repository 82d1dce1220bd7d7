"""Keep who accessed each cell of a source kernel last, and in which epoch."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tlcheck.execute.events import Side
from tlcheck.execute.memory.frame import Mask
from tlcheck.execute.memory.values import Array, lengthened
from tlcheck.execute.observe.accesses import AccessedCells

SEVERAL = -2  # the lane of an access that several lanes of one epoch made


class EpochAccesses:
    """The last access of each cell: epoch, lane (-2: several of that epoch), world; epoch 0 for none.

    Of an access in a branch that runs beside others: the branch's number from 1 on (0: in none), and the first and the
    last warp that made it, with their times. event: its number. part: of the epoch, which T.sync_warp divides; 0 where
    it is not threads that made it.

    No `Shadow`: that one orders accesses by the clocks of warps, these are in order by their epoch, and a lane may be
    an iteration of a T.Parallel or all of a tile operator, which is of no warp.
    """

    _FIELDS = ("epoch", "lane", "world", "side", "warp", "time", "last", "late", "threads", "event", "part")

    def __init__(self) -> None:
        self.epoch = self.lane = self.world = np.zeros(0, np.int32)
        self.side = self.warp = self.time = self.last = self.late = self.threads = self.event = self.part = self.epoch
        self._sides: list[Side] = []

    def reach(self, size: int) -> None:
        """Have room for so many cells."""
        if len(self.epoch) < size:
            for name in self._FIELDS:
                setattr(self, name, lengthened(getattr(self, name), size))

    def set(self, touched: AccessedCells, epoch: int, part: Array) -> None:
        """Note that these lanes accessed these cells."""
        cell = touched.cell
        again = (self.epoch[cell] == epoch) & (self.lane[cell] != touched.thread)
        self.epoch[cell], self.world[cell], self.part[cell] = epoch, touched.world, part
        self.lane[cell] = touched.thread
        self.lane[cell[again | (self.lane[cell] != touched.thread)]] = SEVERAL

    def mixed(self, touched: AccessedCells, met: int, threads: bool) -> Mask:
        """Return which of them code for threads, or T.tma_copy, and another statement access with no T.sync_threads
        between.

        met: how many of these there were, and one. threads: whether the former accesses them now.
        """
        last = self.threads[touched.cell]
        return np.asarray((last == (-met if threads else met)) & self.here(touched))

    def stamp(self, touched: AccessedCells, side: Side | None, clocks: Array, by: Sequence[Array]) -> None:
        """They did so in a branch. by: first and last warp that did, of each cell, among those of their cluster."""
        cell, world = touched.cell, touched.world
        if side is None:
            self.side[cell] = 0
            return
        if side not in self._sides:
            self._sides.append(side)
        first, last = by
        self.side[cell] = self._sides.index(side) + 1
        self.warp[cell], self.time[cell] = first, clocks[world, first % touched.warps, first]
        self.last[cell], self.late[cell] = last, clocks[world, last % touched.warps, last]

    def unordered(self, touched: AccessedCells, side: Side | None, clocks: Array) -> Mask:
        """Return which of them another branch has accessed that may not be there yet, as far as this one knows."""
        cell, world = touched.cell, touched.world
        if side is None:
            return np.zeros(len(cell), np.bool_)
        beside = np.array([False, *(side.is_beside(other) for other in self._sides)])[self.side[cell]]
        late = self.time[cell] > clocks[world, side.warps[world], self.warp[cell]]
        late |= self.late[cell] > clocks[world, side.warps[world], self.last[cell]]
        return np.asarray(beside & late & self.near(touched))

    def beside(self, touched: AccessedCells, epoch: int, part: Array, warp: int) -> Mask:
        """Return which of them another lane of the same epoch has accessed; of the same warp, in the same part."""
        cell = touched.cell
        lane = self.lane[cell]
        known = (self.part[cell] > 0) & (lane >= 0) & (part > 0)
        apart = known & (self.part[cell] != part) & (lane // warp == touched.thread // warp)
        return np.asarray((self.epoch[cell] == epoch) & (lane != touched.thread) & ~apart & self.here(touched))

    def across(self, touched: AccessedCells) -> Mask:
        """Return which of them a block of another cluster has accessed."""
        return np.asarray((self.epoch[touched.cell] > 0) & ~self.near(touched))

    def near(self, touched: AccessedCells) -> Array:
        """Return which of them a block of the same cluster has accessed."""
        if touched.leaders is None:
            return self.here(touched)
        return np.asarray(touched.leaders[self.world[touched.cell]] == touched.cluster)

    def here(self, touched: AccessedCells) -> Array:
        """Return which of them the same block has accessed."""
        return np.asarray(self.world[touched.cell] == touched.world)
