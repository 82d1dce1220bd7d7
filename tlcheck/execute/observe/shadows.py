"""What is remembered of the accesses to an allocation: for each cell the last write, and the last read of each warp."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tlcheck.execute.memory.frame import Mask
from tlcheck.execute.memory.values import Array
from tlcheck.targets.nvidia import WARP

PENDING = np.iinfo(np.int32).max  # the time of what is under way: over for nobody
EPOCH = 1 << 6  # times from one synchronization of a warp to the next; within, its proxy fences count


def same_epoch(one: Array, other: Array) -> Array:
    """Whether no synchronization of a warp lies between two of its times: they differ in their lowest bits alone."""
    return np.asarray((one ^ other) < EPOCH)


@dataclass(frozen=True, eq=False)
class Touched:
    """The cells of one access, flat: cell, world and thread of each."""

    cell: Array
    world: Array
    thread: Array

    @cached_property
    def warp(self) -> Array:
        return self.thread // WARP


class Shadow:
    """What is remembered of each cell of one allocation, by flat index; reads and atomics by (warp, flat index).

    Cells of shared memory belong to one world; those of a tensor remember the world of each access.
    """

    def __init__(self, size: int, warps: int, of_tensor: bool) -> None:
        self.size, self._warps, self._of_tensor = size, warps, of_tensor
        self.write_agent = np.full(size, -1, np.int16)
        self.write_thread = np.full(size, -1, np.int16)
        self.write_time = np.zeros(size, np.int32)
        self.write_event = np.zeros(size, np.int32)
        self.write_world = np.zeros(size, np.int32) if of_tensor else None
        self.joint: Array | None = None  # a number of the threads that last wrote a cell in one statement, else 0
        self._joined: list[Mask] = []  # those threads, (worlds, threads)
        self.brought: Array | None = None  # the bits that a copy brings to each cell
        self.is_brought: Mask | None = None  # where the last write is a copy that is known to bring these
        self.reads: Latest | None = None
        self.atomics: Latest | None = None

    def reading(self) -> Latest:
        """The last reads; a tensor that is only written has none."""
        if self.reads is None:
            self.reads = Latest(self.size, self._warps, self._of_tensor)
        return self.reads

    def atomic(self) -> Latest:
        """The last atomic accesses; most kernels have none."""
        if self.atomics is None:
            self.atomics = Latest(self.size, self._warps, self._of_tensor)
        return self.atomics

    def wrote(
        self, touched: Touched, agent: Array, thread: Array, time: Array, event: int, brings: Array | None = None
    ) -> None:
        """Remember a write; brings: the bits of a copy, where they are known."""
        self.write_agent[touched.cell] = agent
        self.write_thread[touched.cell] = thread
        self.write_time[touched.cell] = time
        self.write_event[touched.cell] = event
        if self.write_world is not None:
            self.write_world[touched.cell] = touched.world
        if self.joint is not None:
            self.joint[touched.cell] = 0
        if brings is not None and self.brought is None:
            self.brought, self.is_brought = np.zeros(self.size, np.int64), np.zeros(self.size, np.bool_)
        if self.brought is not None and self.is_brought is not None:
            self.is_brought[touched.cell] = brings is not None
            self.brought[touched.cell] = 0 if brings is None else brings

    def wrote_together(self, touched: Touched, threads: Mask, apart: bool) -> None:
        """Remember who took part in the write that was remembered last. threads: (worlds, threads).

        apart: each world wrote cells of its own.
        """
        if self.joint is None:
            self.joint = np.zeros(self.size, np.int32)
        if not self._joined or not np.array_equal(self._joined[-1], threads):
            self._joined.append(threads)
        self.joint[touched.cell] = -len(self._joined) if apart else len(self._joined)

    def is_own(self, touched: Touched) -> Mask | None:
        """Whether each thread took part in the last write of its cell, with others; None where nobody did."""
        if self.joint is None:
            return None
        joint = self.joint[touched.cell]
        number = np.abs(joint)
        own = np.zeros(len(number), np.bool_)
        for one in np.unique(number[number > 0]).tolist():
            among = number == one
            own[among] = self._joined[one - 1][touched.world[among], touched.thread[among]]
        if self.write_world is not None:
            own &= (joint > 0) | (self.write_world[touched.cell] == touched.world)
        return own

    def changed_by(self, touched: Touched, bits: Array | None) -> Mask | None:
        """Which cells are to hold other bits than the last copy brings; None for all."""
        if bits is None or self.brought is None or self.is_brought is None:
            return None
        return np.asarray(~self.is_brought[touched.cell] | (self.brought[touched.cell] != bits))

    def grow(self, size: int) -> None:
        """Have room for so many cells."""
        for name in ("write_agent", "write_thread", "write_time", "write_event", "write_world", "joint"):
            setattr(self, name, _longer(getattr(self, name), size))
        for latest in (self.reads, self.atomics):
            if latest is not None:
                latest.grow(size)
        self.size = size


class Latest:
    """The last access of each warp to each cell: when, by which thread (-1: several), the event, and the world."""

    def __init__(self, size: int, warps: int, of_tensor: bool) -> None:
        self.time = np.zeros((warps, size), np.int32)
        self.thread = np.full((warps, size), -1, np.int16)
        self.event = np.zeros((warps, size), np.int32)
        self.world = np.zeros((warps, size), np.int32) if of_tensor else None

    def record(self, touched: Touched, time: Array, event: int) -> None:
        """These threads accessed these cells."""
        thread, where = touched.thread, touched.warp * self.time.shape[1] + touched.cell
        times, threads, events = self.time.reshape(-1), self.thread.reshape(-1), self.event.reshape(-1)
        again = same_epoch(times.take(where), time) & (threads.take(where) != thread)
        if self.world is not None:
            worlds = self.world.reshape(-1)
            again &= worlds.take(where) == touched.world
            worlds[where] = touched.world
        times[where], threads[where], events[where] = time, thread, event
        several = again | (threads.take(where) != thread)
        if several.any():
            threads[where[several]] = -1

    def ended(self, touched: Touched, time: Array) -> None:
        """What these threads had begun there is over."""
        where = touched.warp * self.time.shape[1] + touched.cell
        times, threads = self.time.reshape(-1), self.thread.reshape(-1)
        mine = (times[where] == PENDING) & (threads[where] == touched.thread)
        times[where[mine]] = time[mine]

    def grow(self, size: int) -> None:
        """Have room for so many cells."""
        for name in ("time", "thread", "event", "world"):
            setattr(self, name, _longer(getattr(self, name), size))


def _longer(array: Array | None, size: int) -> Array | None:
    """An array with more room at the end of its last axis, filled as a fresh one is."""
    if array is None:
        return None
    more = np.full((*array.shape[:-1], size), -1 if array.dtype == np.int16 else 0, array.dtype)
    more[..., : array.shape[-1]] = array
    return more
