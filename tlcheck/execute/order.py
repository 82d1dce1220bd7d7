"""Which accesses to shared memory are ordered: happens-before with vector clocks.

Agents are the warps of a block and, for bulk copies, its mbarriers. Each world has a clock for each pair of agents:
`clocks[w, i, j]` is the latest time of agent j that agent i knows to be over. Barriers join what their warps know; an
arrival at an mbarrier passes on what the warp knows, and a wait takes it over. Each cell of shared memory remembers its
last write, and the last read of each warp (FastTrack, Flanagan and Freund 2009). Two accesses of one cell of which one
writes are ordered if the second one's agent knows the first one to be over; threads of one warp are ordered by
__syncwarp and what is stronger. Writing the value that is there is no conflict.

Bulk copies and wgmma see shared memory through the async proxy: what threads wrote before has to be followed by
fence.proxy.async (PTX 8.2.3.1, "Proxies") on the way to them. `fenced` has what such fences cover, like `clocks`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tlcheck.execute.frame import Mask
from tlcheck.execute.memory import Cells, Position
from tlcheck.execute.values import Array, Kind, Value
from tlcheck.snapshot.ir import Stmt

if TYPE_CHECKING:
    from tlcheck.execute.machine import Machine
    from tlcheck.execute.places import Place

WARP = 32
BARRIERS = 128  # mbarriers of a block that have a clock of their own
SEVERAL = -2  # SEVERAL - w as an access's thread: several threads of warp w
PENDING = np.iinfo(np.int32).max  # the time of what is under way: over for nobody


@dataclass(frozen=True, slots=True)
class Origin:
    """A statement and the values of the variables of the loops around it."""

    stmt: Stmt | None = None
    loops: tuple[tuple[str, int], ...] = ()


NOWHERE = Origin()


@dataclass(frozen=True, slots=True, eq=False)
class Access:
    """One thread's access. kind: read, write or atomic; proxy: generic or async.

    thread: -1 for a bulk copy, SEVERAL - w where several threads of warp w made it.
    """

    kind: str
    proxy: str
    thread: int
    origin: Origin


@dataclass(frozen=True, slots=True, eq=False)
class Race:
    """Two accesses of one element of a buffer that nothing orders. missing: what would have to stand between them."""

    root: int
    buffer: str
    offset: int
    world: int
    first: Access
    second: Access
    missing: str


@dataclass(frozen=True, slots=True, eq=False)
class _Event:
    """A statement's access, before it is known which thread matters."""

    kind: str
    proxy: str
    origin: Origin


class _Shadow:
    """What is remembered of each cell of one allocation, by flat index; reads and atomics by (warp, flat index)."""

    def __init__(self, size: int, warps: int) -> None:
        self.write_agent = np.zeros(size, np.int16)
        self.write_thread = np.full(size, -1, np.int16)
        self.write_time = np.zeros(size, np.int32)
        self.write_event = np.zeros(size, np.int32)
        self.reads = _Latest(size, warps)
        self.atomics: _Latest | None = None
        self._size, self._warps = size, warps

    def atomic(self) -> _Latest:
        """The last atomic accesses; most kernels have none."""
        if self.atomics is None:
            self.atomics = _Latest(self._size, self._warps)
        return self.atomics


class _Latest:
    """The last access of each warp to each cell: when, by which thread (-1: several), and the event."""

    def __init__(self, size: int, warps: int) -> None:
        self.time = np.zeros((warps, size), np.int32)
        self.thread = np.full((warps, size), -1, np.int16)
        self.event = np.zeros((warps, size), np.int32)

    def record(self, warp: Array, cell: Array, time: Array, thread: Array, event: int) -> None:
        """These threads accessed these cells."""
        before = self.thread[warp, cell]
        again = (self.time[warp, cell] == time) & (before != thread)
        self.time[warp, cell] = time
        self.thread[warp, cell] = thread
        self.thread[warp, cell] = np.where(again | (self.thread[warp, cell] != thread), -1, thread)
        self.event[warp, cell] = event


@dataclass(frozen=True, slots=True, eq=False)
class _Touched:
    """The cells of one access, flat: cell, world and thread of each."""

    cell: Array
    world: Array
    thread: Array

    @property
    def warp(self) -> Array:
        return self.thread // WARP


