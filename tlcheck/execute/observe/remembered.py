"""What a glance remembers of memory: units of shared memory, and who uses the elements of a tensor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tlcheck.execute.memory.cells import Cells
from tlcheck.execute.memory.frame import Mask
from tlcheck.execute.memory.values import Array
from tlcheck.execute.observe.shadows import same_epoch
from tlcheck.execute.observe.suspects import UNIT

SEVERAL = -1  # as the thread of an access: more than one of its warp


@dataclass(frozen=True, slots=True, eq=False)
class Units:
    """The units of one access: flat cell that stands for each, and thread; row: world * warps + warp.

    slot, own: the unit among those of its warp, and the warp's own time among the clocks. version: of the units.
    doubled: several threads touch one cell, also in different iterations of a loop. seen: a number for what each world
    accesses, those included that are not watched.
    """

    cell: Array
    thread: Array
    warp: Array
    row: Array
    slot: Array
    own: Array
    version: int
    doubled: bool
    seen: tuple[int, ...]


class LastOf:
    """The last access of each warp to each unit: when, and by which thread."""

    def __init__(self, size: int, warps: int) -> None:
        self.time = np.zeros((warps, size), np.int32)
        self.thread = np.zeros((warps, size), np.int16)

    def record(self, touched: Units, now: Array) -> None:
        time, thread, slot = self.time.reshape(-1), self.thread.reshape(-1), touched.slot
        again = same_epoch(time.take(slot), now) & (thread.take(slot) != touched.thread)
        time[slot], thread[slot] = now, touched.thread
        several = again | (thread.take(slot) != touched.thread)
        if several.any():
            thread[slot[several]] = SEVERAL


class Remembered:
    """What is remembered of an allocation, by flat cell; only the first cell of each unit counts.

    unit: cells of the units in each 16 bytes. suspected: which of these 16 bytes are.
    """

    def __init__(self, cells: Cells, warps: int, suspected: Mask) -> None:
        size = cells.flat.size
        self.stride, self.most = cells.stride, max(1, UNIT // cells.grain)
        self.unit = np.full(-(-cells.data.shape[0] // self.most), self.most, np.int64)
        self.version, self.suspected = 0, suspected
        self.agent, self.thread = np.zeros(size, np.int16), np.full(size, SEVERAL, np.int16)
        self.time = np.zeros(size, np.int32)
        self.reads = LastOf(size, warps)
        self.atomics: LastOf | None = None
        self._size, self._warps = size, warps

    def atomic(self) -> LastOf:
        """The last atomic accesses; most kernels have none."""
        if self.atomics is None:
            self.atomics = LastOf(self._size, self._warps)
        return self.atomics

    def latest(self) -> Sequence[LastOf]:
        """The last accesses that are no writes."""
        return [self.reads] if self.atomics is None else [self.reads, self.atomics]

    def heads(self, array: Array, worlds: int) -> Array:
        """The cells that count, and perhaps others, of the first worlds: (..., cells, worlds)."""
        return array.reshape(*array.shape[:-1], -1, self.stride)[..., :: int(self.unit.min()), :worlds]

    def suspect(self, cell: Array) -> None:
        """Accesses of the units at these flat cells may not be ordered."""
        self.suspected[cell // self.stride // self.most] = True

    def split(self, cell: Array, width: int) -> None:
        """Make units at these cells (of one world) at most `width` cells large."""
        touched = np.zeros(len(self.unit), np.bool_)
        touched[cell // self.most] = True
        large = np.flatnonzero(touched & (self.unit > width))
        if not len(large):
            return
        arrays = [self.agent, self.thread, self.time, *(a for x in self.latest() for a in (x.time, x.thread))]
        unit = np.repeat(self.unit[large], self.most)
        parts = (large[:, None] * self.most + np.arange(self.most)).reshape(-1)
        inside = parts < self._size // self.stride
        parts, unit = parts[inside], unit[inside]
        for array in arrays:
            by_cell = array.reshape(*array.shape[:-1], -1, self.stride)
            by_cell[..., parts, :] = by_cell[..., parts - parts % unit, :]
        self.unit[large] = width
        self.version += 1


class Users:
    """Which lane wrote each element of a tensor, and which one read it: its number from 1 on; 0 for none.

    doubled: several lanes of the last write had one element.
    """

    def __init__(self, size: int, before: Users | None) -> None:
        self.writer, self.reader = np.zeros((2, size), np.int32)
        self.atomic = np.zeros(size, np.bool_)
        self.doubled = False
        if before is not None:
            old = len(before.writer)
            self.writer[:old], self.reader[:old], self.atomic[:old] = before.writer, before.reader, before.atomic
