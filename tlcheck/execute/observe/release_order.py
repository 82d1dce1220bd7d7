"""Find what atomics and fences order: release and acquire patterns (PTX ISA 8.7 to 8.9, "Memory Consistency Model").

A release pattern is an atomic that releases, or a fence and a later atomic of the thread. It hands on what the thread
did before, and what the thread knows to be over: from barriers, and from others' releases (cumulativity). An acquire
pattern is an atomic that acquires, or an atomic and a later fence. It gets that if it reads what the release wrote, or
what a chain of read-modify-writes made of it. A relaxed atomic alone orders nothing. A fence of a block
(__threadfence_block) hands on within it only; atomics are of the whole device.

An atomic counts where the kernel goes by its value (`program/observed`): else it orders these runs by chance.

Time is one number of the machine, which a release or a barrier moves on. Of each thread is kept up to when it knows
the accesses of each other one to be over. `Watch` and `Author` ask for pairs of accesses that nothing else orders.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from tlcheck.execute.events import Observer
from tlcheck.execute.memory.frame import Mask
from tlcheck.execute.memory.state import Origin
from tlcheck.execute.memory.values import Array
from tlcheck.execute.observe.races import SEVERAL
from tlcheck.execute.schedule.launches import grid
from tlcheck.execute.stops import NotModelled
from tlcheck.program.atomics import is_tile_atomic
from tlcheck.program.observed import deciding
from tlcheck.signatures.atomics import ACQUIRING, LOAD, RELEASING, STORE, Atomic
from tlcheck.snapshot.ir import Function
from tlcheck.snapshot.walk import expressions, postorder, statements

if TYPE_CHECKING:
    from tlcheck.execute.machine import Machine

_Thread = tuple[int, int]  # world, thread
_Handed = dict[tuple[int, bool], Array]  # by the world that hands on, and whether to other blocks too: what it knows
ALL = -1  # as a thread: all of the block
_MOST = 1 << 28  # threads that act, times all of which they may know something: some seconds


class Releases(Observer):
    """A record of what atomics and fences order in one machine. tick: the time.

    exact: all that may order blocks is followed: all blocks run, each atomic is of threads that are known.
    """

    def __init__(self, machine: Machine) -> None:
        worlds, self._threads = machine.worlds, machine.state.threads
        self.tick, self._warp = 1, machine.options.target.warp
        self._deciding, self._lost = deciding(machine.function), False
        nothing = np.zeros(len(worlds) * self._threads, np.int32)
        self._knows = np.empty((len(worlds), self._threads), object)  # by thread; threads that know the same share it
        for place in np.ndindex(self._knows.shape):
            self._knows[place] = nothing
        self._at: dict[tuple[int, int], _Handed] = {}  # by allocation and cell
        self._fences: dict[bool, dict[_Thread, tuple[Array, int]]] = {False: {}, True: {}}  # by whether of the device
        self._read: dict[_Thread, _Handed] = {}  # of relaxed atomics, before a fence
        self._arrived: dict[tuple[object, int], Array] = {}  # by barrier and world
        self._published: dict[tuple[object, int], Array] = {}
        blocks = prod(grid(machine.function, machine.scalars))
        by_seed = [{w.block for w in worlds if w.seed == seed} for seed in {w.seed for w in worlds}]
        self.exact = all(len(found) == blocks for found in by_seed) and not _has_tile_orders(machine.function)

    # ---- what is ordered

    def over(self, by: tuple[Array, Array], last: tuple[Array, Array], tick: Array) -> Mask:
        """Whether each accessor knows the last access to be over.

        by, last: worlds and threads; as a thread ALL for those of a block, of last SEVERAL - w for those of warp w.
        Raises NotModelled where too many threads released or acquired something to follow them.
        """
        if self._lost:
            raise NotModelled("a release or acquire by so many threads of so many blocks")
        pairs = list(zip(by[0].tolist(), by[1].tolist(), strict=True))
        knows = {pair: self._common(*pair) for pair in set(pairs)}
        numbers = {id(known): n for n, known in enumerate(knows.values())}
        group, found = np.array([numbers[id(knows[pair])] for pair in pairs]), np.zeros(len(tick), np.bool_)
        for number, known in enumerate(knows.values()):
            if numbers[id(known)] == number:
                mine = np.flatnonzero(group == number)
                found[mine] = self._until(known, last[0][mine], last[1][mine]) >= tick[mine]
        return found

    def _until(self, known: Array, worlds: Array, threads: Array) -> Array:
        """Up to when accesses are over that some threads have made, to whom knows so much."""
        by_world = known.reshape(-1, self._threads)
        until = by_world[worlds, np.maximum(threads, 0)]
        several = np.flatnonzero(threads < 0)
        for world, thread in set(zip(worlds[several].tolist(), threads[several].tolist(), strict=True)):
            until[(worlds == world) & (threads == thread)] = by_world[world, self._members(thread)].min()
        return np.asarray(until)

    def is_open(self, world: int, last: _Thread, tick: int) -> bool:
        """Whether a thread of the block has read what was released after that access, and no fence of it followed."""
        at = last[0] * self._threads + last[1]
        handed = [known for (w, _), some in self._read.items() if w == world for known in some.values()]
        return last[1] < 0 or any(known[at] >= tick for known in handed)

    def _members(self, thread: int) -> slice:
        """The threads for which ALL stands, or SEVERAL - w."""
        first = (SEVERAL - thread) * self._warp
        return slice(None) if thread == ALL else slice(first, first + self._warp)

    def _common(self, world: int, thread: int) -> Array:
        """Return what a thread knows, or all of a block."""
        if thread != ALL:
            return np.asarray(self._knows[world, thread])
        return np.asarray(np.min(list(_distinct(self._knows[world])), axis=0))

    # ---- atomics and fences

    def atomic_made(
        self, atomic: Atomic, order: int, root: int, cell: Array, threads: tuple[Array, Array] | None, origin: Origin
    ) -> None:
        """Threads have made an atomic, in this order; see `Observer.atomic_made`."""
        reads, releases = atomic.returns and origin.stmt in self._deciding, order in RELEASING
        fenced = any(self._fences.values())
        if threads is None:
            self.exact &= not (reads or releases or fenced)
            return
        if not self._deciding or not (reads or releases or fenced or atomic.operation == STORE):
            return  # nobody acquires, or it goes on with the chain of what was released there
        if len(cell) * self._knows.size > _MOST:
            self._lost = True
            return
        for one, world, thread in zip(cell.tolist(), *(t.tolist() for t in threads), strict=True):
            here = self._at.get((root, one), {})
            if reads:
                self._observe((world, thread), here, order in ACQUIRING)
            if atomic.operation != LOAD:
                handed = self._handed((world, thread), releases)
                if atomic.operation != STORE:
                    handed = _united(here, handed)
                self._at[root, one] = handed
        self.tick += 1

    def thread_fence(self, mask: Mask, wide: bool) -> None:
        """Active threads pass a fence. wide: it counts for other blocks too."""
        for world, thread in np.argwhere(mask).tolist():
            self._observe((world, thread), self._read.get((world, thread), {}), True, wide)
            self._fences[wide][world, thread] = self._knows[world, thread], self.tick
        self.tick += 1

    def _observe(self, thread: _Thread, here: _Handed, acquires: bool, wide: bool = True) -> None:
        """A thread has read what was handed on."""
        meant = {key: known for key, known in here.items() if key[0] == thread[0] or (wide and key[1])}
        if not acquires:
            self._read[thread] = _united(self._read.get(thread, {}), meant)
            return
        for known in meant.values():
            if (self._knows[thread] < known).any():
                self._knows[thread] = np.maximum(self._knows[thread], known)

    def _handed(self, thread: _Thread, releases: bool) -> _Handed:
        """Return what an atomic of a thread hands on."""
        if releases:
            return {(thread[0], True): self._with_own(thread, self._knows[thread], self.tick)}
        passed = [(wide, fences[thread]) for wide, fences in self._fences.items() if thread in fences]
        return {(thread[0], wide): self._with_own(thread, *fence) for wide, fence in passed}

    def _with_own(self, thread: _Thread, known: Array, tick: int) -> Array:
        known = known.copy()
        known[thread[0] * self._threads + thread[1]] = tick
        return known

    # ---- barriers, which hand on what their threads know

    def barrier(self, mask: Mask) -> None:
        """All active threads of each world have met."""
        for world, threads in enumerate(mask):
            self._meet(world, np.flatnonzero(threads))
        self.tick += 1

    def warp_barrier(self, mask: Mask) -> None:
        """Active threads of each warp have met."""
        for world, threads in enumerate(mask):
            active = np.flatnonzero(threads)
            for warp in np.unique(active // self._warp).tolist():
                self._meet(world, active[active // self._warp == warp])
        self.tick += 1

    def arrived(self, key: object, mask: Mask, at: Array | None = None) -> None:
        """Active threads have arrived at a barrier."""
        for world, threads in enumerate(mask):
            active = np.flatnonzero(threads)
            if len(active):
                joined, there = self._joined(world, active), world if at is None else int(at[world])
                before = self._arrived.get((key, there))
                self._arrived[key, there] = joined if before is None else np.maximum(before, joined)
        self.tick += 1

    def products_released(self, key: object, mask: Mask, at: Array) -> None:
        """Active threads issue a tcgen05.commit, which releases what they know."""
        self.arrived(key, mask, at)

    def phase_ended(self, key: object, world: int) -> None:
        """A phase of a barrier has ended in a world."""
        if (key, world) in self._arrived:
            self._published[key, world] = self._arrived[key, world]

    def acquired(self, key: object, mask: Mask, at: Array | None = None) -> None:
        """Active threads have waited for a barrier."""
        for world, threads in enumerate(mask):
            published = self._published.get((key, world if at is None else int(at[world])))
            if published is None:
                continue
            after: dict[int, Array] = {}
            for thread in np.flatnonzero(threads).tolist():
                known = self._knows[world, thread]
                if id(known) not in after:
                    after[id(known)] = np.maximum(known, published)
                self._knows[world, thread] = after[id(known)]

    def _meet(self, world: int, threads: Array) -> None:
        if len(threads):
            joined = self._joined(world, threads)
            for thread in threads.tolist():
                self._knows[world, thread] = joined

    def _joined(self, world: int, threads: Array) -> Array:
        """Return what some threads of a block know together, their own accesses included."""
        known = np.max(list(_distinct(self._knows[world, threads])), axis=0)
        known[world * self._threads + threads] = self.tick
        return np.asarray(known)


def _distinct(known: Array) -> Iterator[Array]:
    """The different arrays among those of some threads."""
    yield from {id(one): one for one in known.tolist()}.values()


def _united(one: _Handed, other: _Handed) -> _Handed:
    """Return what both hand on."""
    found = dict(one)
    for key, known in other.items():
        found[key] = np.maximum(found[key], known) if key in found else known
    return found


def _has_tile_orders(function: Function) -> bool:
    """Whether a tile operator is an atomic with an order: which thread makes it is not known."""
    calls = [e for s in statements(function.body) for e in postorder(expressions(s)) if is_tile_atomic(e)]
    return any(dict(e.annotations).get("memory_order", "0") != "0" for e in calls)
