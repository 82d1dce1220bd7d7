"""A shadow with a grain of one cell, which keeps events, and the values by which an access is benign."""

from __future__ import annotations

import numpy as np

from tlcheck.execute.memory.frame import Mask
from tlcheck.execute.memory.values import Array, lengthened
from tlcheck.execute.observe.accesses import AccessedCells
from tlcheck.execute.observe.shadow import Shadow

_MOST_PAIRS = 4096  # statements, each time they run


class CellShadow(Shadow):
    """The last accesses to each cell of an allocation with their events, and what is known of the values written."""

    def __init__(self, size: int, warps: int, of_tensor: bool) -> None:
        super().__init__(size, warps, events=True, of_tensor=of_tensor)
        self._joint: Array | None = None  # a number of the threads that last wrote a cell in one statement, else 0
        self._writers: list[Mask] = []  # those threads, (worlds, threads)
        self._together: Array | None = None  # a number of the statement in which several threads last wrote it, else 0
        self._pairs: list[Array] = []  # who wrote which cell in these statements, as cell * threads + thread, in order
        self._bits: Array | None = None  # what the last write, a copy, brings to each cell
        self._has_bits: Mask | None = None  # where it is a copy that is known to bring these

    def record_write(
        self,
        cells: AccessedCells,
        agent: Array | int,
        thread: Array | int,
        time: Array | int,
        event: int,
        bits: Array | None = None,
    ) -> None:
        """Remember writes. bits: of a copy, where they are known."""
        self.writes.record_by(cells, agent, thread, time, event)
        if self._joint is not None:
            self._joint[cells.cell] = 0
        if self._together is not None:
            self._together[cells.cell] = 0
        if bits is not None and self._bits is None:
            self._bits, self._has_bits = np.zeros(self.size, np.int64), np.zeros(self.size, np.bool_)
        if self._bits is not None and self._has_bits is not None:
            self._has_bits[cells.cell] = bits is not None
            self._bits[cells.cell] = 0 if bits is None else bits

    def record_writers(self, cells: AccessedCells, threads: Mask, apart: bool) -> None:
        """Remember all threads that took part in the write that was recorded last. threads: (worlds, threads).

        apart: each world wrote cells of its own.
        """
        if self._joint is None:
            self._joint = np.zeros(self.size, np.int32)
        if not self._writers or not np.array_equal(self._writers[-1], threads):
            self._writers.append(threads)
        self._joint[cells.cell] = -len(self._writers) if apart else len(self._writers)

    def record_pairs(self, cells: AccessedCells, threads: int) -> None:
        """Remember who wrote which cell in the write that was recorded last, where several wrote one; not of tensors.

        threads: of a block.
        """
        if self.writes.world is not None or len(self._pairs) >= _MOST_PAIRS:
            return
        several = cells.cell[self.writes.thread[0].take(cells.cell) != cells.thread]
        if not len(several):
            return
        if self._together is None:
            self._together = np.zeros(self.size, np.int32)
        among = np.isin(cells.cell, several)
        pairs = np.unique(cells.cell[among].astype(np.int64) * threads + cells.thread[among])
        if not self._pairs or not np.array_equal(self._pairs[-1], pairs):
            self._pairs.append(pairs)
        self._together[several] = len(self._pairs)

    def wrote(self, cells: AccessedCells, threads: int) -> Mask | None:
        """Whether each thread took part in the last write of its cell, with others; None where nobody did.

        threads: of a block.
        """
        found = self._wrote_alike(cells)
        if self._together is None:
            return found
        number, own = self._together[cells.cell], np.zeros(len(cells.cell), np.bool_)
        for one in np.unique(number[number > 0]).tolist():
            pairs = cells.cell.astype(np.int64) * threads + cells.thread
            own |= (number == one) & np.isin(pairs, self._pairs[one - 1])
        return own if found is None else found | own

    def _wrote_alike(self, cells: AccessedCells) -> Mask | None:
        """The same where all threads of the write named one cell."""
        if self._joint is None:
            return None
        joint = self._joint[cells.cell]
        number = np.abs(joint)
        own = np.zeros(len(number), np.bool_)
        for one in np.unique(number[number > 0]).tolist():
            among = number == one
            own[among] = self._writers[one - 1][cells.world[among], cells.thread[among]]
        if self.writes.world is not None:
            own &= (joint > 0) | (self.writes.world[0].take(cells.cell) == cells.world)
        return own

    def brings_same(self, cells: AccessedCells, bits: Array | None) -> Mask | None:
        """Return which cells get the bits that the last copy brings, too; None for none."""
        if bits is None or self._bits is None or self._has_bits is None:
            return None
        return np.asarray(self._has_bits[cells.cell] & (self._bits[cells.cell] == bits))

    def grow(self, size: int) -> None:
        """Have room for so many cells. Tensors grow, to which no copies bring bits that are known."""
        if self._joint is not None:
            self._joint = lengthened(self._joint, size)
        super().grow(size)
