"""A shuffle of a warp orders some reads before the writes that follow it: see `program/exchanges`."""

from __future__ import annotations

import numpy as np

from tlcheck.execute.memory.frame import Mask
from tlcheck.execute.memory.values import Array
from tlcheck.execute.observe.accesses import AccessedCells
from tlcheck.execute.observe.clock import EPOCH, VectorClock
from tlcheck.execute.observe.shadow import LastAccesses
from tlcheck.program.exchanges import fed, led
from tlcheck.snapshot.ir import Expr, Function, Stmt

_LATEST = EPOCH // 2  # of an epoch: from there on shuffles take no time, and order nothing surely


class Exchanges:
    """The shuffles of each warp in each world, with the times after which they came last."""

    def __init__(self, function: Function, clock: VectorClock) -> None:
        self._function, self._clock = function, clock
        self._fed, self._led = fed(function), led(function)
        self._surely: dict[Expr, Array] = {}  # what was read up to then was read before the shuffle
        self._perhaps = self._never()
        self._has_read = False  # since all warps have stepped

    def feeding(self, read: Stmt | None) -> frozenset[Expr]:
        """The shuffles into which all surely goes that a statement reads, which it does now."""
        self._has_read = True
        return frozenset() if read is None else self._fed.get(read, frozenset())

    def happened(self, shuffle: Expr, mask: Mask) -> None:
        """Active threads have executed a shuffle: warps that are whole step, as for a fence."""
        clock, surely = self._clock, self._surely.setdefault(shuffle, self._never())
        absent = np.add.reduceat(~mask, np.arange(0, mask.shape[1], clock.width), axis=1)
        for world in range(clock.worlds):
            warps = np.flatnonzero(absent[world] == 0)
            own = clock.own_of(world, warps)
            steps = (own % EPOCH < _LATEST) & self._has_read
            surely[world, warps], self._perhaps[world, warps] = own - ~steps, own - (not self._has_read)
            clock.step(world, warps, steps)
        self._has_read &= not mask.all()

    def between(self, reads: LastAccesses, row: int, writes: AccessedCells, by: Stmt | None) -> tuple[Mask, Mask]:
        """Return which of the last reads of a warp surely come before writes of it by a statement, and which may."""
        times, at = reads.time[row].take(writes.cell), (writes.world, writes.warp % self._clock.warps)
        own = writes.warp == row
        surely = np.zeros(len(times), np.bool_)
        for shuffle in reads.shuffles & (frozenset() if by is None else self._led.get(by, frozenset())):
            if shuffle in self._surely:
                surely |= own & (self._surely[shuffle][at] >= times)
        return surely, own & (self._perhaps[at] >= times)

    def _never(self) -> Array:
        return np.full((self._clock.worlds, self._clock.warps), -1, np.int32)