class Watch:
    """Watches the accesses of a machine. races: those found, one for each pair of statements and buffer."""

    def __init__(self, machine: Machine, worlds: Mask) -> None:
        """worlds: (worlds,) which are watched."""
        warps = -(-machine.threads // WARP)
        count = len(machine.worlds)
        self.machine, self.watched = machine, worlds
        self.warps = warps
        self.clocks = np.zeros((count, warps, warps + BARRIERS), np.int32)
        self.fenced = np.zeros((count, warps, warps), np.int32)
        self.clocks[:, np.arange(warps), np.arange(warps)] = 1
        self.races: dict[tuple[object, ...], Race] = {}
        self._shadows: dict[int, _Shadow] = {}
        self._names: set[str] = set()
        self._events: list[_Event] = [_Event("write", "generic", Origin())]
        self._known: dict[tuple[object, ...], int] = {}
        self._agents: dict[object, int] = {}
        self._passed: dict[object, tuple[Array, Array]] = {}
        self._released: dict[object, tuple[Array, Array]] = {}

    @property
    def buffers(self) -> tuple[str, ...]:
        """The buffers that were accessed, by name."""
        return tuple(sorted(self._names))

    # ---- accesses

    def read(self, place: Place, position: Position, mask: Mask, origin: Origin, proxy: str = "generic") -> None:
        """Active threads read elements."""
        for cells, touched in self._touched(place, position, mask):
            shadow, event = self._shadow(place, cells), self._event("read", proxy, origin)
            self._against_write(place, shadow, touched, event, None)
            if proxy == "async":
                self._unfenced(place, shadow, touched, event)
            if shadow.atomics is not None:
                self._against(place, shadow.atomics, touched, event, None)
            shadow.reads.record(touched.warp, touched.cell, self._now(touched), touched.thread, event)

    def write(self, place: Place, position: Position, mask: Mask, origin: Origin, value: Value) -> None:
        """Active threads are about to write elements."""
        for cells, touched in self._touched(place, position, mask):
            shadow, event = self._shadow(place, cells), self._event("write", "generic", origin)
            changed = _changed(cells, position, place.kind, mask & self.watched[:, None], value, len(touched.cell))
            self._against_write(place, shadow, touched, event, changed)
            self._against(place, shadow.reads, touched, event, changed)
            if shadow.atomics is not None:
                self._against(place, shadow.atomics, touched, event, changed)
            self._wrote(shadow, touched, touched.warp, touched.thread, self._now(touched), event)

    def atomic(self, place: Place, position: Position, mask: Mask, origin: Origin) -> None:
        """Active threads access elements with atomics: no conflict with one another."""
        for cells, touched in self._touched(place, position, mask):
            shadow, event = self._shadow(place, cells), self._event("atomic", "generic", origin)
            self._against_write(place, shadow, touched, event, None)
            self._against(place, shadow.reads, touched, event, None)
            shadow.atomic().record(touched.warp, touched.cell, self._now(touched), touched.thread, event)

    def issue(self, place: Place, position: Position, mask: Mask, lane: Mask, origin: Origin, key: object) -> None:
        """A bulk copy into shared memory begins, by the thread of `lane` (worlds, threads); `key` is what it completes.

        mask: (worlds, 1), the worlds in which it does. The write is over for those who wait for the key.
        """
        for cells, touched in self._touched(place, position, mask, lane):
            shadow, event = self._shadow(place, cells), self._event("write", "async", origin)
            self._against_write(place, shadow, touched, event, None)
            self._against(place, shadow.reads, touched, event, None)
            agent, phase = self._agent(key), self._phase(key)
            thread = np.full(len(touched.cell), -1)
            self._wrote(shadow, touched, np.full(len(thread), agent), thread, phase[touched.world] + 1, event)

    def under_way(self, place: Place, position: Position, mask: Mask, origin: Origin) -> None:
        """Threads begin copies into shared memory (cp.async), which are over for nobody until they have landed."""
        for cells, touched in self._touched(place, position, mask):
            shadow, event = self._shadow(place, cells), self._event("write", "generic", origin)
            self._against_write(place, shadow, touched, event, None)
            self._against(place, shadow.reads, touched, event, None)
            time = np.full(len(touched.cell), PENDING)
            self._wrote(shadow, touched, touched.warp, touched.thread, time, event)

    def landed(self, place: Place, position: Position, mask: Mask) -> None:
        """Such copies have landed for the threads that began them."""
        for cells, touched in self._touched(place, position, mask):
            shadow = self._shadow(place, cells)
            mine = (shadow.write_time[touched.cell] == PENDING) & (shadow.write_thread[touched.cell] == touched.thread)
            shadow.write_time[touched.cell[mine]] = self._now(touched)[mine]

    def forget(self, root: int) -> None:
        """The allocation is declared anew."""
        self._shadows.pop(root, None)

    # ---- synchronization

    def meet(self, mask: Mask) -> None:
        """Barrier of all warps with active threads, in each world."""
        for world, warps in self._warps_of(mask):
            self.clocks[world, warps] = self.clocks[world, warps].max(axis=0)
            self.fenced[world, warps] = self.fenced[world, warps].max(axis=0)
            self._tick(world, warps)

    def within_warps(self, mask: Mask) -> None:
        """__syncwarp."""
        for world, warps in self._warps_of(mask):
            self._tick(world, warps)

    def release(self, key: object, mask: Mask) -> None:
        """Active warps pass on what they know to those who wait for `key` later."""
        clocks, fenced = self._released.setdefault(key, self._nothing())
        for world, warps in self._warps_of(mask):
            clocks[world] = np.maximum(clocks[world], self.clocks[world, warps].max(axis=0))
            fenced[world] = np.maximum(fenced[world], self.fenced[world, warps].max(axis=0))
            self._tick(world, warps)

    def pass_on(self, key: object, world: int) -> None:
        """A phase of `key` has ended in a world: what was released until now goes to those who wait for it."""
        clocks, fenced = self._passed.setdefault(key, self._nothing())
        released = self._released.setdefault(key, self._nothing())
        clocks[world], fenced[world] = released[0][world], released[1][world]
        agent = self._agent(key)
        clocks[world, agent] += 1
        released[0][world, agent] = clocks[world, agent]

    def acquire(self, key: object, mask: Mask) -> None:
        """Active warps have waited for `key`."""
        clocks, fenced = self._passed.setdefault(key, self._nothing())
        for world, warps in self._warps_of(mask):
            self.clocks[world, warps] = np.maximum(self.clocks[world, warps], clocks[world])
            self.fenced[world, warps] = np.maximum(self.fenced[world, warps], fenced[world])

    def fence(self, mask: Mask) -> None:
        """fence.proxy.async by active threads: what their warps know to be over may be seen by the async proxy."""
        for world, warps in self._warps_of(mask):
            self.fenced[world, warps] = self.clocks[world, warps][:, : self.warps]

    # ---- inside

    def _nothing(self) -> tuple[Array, Array]:
        worlds = len(self.machine.worlds)
        return np.zeros((worlds, self.warps + BARRIERS), np.int32), np.zeros((worlds, self.warps), np.int32)

    def _warps_of(self, mask: Mask) -> Iterator[tuple[int, Array]]:
        """World and warps with active threads."""
        for world in np.flatnonzero(mask.any(axis=-1) & self.watched).tolist():
            yield world, np.unique(np.flatnonzero(mask[world]) // WARP)

    def _tick(self, world: int, warps: Array) -> None:
        self.clocks[world, warps, warps] += 1

    def _agent(self, key: object) -> int:
        """The number of an mbarrier among the agents."""
        return self._agents.setdefault(key, self.warps + len(self._agents) % BARRIERS)

    def _phase(self, key: object) -> Array:
        """How many phases of an mbarrier have ended, (worlds,)."""
        return self._passed.setdefault(key, self._nothing())[0][:, self._agent(key)]

    def _now(self, touched: _Touched) -> Array:
        warp = touched.warp
        return np.asarray(self.clocks[touched.world, warp, warp])

    def _shadow(self, place: Place, cells: Cells) -> _Shadow:
        self._names.add(place.name)
        if place.root not in self._shadows:
            self._shadows[place.root] = _Shadow(cells.flat.size, self.warps)
        return self._shadows[place.root]

    def _event(self, kind: str, proxy: str, origin: Origin) -> int:
        """The number of a statement's access."""
        key = kind, proxy, id(origin.stmt), origin.loops
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = len(self._events)
            self._events.append(_Event(kind, proxy, origin))
        return found

    def _touched(
        self, place: Place, position: Position, mask: Mask, lane: Mask | None = None
    ) -> Iterator[tuple[Cells, _Touched]]:
        """The cells of watched worlds that an access touches; nothing where there are none."""
        cells, kind = place.memory, place.kind
        assert isinstance(cells, Cells)
        active = mask & self.watched[:, None]
        if not active.any():
            return
        flat = cells.flat_position(position)
        shape = np.broadcast_shapes(flat.shape, active.shape)
        chosen = np.broadcast_to(active, shape)
        cell = np.broadcast_to(flat, shape)[chosen]
        world = np.broadcast_to(np.arange(shape[-2])[:, None], shape)[chosen]
        threads = np.broadcast_to(np.arange(shape[-1]), shape)
        thread = threads[chosen] if lane is None else lane.argmax(axis=-1)[world]
        parts = kind.bits // 8 // cells.grain
        if parts > 1:
            steps = np.arange(parts).reshape(-1, 1) * cells.stride
            cell = (cell + steps).reshape(-1)
            world, thread = np.tile(world, parts), np.tile(thread, parts)
        yield cells, _Touched(cell, world, thread)

    def _wrote(self, shadow: _Shadow, touched: _Touched, agent: Array, thread: Array, time: Array, event: int) -> None:
        shadow.write_agent[touched.cell] = agent
        shadow.write_thread[touched.cell] = thread
        shadow.write_time[touched.cell] = time
        shadow.write_event[touched.cell] = event

    def _against_write(
        self, place: Place, shadow: _Shadow, touched: _Touched, event: int, changed: Mask | None
    ) -> None:
        """Is the last write of each cell over?"""
        agent, time = shadow.write_agent[touched.cell], shadow.write_time[touched.cell]
        over = time <= self.clocks[touched.world, touched.warp, agent]
        beside = (agent == touched.warp) & (time == self._now(touched))
        wrong = ~over | (beside & (shadow.write_thread[touched.cell] != touched.thread))
        if changed is not None:
            wrong &= changed
        if wrong.any():
            at = int(np.flatnonzero(wrong)[0])
            cell = touched.cell[at]
            missing = "a wait for the copy" if time[at] == PENDING else ""
            thread = int(shadow.write_thread[cell])
            self._found(place, touched, at, int(shadow.write_event[cell]), thread, event, missing)

    def _unfenced(self, place: Place, shadow: _Shadow, touched: _Touched, event: int) -> None:
        """Does a fence stand between the threads' last write of each cell and the async proxy?"""
        agent, time = shadow.write_agent[touched.cell], shadow.write_time[touched.cell]
        generic = (agent < self.warps) & (time > 0) & (time != PENDING)
        covered = self.fenced[touched.world, touched.warp, np.where(generic, agent, 0)]
        wrong = generic & (time > covered)
        if wrong.any():
            at = int(np.flatnonzero(wrong)[0])
            cell = touched.cell[at]
            thread = int(shadow.write_thread[cell])
            self._found(place, touched, at, int(shadow.write_event[cell]), thread, event, "fence.proxy.async")

    def _against(self, place: Place, latest: _Latest, touched: _Touched, event: int, changed: Mask | None) -> None:
        """Are the last reads (or atomics) of each cell over, in all warps?"""
        for warp in range(self.warps):
            time = latest.time[warp][touched.cell]
            if not time.any():
                continue
            own = touched.warp == warp
            known = self.clocks[touched.world, touched.warp, warp]
            beside = own & (time == known) & (latest.thread[warp][touched.cell] != touched.thread)
            wrong = (time > known) | beside
            if changed is not None:
                wrong &= changed
            if wrong.any():
                at = int(np.flatnonzero(wrong)[0])
                cell = touched.cell[at]
                thread = int(latest.thread[warp][cell])
                thread = thread if thread >= 0 else SEVERAL - warp
                self._found(place, touched, at, int(latest.event[warp][cell]), thread, event)

    def _found(
        self, place: Place, touched: _Touched, at: int, before: int, thread: int, event: int, missing: str = ""
    ) -> None:
        first, second = self._events[before], self._events[event]
        key = place.root, id(first.origin.stmt), first.kind, id(second.origin.stmt), second.kind, missing
        if key in self.races:
            return
        mine, cells = int(touched.thread[at]), place.memory
        assert isinstance(cells, Cells)
        self.races[key] = Race(
            place.root,
            place.name,
            (int(touched.cell[at]) // cells.stride * cells.grain - place.begin) // (place.kind.bits // 8),
            int(touched.world[at]),
            Access(first.kind, first.proxy, thread, first.origin),
            Access(second.kind, second.proxy, mine, second.origin),
            missing or _between(first, thread, mine),
        )


def _between(first: _Event, thread: int, other: int) -> str:
    """What would have to stand between two accesses."""
    if first.proxy == "async":
        return "a wait for the copy"
    if (thread // WARP if thread >= 0 else SEVERAL - thread) == other // WARP:
        return "__syncwarp or a barrier"
    return "a barrier"


def _changed(cells: Cells, position: Position, kind: Kind, active: Mask, value: Value, size: int) -> Mask:
    """Which elements a write changes; parts of an element change together."""
    where = cells.flat_position(position)
    shape = np.broadcast_shapes(where.shape, np.shape(value), active.shape)
    chosen = np.broadcast_to(active, shape)
    before: Any = cells.take(np.broadcast_to(where, shape)[chosen], kind)
    after = np.broadcast_to(value, shape)[chosen]
    same = (before == after) | ((before != before) & (after != after))
    return np.resize(~same, size)
