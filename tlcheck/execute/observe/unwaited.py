"""Find what a source kernel begins and waits for itself: T.async_copy, T.tma_copy, T.wgmma_gemm.

They go on beside what follows them ("No wait is auto-inserted", TileLang, language/copy_op.py). In the source they are
carried out at once; here stands what they may still read or write, as nobody has waited for them. Who writes what one
reads, or touches what one writes, races with it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tlcheck.execute.events import TENSOR_PRODUCTS, Operation
from tlcheck.execute.memory.frame import Mask
from tlcheck.execute.memory.places import Place
from tlcheck.execute.memory.values import Array, lengthened
from tlcheck.execute.observe.accesses import AccessedCells


@dataclass(eq=False)
class _Begun:
    """An operation with the worlds in which it may still read and write, (worlds,).

    goals: the mbarriers that it completes, with how many phases of each had ended when it began to.
    """

    operation: Operation
    reading: Mask
    writing: Mask
    goals: list[tuple[object, Array]]

    def is_over(self, key: object, phase: Array) -> Mask | None:
        """The worlds in which an mbarrier of which so many phases have ended says so; None where it says nothing."""
        found = [np.asarray(phase > before) for goal, before in self.goals if goal == key]
        return np.logical_or.reduce(found) if found else None

    def end(self, worlds: Mask, reads: bool) -> None:
        """Note that it is over in these worlds. reads: as far as it reads."""
        self.reading = self.reading & ~worlds
        if not reads:
            self.writing = self.writing & ~worlds


class Unwaited:
    """All of a run."""

    def __init__(self) -> None:
        self._count = 0
        self._open: dict[int, _Begun] = {}  # by number, as they began
        self._last: dict[tuple[int, bool], Array] = {}  # allocation, whether it is written -> of each cell the last one

    def begin(self, operation: Operation, worlds: Mask, phase: Array | None) -> int:
        """An operation begins in some of these worlds. Its number."""
        if operation.worlds is not None:
            worlds = np.asarray(worlds & operation.worlds)
        self._count += 1
        goals = [] if phase is None else [(operation.key, phase)]
        self._open[self._count] = _Begun(operation, worlds, worlds, goals)
        return self._count

    def commit(self, key: object, phase: Array) -> None:
        """Products into tensor memory complete an mbarrier too, of which so many phases have ended."""
        for begun in self._open.values():
            if begun.operation.kind == TENSOR_PRODUCTS:
                begun.goals.append((key, phase))

    def holds(self, number: int, place: Place, cell: Array, writes: bool) -> None:
        """Note that it reads or writes these cells."""
        of_cells = self._last.setdefault((place.root, writes), np.zeros(0, np.int32))
        if len(of_cells) < place.memory.flat.size:
            of_cells = self._last[place.root, writes] = lengthened(of_cells, place.memory.flat.size)
        of_cells[cell] = number

    def uses(self, root: int) -> bool:
        """Whether one that is open may use an allocation."""
        return bool(self._open) and ((root, True) in self._last or (root, False) in self._last)

    def meets(self, root: int, touched: AccessedCells, writes: bool, adds: bool = False) -> str:
        """The kind of an operation that an access races with; empty for none. writes: whether it does. adds: it is a
        product's, which those before it do not race with.
        """
        for written in (True, False) if writes else (True,):
            of_cells = self._last.get((root, written))
            if of_cells is None:
                continue
            known = touched.cell < len(of_cells)
            numbers = of_cells[touched.cell[known]]
            for number in np.unique(numbers[numbers > 0]).tolist():
                begun = self._open.get(number)
                if begun is None or (adds and begun.operation.kind == TENSOR_PRODUCTS):
                    continue
                still = begun.writing if written else begun.reading
                if still[touched.world[known][numbers == number]].any():
                    return begun.operation.kind
        return ""

    def finish(self, kind: str, newest: int, worlds: Mask, reads: bool) -> None:
        """The author waits for all of a kind but the newest. reads: only until they have read."""
        mine = [number for number, begun in self._open.items() if begun.operation.kind == kind]
        for number in mine[: max(0, len(mine) - newest)]:
            self._end(number, worlds, reads)

    def passed(self, key: object, worlds: Mask, phase: Array) -> None:
        """Somebody has waited for an mbarrier, of which so many phases have ended, (worlds,)."""
        for number, begun in list(self._open.items()):
            over = begun.is_over(key, phase)
            if over is not None:
                self._end(number, np.asarray(worlds & over), reads=False)

    def _end(self, number: int, worlds: Mask, reads: bool) -> None:
        begun = self._open[number]
        begun.end(worlds, reads)
        if not (begun.reading.any() or begun.writing.any()):
            del self._open[number]
