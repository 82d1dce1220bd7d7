"""A first look at the order of accesses: coarser and faster than `Watch`, and sure only where it finds nothing.

Shared memory is looked at in units of up to 16 bytes: as large as the accesses of threads to them are, and split when a
smaller one comes. What is read or written in parts of a unit counts for all of it, and what several threads of a warp
do counts as done by none of them in particular. An element of a tensor is its writer's, whatever stands between. So
whatever `Watch` would report is suspected here, and some things that are in order as well: the kernel then runs again,
under a `Watch` that looks at these alone. After what it suspects a glance goes on as if that had been in order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from tlcheck.execute.memory.cells import Cells, Position
from tlcheck.execute.memory.frame import Mask
from tlcheck.execute.memory.pages import Pages
from tlcheck.execute.memory.places import Place
from tlcheck.execute.memory.state import Origin
from tlcheck.execute.memory.values import Array, Value
from tlcheck.execute.observe.order import BARRIERS, Watch
from tlcheck.execute.observe.recurrence import Recurrence, Times
from tlcheck.execute.observe.remembered import SEVERAL, LastOf, Remembered, Units, Users
from tlcheck.execute.observe.shadows import PENDING, same_epoch
from tlcheck.execute.observe.suspects import Suspects
from tlcheck.targets.nvidia import WARP

if TYPE_CHECKING:
    from tlcheck.execute.machine import Machine

_MOST_KEPT = 1 << 21  # units


class Glance(Watch):
    """Watches like its base, but keeps what it suspects instead of what a report needs."""

    def __init__(self, machine: Machine, worlds: Mask, written: frozenset[str]) -> None:
        super().__init__(machine, worlds, written)
        self.found = Suspects()
        self._known_of: dict[int, Remembered] = {}
        self._kept: dict[tuple[object, ...], tuple[object, object, Units]] = {}
        self._users: dict[int, Users] = {}
        self._first = 1  # the number of the first lane
        self.told = [0] * len(machine.worlds)  # of each world, a number for all that it has done so far
        self._varies = False
        self._size = 0  # of what is kept
        self._agents_in_all = self.warps + BARRIERS
        self._happens = Recurrence(self)

    def follow(self, other: Glance) -> None:
        """Go on where another one ended who watched other blocks: tensors are theirs as well."""
        self._users, self._first = other._users, other._first + len(other.watched) * other.machine.state.threads

    @property
    def is_settled(self) -> bool:
        """Whether every schedule of asynchronous copies has the same result.

        In watched worlds all accesses that conflict are ordered, so that each reads the same write whenever copies
        land: as late as they may, as early, or between. The worlds of the other seeds are not watched. They need not be
        where they have accessed the same cells, with the same barriers between, in the same sequence.
        """
        self._happens.settle()
        told: dict[object, set[int]] = {}
        for world, number in zip(self.machine.worlds, self.told, strict=True):
            told.setdefault(world.block, set()).add(number)
        return not self._varies and all(len(numbers) == 1 for numbers in told.values())

    # ---- accesses

    def read(
        self, place: Place, position: Position, mask: Mask, origin: Origin, proxy: str = "generic", by: Any = None
    ) -> None:
        """Active threads read elements."""
        if isinstance(place.memory, Pages):
            self._varies |= by is not None  # a bulk copy reads when it lands: nobody knows what it gets
            self._in_tensor("read", place, position, mask, by)
            return
        sign = "read", proxy, place, _sign(position), _sign(mask)
        if self._happens.is_known(sign):
            return
        touched = self._looked_up(place, position, mask, proxy == "async" or place.arranged)
        self._happens(("read", proxy, touched), partial(self._read, place.root, proxy, touched), sign, (position, mask))

    def _read(self, root: int, proxy: str, touched: Units) -> None:
        self._tell("read", proxy, touched)
        if not len(touched.cell):
            return
        shadow, now = self._known_of[root], self._time(touched.own)
        self._after_write(shadow, touched, now)
        if proxy == "async":
            self._after_fence(shadow, touched)
        if shadow.atomics is not None:
            self._after(shadow, shadow.atomics, touched, now)
        shadow.reads.record(touched, now)

    def write(self, place: Place, position: Position, mask: Mask, origin: Origin, value: Value) -> None:
        """Active threads are about to write elements."""
        if isinstance(place.memory, Pages):
            self._in_tensor("write", place, position, mask)
            return
        sign = "write", place, _sign(position), _sign(mask)
        if self._happens.is_known(sign):
            return
        touched = self._looked_up(place, position, mask, False)
        self._happens(("write", touched), partial(self._write, place.root, touched), sign, (position, mask))

    def _write(self, root: int, touched: Units) -> None:
        self._tell("write", root, touched)
        if len(touched.cell):
            now = self._time(touched.own)
            self._written(root, touched, touched.warp, touched.thread, now, now)

    def bulk_store_issued(
        self, place: Place, position: Position, mask: Mask, origin: Origin, value: Value | None, by: Array
    ) -> None:
        """Bulk copies write a tensor, or add to it."""
        self.ordering |= value is None
        self._in_tensor("write" if value is not None else "atomic", place, position, mask, by)

    def written(self, place: Place, position: Position, mask: Mask, origin: Origin, value: Value) -> None:
        """Active threads have written elements: those that wrote another value than is there now disagree."""
        if isinstance(place.memory, Cells):
            touched = self._looked_up(place, position, mask, False)
            doubled = touched.doubled
        else:
            doubled = self._users_of(place).doubled
        if doubled and self._disagreement(place, position, mask, value) is not None:
            self.found.stores.add(place.root)

    def atomic(self, place: Place, position: Position, mask: Mask, origin: Origin) -> None:
        """Active threads access elements with atomics: no conflict with one another."""
        if isinstance(place.memory, Pages):
            self.ordering = True
            self._in_tensor("atomic", place, position, mask)
            return
        sign = "atomic", place, _sign(position), _sign(mask)
        if self._happens.is_known(sign):
            return
        touched = self._looked_up(place, position, mask, False)
        self._happens(("atomic", touched), partial(self._atomic, place.root, touched), sign, (position, mask))

    def _atomic(self, root: int, touched: Units) -> None:
        self._tell("atomic", root, touched)
        if not len(touched.cell):
            return
        shadow, now = self._known_of[root], self._time(touched.own)
        self._after_write(shadow, touched, now)
        self._after(shadow, shadow.reads, touched, now)
        shadow.atomic().record(touched, now)

    def bulk_load_issued(
        self,
        place: Place,
        position: Position,
        mask: Mask,
        lane: Mask,
        origin: Origin,
        key: object,
        coming: Array | None,
        later: Mask | None = None,
    ) -> None:
        """A bulk copy into shared memory begins; see `Watch.bulk_load_issued`."""
        unsure = None if later is None else later.tobytes()
        sign = "issue", key, place, _sign(position), _sign(mask), _sign(lane), unsure
        if self._happens.is_known(sign):
            return
        touched = self._looked_up(place, position, mask, True, lane)
        issues = partial(self._issue, place.root, touched, key, later)
        self._happens(("issue", key, touched, unsure), issues, sign, (position, mask, lane))

    def _issue(self, root: int, touched: Units, key: object, later: Mask | None) -> None:
        self._tell("issue", key, touched)
        if len(touched.cell):
            world, warp = np.divmod(np.unique(touched.row), self.warps)
            fenced = self._released.setdefault(key, self._nothing())[1]
            np.maximum.at(fenced, world, self.fenced[world, warp])
            now, agent, phase = self._time(touched.own), self._agent(key), self._ending(key, later)
            several = np.full(len(touched.cell), SEVERAL)
            over = phase[touched.row // self.warps]
            self._written(root, touched, np.full(len(several), agent), several, over, now)

    def copy_issued(self, place: Place, position: Position, mask: Mask, origin: Origin, coming: Array) -> None:
        """Threads begin copies into shared memory, which are over for nobody until they have landed."""
        sign = "copy", place, _sign(position), _sign(mask)
        if self._happens.is_known(sign):
            return
        touched = self._looked_up(place, position, mask, False)
        self._happens(("copy", touched), partial(self._begin, place.root, touched), sign, (position, mask))

    def _begin(self, root: int, touched: Units) -> None:
        self._tell("copy", root, touched)
        if len(touched.cell):
            time = np.full(len(touched.cell), PENDING)
            self._written(root, touched, touched.warp, touched.thread, time, self._time(touched.own))

    def copy_landed(self, place: Place, position: Position, mask: Mask, by: Any = None) -> None:
        """Such copies have landed for the threads that began them."""
        if isinstance(place.memory, Pages):
            return
        sign = "landed", place, _sign(position), _sign(mask)
        if self._happens.is_known(sign):
            return
        touched = self._looked_up(place, position, mask, False)
        self._happens(("landed", touched), partial(self._land, place.root, touched), sign, (position, mask))

    def _land(self, root: int, touched: Units) -> None:
        if len(touched.cell):
            shadow = self._known_of[root]
            mine = (shadow.time[touched.cell] == PENDING) & (shadow.thread[touched.cell] == touched.thread)
            shadow.time[touched.cell[mine]] = self._time(touched.own)[mine]

    def proxy_crossed(self, place: Place, position: Position, mask: Mask, origin: Origin) -> None:
        """The async proxy uses what active threads name: is what was written there visible to it?"""
        sign = "proxy", place, _sign(position), _sign(mask)
        if self._happens.is_known(sign):
            return
        touched = self._looked_up(place, position, mask, False)
        self._happens(("proxy", touched), partial(self._cross, place.root, touched), sign, (position, mask))

    def _cross(self, root: int, touched: Units) -> None:
        self._tell("proxy", root, touched)
        if len(touched.cell):
            self._after_fence(self._known_of[root], touched)

    def reallocated(self, root: int) -> None:
        """The allocation is declared anew."""
        if root in self._known_of:
            self._happens.settle()
            del self._known_of[root]
            self._kept.clear()

    def ended(self) -> None:
        """The kernel has ended: drop what is remembered of its shared memory. Tensors are other blocks' as well."""
        self._happens.settle()
        self._happens = Recurrence(self)
        self._known_of.clear()
        self._kept.clear()

    # ---- synchronization

    def barrier(self, mask: Mask) -> None:
        """Barrier of all warps with active threads, in each world."""
        self._pass("meet", None, mask, super().barrier, mask)

    def warp_barrier(self, mask: Mask) -> None:
        """__syncwarp."""
        self._pass("warp", None, mask, super().warp_barrier, mask)

    def arrived(self, key: object, mask: Mask) -> None:
        """Active warps pass on what they know to those who wait for `key` later."""
        self._pass("release", key, mask, super().arrived, key, mask)

    def phase_ended(self, key: object, world: int) -> None:
        """A phase of `key` has ended in a world."""
        event = "over", key, world
        if not self._happens.is_known(event):
            self._happens(event, partial(self._end, key, world), event)

    def _end(self, key: object, world: int) -> None:
        self.told[world] = hash((self.told[world], "over", key))
        super().phase_ended(key, world)

    def acquired(self, key: object, mask: Mask) -> None:
        """Active warps have waited for `key`."""
        self._pass("acquire", key, mask, super().acquired, key, mask)

    def phase_waited(self, key: object, mask: Mask) -> None:
        """Active warps have waited for a phase of an mbarrier; see `Watch.phase_waited`."""
        self._pass("waited", key, mask, super().phase_waited, key, mask)

    def proxy_fence(self, mask: Mask) -> None:
        """fence.proxy.async by active threads."""
        self._pass("fence", None, mask, super().proxy_fence, mask)

    # ---- what recurs (`recurrence.Clocks`)

    def own(self) -> Array:
        """The time of each agent in each world."""
        found = np.zeros((len(self.watched), self._agents_in_all), np.int32)
        found[:, : self.warps] = np.diagonal(self.clocks, axis1=1, axis2=2)
        for key, agent in self._agents.items():
            if key in self._passed:
                found[:, agent] = self._passed[key][0][:, agent]
        return found

    def times(self) -> Iterator[Times]:
        """Every array of times."""
        worlds, agents = np.arange(len(self.watched)) * self._agents_in_all, np.arange(self._agents_in_all)
        yield Times(self.clocks, worlds[:, None, None], agents)
        yield Times(self.fenced, worlds[:, None, None], agents[: self.warps])
        for clocks, fenced in (*self._passed.values(), *self._released.values()):
            yield Times(clocks, worlds[:, None], agents)
            yield Times(fenced, worlds[:, None], agents[: self.warps])
        for (_, world), waiting in self._waited.items():
            yield from (Times(times, worlds[world], warps) for warps, times in waiting)
        count = self._looked_at
        for shadow in self._known_of.values():
            yield Times(shadow.heads(shadow.time, count), worlds[:count], shadow.heads(shadow.agent, count))
            for latest in shadow.latest():
                yield Times(shadow.heads(latest.time, count), worlds[:count], agents[: self.warps, None, None])

    def marks(self) -> Iterator[Array]:
        """Who made the last accesses."""
        for shadow in self._known_of.values():
            of_threads = [shadow.agent, shadow.thread, *(latest.thread for latest in shadow.latest())]
            yield from (shadow.heads(array, self._looked_at) for array in of_threads)

    @property
    def _looked_at(self) -> int:
        """The worlds up to the last one that is watched."""
        return int(np.flatnonzero(self.watched)[-1]) + 1

    # ---- inside

    def _tell(self, what: str, about: object, touched: Units) -> None:
        """Note an access in each world that makes it."""
        self.told = [
            hash((told, what, about, seen)) if seen else told
            for told, seen in zip(self.told, touched.seen, strict=True)
        ]

    def _pass(self, what: str, key: object, mask: Mask, act: Callable[..., None], *about: Any) -> None:
        """Carry out a synchronization by active lanes, which each world that takes part is told."""
        sign = what, key, _sign(mask)
        if self._happens.is_known(sign):
            return
        same = mask.strides == (0, 0)
        event = what, key, mask[0, 0] if same else mask.tobytes()

        def passes() -> None:
            self._tell_lanes(what, key, mask)
            act(*about)

        self._happens(event, passes, sign, mask)

    def _tell_lanes(self, what: str, key: object, of_lanes: Array) -> None:
        """Note what lanes do in each world that takes part."""
        worlds, same = len(self.told), of_lanes.strides == (0, 0)
        rows = [b""] * worlds if same else [of_lanes[..., world::worlds, :].tobytes() for world in range(worlds)]
        self.told = [
            hash((told, what, key, row)) if same or any(row) else told
            for told, row in zip(self.told, rows, strict=True)
        ]

    def _in_tensor(self, kind: str, place: Place, position: Position, mask: Mask, by: Any = None) -> None:
        """Lanes access elements of a tensor: was another one there before? Barriers are not asked."""
        if not place.steady or by is not None:  # the same elements in all seeds?
            assert isinstance(place.memory, Pages)
            elements = np.where(mask, place.memory.elements_at(np.asarray(position)), -1)
            self._tell_lanes(kind, (place.root, self._happens.at), elements)
        else:
            self._tell_lanes(kind, (place.root, self._happens.at), mask)
        for touched in self._touched(place, position, mask, by):
            self._names[place.name] = self._tensors.get(place.root, "")
            users, cell = self._users_of(place), touched.cell
            me = touched.world * self.machine.state.threads + touched.thread + self._first
            if by is not None:  # a bulk copy is somebody else than the thread that begins it
                me = SEVERAL - me
            writer, reader = users.writer[cell], users.reader[cell]
            others = (writer != 0) & ((writer != me) | ((writer < 0) & (kind == "read")))
            if kind != "read":
                others |= (reader != 0) & (reader != me)
            if kind != "atomic":
                others |= users.atomic[cell]
            if others.any():
                self.found.tensors.add(place.root)
            if kind == "write":
                users.writer[cell] = me
                users.doubled = bool((users.writer[cell] != me).any())
            elif kind == "atomic":
                users.atomic[cell] = True
            else:
                users.reader[cell] = me
                several = (users.reader[cell] != me) | ((reader != 0) & (reader != me))
                users.reader[cell[several]] = SEVERAL

    def _users_of(self, place: Place) -> Users:
        size = place.memory.flat.size
        users = self._users.get(place.root)
        if users is None or len(users.writer) < size:
            users = self._users[place.root] = Users(size, users)
        return users

    def _warps_of(self, mask: Mask) -> Iterator[tuple[int, Array]]:
        """World and warps with active threads."""
        active = np.logical_or.reduceat(mask, np.arange(0, mask.shape[1], WARP), axis=1)
        for world in np.flatnonzero(self.watched).tolist():
            warps = np.flatnonzero(active[world])
            if len(warps):
                yield world, warps

    def _time(self, where: Array) -> Array:
        return np.asarray(self.clocks.reshape(-1).take(where))

    def _written(self, root: int, touched: Units, agent: Array, thread: Array, time: Array, now: Array) -> None:
        """A write by agents that is over at a time of theirs, made by threads `now`."""
        shadow, cell = self._known_of[root], touched.cell
        self._after_write(shadow, touched, now)
        self._after(shadow, shadow.reads, touched, now)
        if shadow.atomics is not None:
            self._after(shadow, shadow.atomics, touched, now)
        shadow.agent[cell], shadow.thread[cell], shadow.time[cell] = agent, thread, time
        several = shadow.thread[cell] != thread
        if several.any():
            shadow.thread[cell[several]] = SEVERAL

    def _after_write(self, shadow: Remembered, touched: Units, now: Array) -> None:
        """Is the last write of each unit over?"""
        time, agent = shadow.time.take(touched.cell), shadow.agent.take(touched.cell)
        wrong = time > self._time(touched.own - touched.warp + agent)
        beside = agent == touched.warp
        if beside.any():
            beside &= same_epoch(time, now) & (shadow.thread.take(touched.cell) != touched.thread)
            wrong |= beside
        if wrong.any():
            shadow.suspect(touched.cell[wrong])

    def _after_fence(self, shadow: Remembered, touched: Units) -> None:
        """Does a fence stand between the threads' last write of each unit and the async proxy?"""
        time, agent = shadow.time.take(touched.cell), shadow.agent.take(touched.cell)
        generic = agent < self.warps
        if not generic.any():
            return
        generic &= (time > 0) & (time != PENDING)
        covered = self.fenced.reshape(-1).take(touched.row * self.warps + np.where(generic, agent, 0))
        generic &= time > covered
        if generic.any():
            shadow.suspect(touched.cell[generic])

    def _after(self, shadow: Remembered, latest: LastOf, touched: Units, now: Array) -> None:
        """Are the last reads (or atomics) of each unit over, in all warps?"""
        times = latest.time[:, touched.cell]
        if not times.any():
            return
        known = self.clocks.reshape(-1, self._agents_in_all)[touched.row, : self.warps].T
        own = np.arange(len(now))
        beside = same_epoch(times[touched.warp, own], now)
        beside &= latest.thread[touched.warp, touched.cell] != touched.thread
        late = times > known
        if late.any() or beside.any():
            shadow.suspect(touched.cell[late.any(axis=0) | beside])

    def _looked_up(self, place: Place, position: Position, mask: Mask, whole: bool, lane: Mask | None = None) -> Units:
        """The units of an access. whole: it is of 16 bytes, or parts of these do not matter."""
        mask = np.asarray(mask.any(axis=0)) if mask.ndim > 2 else mask
        everywhere = mask.strides == (0, 0) and bool(mask[0, 0])
        held = None if everywhere else mask if mask.base is None else mask.base
        where = id(position) if isinstance(position, np.ndarray) else repr(position)
        key: tuple[object, ...] = (place.root, where, id(held), whole)
        if lane is not None:
            key = place.root, where, mask.tobytes(), lane.tobytes()
        known = self._kept.get(key)
        if known is not None:
            touched = known[2]
            if touched.version == self._known_of[place.root].version:
                return touched
        self._happens.settle()  # it may divide units
        touched = self._found_units(place, position, mask, whole, lane)
        self._size += 64 + len(touched.cell)
        if self._size > _MOST_KEPT:
            self._kept.clear()
            self._size = 0
        self._kept[key] = (position, held, touched)
        return touched

    def _found_units(self, place: Place, position: Position, mask: Mask, whole: bool, lane: Mask | None) -> Units:
        cells = place.memory
        assert isinstance(cells, Cells)
        self._names[place.name] = ""
        shadow = self._known_of.get(place.root)
        if shadow is None:
            suspected = self.found.pieces_of(place.root, cells)
            shadow = self._known_of[place.root] = Remembered(cells, self.warps, suspected)
        worlds = len(self.watched)
        watched = self.watched if len(mask) == worlds else np.tile(self.watched, len(mask) // worlds)
        rows, lanes = np.nonzero(mask & watched[:, None])
        flat = cells.flat_position(position)
        flat = flat if flat.ndim > 2 else flat[None]
        seen = _digests(flat // shadow.stride, mask, lane, worlds)
        if not len(rows):
            no = np.empty(0, np.int64)
            return Units(no, no, no, no, no, no, shadow.version, False, seen)
        cell = flat[:, rows, lanes if flat.shape[2] > 1 else 0] // shadow.stride
        parts = place.kind.octets // cells.grain
        if not whole:
            shadow.split(cell, _width(cell, parts, shadow.most))
        every = [cell] if parts == 1 else [cell + part for part in range(parts)]
        unit = np.concatenate([each - each % shadow.unit[each // shadow.most] for each in every])
        if len(unit) > 1:
            others = np.flatnonzero((unit[1:] != unit[:-1]).any(axis=1)) + 1
            unit = unit[[0, *others.tolist()]]
        world = rows % worlds
        thread = lanes if lane is None else lane.argmax(axis=-1)[world]
        spread = (unit * shadow.stride + world, thread, world)
        where, thread, world = (np.broadcast_to(x, unit.shape).reshape(-1) for x in spread)
        warp = thread // WARP
        if place.arranged:
            _, once = np.unique(where * self.warps + warp, return_index=True)
            where, world, warp, thread = where[once], world[once], warp[once], np.full(len(once), SEVERAL)
        row = world * self.warps + warp
        slot, own = warp * cells.flat.size + where, row * self._agents_in_all + warp
        doubled = not whole and _shared_by_threads(cell * worlds + rows % worlds, lanes)
        return Units(where, thread.astype(np.int16), warp, row, slot, own, shadow.version, doubled, seen)


def _sign(at: Position) -> object:
    """What tells an array from others, as long as it lives."""
    return id(at) if isinstance(at, np.ndarray) else at


def _digests(cell: Array, mask: Mask, lane: Mask | None, worlds: int) -> tuple[int, ...]:
    """A number for what each world accesses, cells (elements, times * worlds, threads); 0 for nothing."""
    numbers = []
    for world in range(worlds):
        active = mask[world::worlds]
        parts = [active, cell[:, world :: worlds if cell.shape[1] > 1 else 1]]
        parts += [] if lane is None else [lane[world]]
        numbers.append(hash(tuple([part.tobytes() for part in parts])) if active.any() else 0)
    return tuple(numbers)


def _shared_by_threads(cell: Array, thread: Array) -> bool:
    """Whether several threads access one cell."""
    thread = np.broadcast_to(thread, cell.shape).reshape(-1)
    first = np.empty(int(cell.max()) + 1, np.int16)  # of which only these cells are looked at
    first[cell.reshape(-1)] = thread
    return bool((first[cell.reshape(-1)] != thread).any())


def _width(cell: Array, parts: int, most: int) -> int:
    """How many cells each thread accesses side by side, from a multiple of that on; at most those of a unit."""
    run = 1
    while run * 2 <= len(cell) and len(cell) % (run * 2) == 0 and run * 2 * parts <= most:
        heads = cell[:: run * 2]
        if ((cell[run :: run * 2] - heads) != run * parts).any() or (heads % (run * 2 * parts)).any():
            break
        run *= 2
    return run * parts
