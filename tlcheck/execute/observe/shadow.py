"""Shadow memory: the last accesses to each cell, and which of them a new access conflicts with.

As in FastTrack (Flanagan and Freund, PLDI 2009) a cell has one last write, as agent and time, and of its other accesses
the last one of each warp. Two accesses of a cell race if they conflict and the agent of the second one does not know
the first one to be over (`VectorClock`), or if they are of one warp in one epoch, by different threads.

The shadow of a tensor also keeps the cluster of each access, by its first world: clusters are ordered with nothing.
A shadow with events keeps the statement of each access, for a report. Without events a cell may stand for several
(`unit_shadow`).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tlcheck.execute.memory.frame import Mask
from tlcheck.execute.memory.values import Array
from tlcheck.execute.observe.accesses import AccessedCells
from tlcheck.execute.observe.clock import PENDING, VectorClock, same_epoch
from tlcheck.snapshot.ir import Expr

# What an access must not race with.
CONFLICTS = {"read": ("write", "atomic"), "write": ("write", "read", "atomic"), "atomic": ("write", "read")}
MANY = -1  # as the thread of an access: several of a warp, or a bulk copy


class LastAccesses:
    """The last access of each warp to each cell, (warps, cells): its time, the thread, the event, the world.

    event, world: None where these are not kept. world: of a cluster the first one. shuffles: of reads, those by which
    their values surely went to other lanes, see `program/exchanges`. by: the warps that have accessed any. before: the
    event before the last one, where others of the warp made it in the same epoch, else the last one; None where all are
    the last ones.
    """

    def __init__(
        self, rows: int, size: int, events: bool, of_tensor: bool, shuffles: frozenset[Expr] = frozenset()
    ) -> None:
        self.shuffles, self.by = shuffles, tuple[int, ...]()
        self.time, self.thread = np.zeros((rows, size), np.int32), np.full((rows, size), MANY, np.int16)
        self.event = np.zeros((rows, size), np.int32) if events else None
        self.world = np.zeros((rows, size), np.int32) if of_tensor else None
        self.before: Array | None = None

    def record(self, cells: AccessedCells, time: Array | int, event: int) -> None:
        """Remember accesses. No thread is named where several of a warp have accessed a cell in one epoch."""
        self.by = tuple(sorted({*self.by, *np.flatnonzero(np.bincount(cells.warp)).tolist()}))
        at, times, threads = cells.slot, self.time.reshape(-1), self.thread.reshape(-1)
        again = same_epoch(times.take(at), time) & (threads.take(at) != cells.thread)
        if self.world is not None:
            worlds = self.world.reshape(-1)
            again &= worlds.take(at) == cells.cluster
            worlds[at] = cells.cluster
        if self.event is not None:
            events = self.event.reshape(-1)
            if self.before is None and again.any():
                self.before = self.event.copy()
            if self.before is not None:
                self.before.reshape(-1)[at] = np.where(again, events.take(at), event)
            events[at] = event
        times[at], threads[at] = time, cells.thread
        several = again | (threads.take(at) != cells.thread)
        if several.any():
            threads[at[several]] = MANY

    def unordered(self, cells: AccessedCells, now: Array, clock: VectorClock) -> Mask | None:
        """Return where the last access is not over for a new one, (warps, cells); None for nowhere. now: the time."""
        by = self._rows
        times = self.time[by, cells.cell]
        if not times.any():
            return None
        wrong, each = np.asarray(times > clock.known(cells, by)), np.arange(len(now))
        place = np.full(clock.rows, -1)  # of a warp among them
        place[by[:, 0]] = np.arange(len(by))
        for warps, current in clock.current(cells, now):
            at = place[warps]
            beside = (at >= 0) & same_epoch(times[at, each], current)
            beside &= self.thread[warps, cells.cell] != cells.thread
            if beside.any():
                wrong[at, each] |= beside
        if self.world is not None:
            wrong |= (times > 0) & (self.world[by, cells.cell] != cells.cluster)
        return self._of_all(wrong)

    def unfenced_in_tensor_memory(self, cells: AccessedCells, clock: VectorClock) -> Mask | None:
        """Return where the last access to tensor memory lacks only fences before a new one; see `unordered`."""
        by = self._rows
        times = self.time[by, cells.cell]
        if not times.any():
            return None
        # what no barrier orders lacks more than fences
        return self._of_all(np.asarray((times > clock.tensor_of(cells, by)) & (times <= clock.known(cells, by))))

    @property
    def _rows(self) -> Array:
        return np.array(self.by, np.intp).reshape(-1, 1)

    def _of_all(self, wrong: Mask) -> Mask | None:
        """Of the warps that have accessed any, as rows of all; None for nowhere."""
        if not wrong.any():
            return None
        found = np.zeros((len(self.time), wrong.shape[1]), np.bool_)
        found[list(self.by)] = wrong
        return found

    def is_elsewhere(self, row: int, cells: AccessedCells) -> Mask | bool:
        """Return which cells have last been accessed in another cluster; each block is one where they have no other."""
        return False if self.world is None else np.asarray(self.world[row].take(cells.cell) != cells.cluster)

    def event_before(self, row: int, cell: int) -> int:
        """Return the event before the last one of a cell, where others of the warp made it; else the last one."""
        assert self.event is not None
        found = self.event if self.before is None else self.before
        return int(found[row, cell])

    def land(self, cells: AccessedCells, now: Array) -> None:
        """The copies that these threads had begun are over."""
        at, times, threads = cells.slot, self.time.reshape(-1), self.thread.reshape(-1)
        mine = (times[at] == PENDING) & (threads[at] == cells.thread)
        times[at[mine]] = now[mine]


class LastWrites(LastAccesses):
    """The last write of each cell, (1, cells), with the agent by whose time it is over."""

    def __init__(self, size: int, events: bool, of_tensor: bool) -> None:
        super().__init__(1, size, events, of_tensor)
        self.agent = np.zeros((1, size), np.int16)

    def record_by(
        self, cells: AccessedCells, agent: Array | int, thread: Array | int, time: Array | int, event: int = 0
    ) -> None:
        """Remember writes. Without events, no thread is named that has written a cell together with others."""
        cell, threads = cells.cell, self.thread[0]
        self.agent[0, cell], threads[cell], self.time[0, cell] = agent, thread, time
        if self.world is not None:
            self.world[0, cell] = cells.cluster
        if self.event is not None:
            self.event[0, cell] = event
            return
        several = threads[cell] != thread
        if several.any():
            threads[cell[several]] = MANY

    def unordered(self, cells: AccessedCells, now: Array, clock: VectorClock) -> Mask | None:
        """Return where the last write is not over for a new access, (1, cells); None for nowhere. now: the time."""
        time, agent = self.time[0].take(cells.cell), self.agent[0].take(cells.cell)
        wrong = np.asarray(time > clock.known(cells, agent))
        for warps, current in clock.current(cells, now):
            beside = agent == warps
            if beside.any():
                beside &= same_epoch(time, current) & (self.thread[0].take(cells.cell) != cells.thread)
                wrong |= beside
        if self.world is not None:
            wrong |= (time > 0) & self.is_elsewhere(0, cells)
        return wrong[None] if wrong.any() else None

    def unfenced_in_tensor_memory(self, cells: AccessedCells, clock: VectorClock) -> Mask | None:
        """See `LastAccesses`: warps alone write there."""
        time, agent = self.time[0].take(cells.cell), self.agent[0].take(cells.cell).astype(np.intp)
        wrong = np.asarray((time > clock.tensor_of(cells, agent)) & (time <= clock.known(cells, agent)))
        return wrong[None] if wrong.any() else None

    def unfenced(self, cells: AccessedCells, clock: VectorClock) -> Mask | None:
        """Return which cells threads have written last, with no fence before the async proxy; None for none."""
        time, agent = self.time[0].take(cells.cell), self.agent[0].take(cells.cell)
        generic = agent < clock.rows
        if not generic.any():
            return None
        wrong = generic & (time > clock.fenced_of(cells, np.where(generic, agent, 0))) & (time != PENDING)
        if self.world is not None:
            wrong &= ~np.asarray(self.is_elsewhere(0, cells))
        return np.asarray(wrong) if wrong.any() else None

    def is_pending(self, cells: AccessedCells) -> Mask:
        """Return which cells a copy of the same thread is about to write."""
        pending = self.time[0].take(cells.cell) == PENDING
        pending &= self.thread[0].take(cells.cell) == cells.thread
        return np.asarray(pending if self.world is None else pending & ~self.is_elsewhere(0, cells))

    def land(self, cells: AccessedCells, now: Array) -> None:
        """The copies that these threads had begun are over."""
        mine = self.is_pending(cells)
        self.time[0, cells.cell[mine]] = now[mine]


class Shadow:
    """The last accesses to one allocation."""

    def __init__(self, size: int, warps: int, *, events: bool = False, of_tensor: bool = False) -> None:
        """size: flat cells. events: keep the event of each access. of_tensor: keep its world."""
        self.size, self._warps, self._keeps = size, warps, (events, of_tensor)
        self.writes = LastWrites(size, *self._keeps)
        self.others: dict[tuple[str, frozenset[Expr]], LastAccesses] = {}  # reads and atomics, by `shuffles`

    def record(
        self,
        kind: str,
        cells: AccessedCells,
        time: Array | int,
        event: int = 0,
        shuffles: frozenset[Expr] = frozenset(),
    ) -> None:
        """Remember reads or atomics. kind: of an atomic also with its operation. shuffles: see `LastAccesses`."""
        last = self.others.get((kind, shuffles))
        if last is None:
            last = self.others[kind, shuffles] = LastAccesses(self._warps, self.size, *self._keeps, shuffles)
        last.record(cells, time, event)

    def last(self, kind: str) -> list[LastAccesses]:
        """The last accesses of a kind; of atomics, those of all operations."""
        if kind == "write":
            return [self.writes]
        return [last for (of, _), last in self.others.items() if of.partition(" ")[0] == kind]

    def _conflicting(self, kind: str) -> Iterator[LastAccesses]:
        """The last accesses that one of a kind must not race with; of `atomic min`, also atomics but minima."""
        plain, _, operation = kind.partition(" ")
        for other in CONFLICTS[plain]:
            yield from self.last(other)
        if operation:
            yield from (last for (of, _), last in self.others.items() if of.startswith(f"{plain} ") and of != kind)

    def unordered(
        self, kind: str, cells: AccessedCells, now: Array, clock: VectorClock
    ) -> Iterator[tuple[LastAccesses, Mask]]:
        """The last accesses that an access of a kind races with, and where: (1 or warps, cells)."""
        for last in self._conflicting(kind):
            wrong = last.unordered(cells, now, clock)
            if wrong is not None:
                yield last, wrong

    def without_fences(
        self, kind: str, cells: AccessedCells, clock: VectorClock
    ) -> Iterator[tuple[LastAccesses, Mask]]:
        """Return the last accesses to tensor memory that lack only fences before one of a kind: (1 or warps, cells)."""
        for last in self._conflicting(kind):
            wrong = last.unfenced_in_tensor_memory(cells, clock)
            if wrong is not None:
                yield last, wrong

    def land(self, cells: AccessedCells, now: Array) -> None:
        """The copies that these threads had begun are over."""
        for last in (self.writes, *self.others.values()):
            last.land(cells, now)

    def arrays(self) -> Iterator[tuple[LastAccesses, str, Array]]:
        """All that is kept, (rows, cells), with its place."""
        for last in (self.writes, *self.others.values()):
            yield from ((last, name, array) for name, array in vars(last).items() if isinstance(array, np.ndarray))

    def grow(self, size: int) -> None:
        """Have room for so many cells."""
        for last, name, array in list(self.arrays()):
            more = np.full((len(array), size), MANY if name == "thread" else 0, array.dtype)
            more[:, : array.shape[1]] = array
            setattr(last, name, more)
        self.size = size
