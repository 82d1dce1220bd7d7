"""Which accesses to shared and global memory are ordered: happens-before with vector clocks.

Agents are the warps of a block and, for bulk copies, its mbarriers. Each world has a clock for each pair of agents:
`clocks[w, i, j]` is the latest time of agent j that agent i knows to be over. Barriers join what their warps know; an
arrival at an mbarrier passes on what the warp knows, and a wait takes it over. Each cell of memory remembers its
last write, and the last read of each warp (FastTrack, Flanagan and Freund 2009). Two accesses of one cell of which one
writes are ordered if the second one's agent knows the first one to be over; threads of one warp are ordered by
__syncwarp and what is stronger. Writing the value that is there is no conflict, nor is reading what one has written
oneself, in a statement in which others wrote the same. Blocks are ordered with nothing: what
one of them writes and another one accesses is noted, and `run` asks what the kernel as written does.

Of tensors those are watched that the kernel writes. Bulk copies and wgmma see shared memory through the async proxy:
what threads wrote before has to be followed by fence.proxy.async (PTX 8.2.3.1, "Proxies") on the way to them. `fenced`
has what such fences cover, like `clocks`. A fence moves its warp's time on by one, a synchronization to the next epoch.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from tlcheck.execute.events import Observer
from tlcheck.execute.memory.cells import Cells, Position
from tlcheck.execute.memory.frame import Mask
from tlcheck.execute.memory.pages import Pages
from tlcheck.execute.memory.state import NOWHERE, Origin
from tlcheck.execute.memory.values import Array, Value
from tlcheck.execute.observe.accesses import Accessed
from tlcheck.execute.observe.races import AGREEMENT, BLOCKS, SEVERAL, Access, Race
from tlcheck.execute.observe.shadows import EPOCH, PENDING, Latest, Shadow, Touched, same_epoch
from tlcheck.targets.nvidia import WARP

if TYPE_CHECKING:
    from tlcheck.execute.machine import Machine
    from tlcheck.execute.memory.places import Place
    from tlcheck.execute.observe.suspects import Suspects

_MOST_MASKS = 32  # of which the watched part is remembered
BARRIERS = 128  # mbarriers of a block that have a clock of their own
_COPY = "a wait for the copy"
_WRITES = "a wait for what the copy writes (without .read)"


@dataclass(frozen=True, slots=True, eq=False)
class _Event:
    """A statement's access, before it is known which thread matters."""

    kind: str
    proxy: str
    origin: Origin


class Watch(Observer):
    """Watches the accesses of a machine. races: those found, one for each pair of statements and buffer."""

    def __init__(self, machine: Machine, worlds: Mask, written: frozenset[str]) -> None:
        """worlds: (worlds,) which are watched. written: the parameters whose tensors the kernel writes."""
        warps = -(-machine.state.threads // WARP)
        count = len(machine.worlds)
        self.machine, self.watched = machine, worlds
        self.warps = warps
        self.clocks = np.zeros((count, warps, warps + BARRIERS), np.int32)
        self.fenced = np.zeros((count, warps, warps), np.int32)
        self.clocks[:, np.arange(warps), np.arange(warps)] = EPOCH
        self.races: dict[tuple[object, ...], Race] = {}
        self.ordering = False  # whether atomics on tensors may order blocks
        self._tensors = {uid: name for uid, name in machine.pointers.free if name in written}
        self._shadows: dict[int, Shadow] = {}
        self._seen_of: dict[int, tuple[Mask, Mask]] = {}  # with the mask that the number is of
        self._names: dict[str, str] = {}
        self._events: list[_Event] = [_Event("write", "generic", NOWHERE)]
        self._known: dict[tuple[object, ...], int] = {}
        self._agents: dict[object, int] = {}
        self._passed: dict[object, tuple[Array, Array]] = {}
        self._released: dict[object, tuple[Array, Array]] = {}
        self._waited: dict[tuple[object, int], list[tuple[Array, Array]]] = {}  # warps that did, and when
        self.overtaken: set[int] = set()  # warps, the first of each branch, see `phase_waited`
        self.suspects: Suspects | None = None  # where accesses may not be ordered; None for anywhere

    @property
    def buffers(self) -> dict[str, str]:
        """The buffers that were accessed: name -> its parameter, empty for shared memory."""
        return self._names

    def covers(self, place: Place) -> bool:
        """Whether accesses to a place are watched. Raises NotModelled for elements that are not the tensor's own."""
        memory = place.memory
        if isinstance(memory, Cells):
            return memory.shared
        covered = place.root in self._tensors
        if covered:
            memory.require_width(place.kind)
        return covered

    # ---- accesses

    def read(
        self, place: Place, position: Position, mask: Mask, origin: Origin, proxy: str = "generic", by: Any = None
    ) -> None:
        """Active threads read elements. by: the thread of each element, where that is not its lane."""
        for touched in self._touched(place, position, mask, by):
            shadow, event = self._shadow(place), self._event("read", proxy, origin)
            own = shadow.is_own(touched)
            self._against_write(place, shadow, touched, event, None if own is None else ~own)
            if proxy == "async":
                self._unfenced(place, shadow, touched, event)
            if shadow.atomics is not None:
                self._against(place, shadow.atomics, touched, event, None)
            shadow.reading().record(touched, self._now(touched), event)

    def write(self, place: Place, position: Position, mask: Mask, origin: Origin, value: Value) -> None:
        """Active threads are about to write elements."""
        for accessed in self._elements(place, position, mask):
            shadow, event = self._shadow(place), self._event("write", "generic", origin)
            touched, changed = accessed.touched(len(self.watched)), accessed.changed(value)
            self._against_write(place, shadow, touched, event, changed)
            for latest in (shadow.reads, shadow.atomics):
                if latest is not None:
                    self._against(place, latest, touched, event, changed)
            shadow.wrote(touched, touched.warp, touched.thread, self._now(touched), event)
            active, shape = self._seen(mask), place.memory.flat_position(position).shape
            if shape[-1] == 1 and active.shape[0] == len(self.watched):
                shadow.wrote_together(touched, active, shape[-2] > 1)

    def written(self, place: Place, position: Position, mask: Mask, origin: Origin, value: Value) -> None:
        """Active threads have written elements: those that wrote another value than is there now disagree."""
        if self.suspects is not None and place.root not in self.suspects.stores:
            return
        found = self._disagreement(place, position, mask, value)
        if found is not None:
            touched, other, world = found
            event = self._event("write", "generic", origin)
            elsewhere = world != touched.world[0]
            missing = BLOCKS if elsewhere else AGREEMENT
            self._found(place, touched, 0, event, other, event, missing, world if elsewhere else -1)

    def atomic(self, place: Place, position: Position, mask: Mask, origin: Origin) -> None:
        """Active threads access elements with atomics: no conflict with one another."""
        self.ordering |= isinstance(place.memory, Pages) and bool(self._seen(mask).any())
        for touched in self._touched(place, position, mask):
            shadow, event = self._shadow(place), self._event("atomic", "generic", origin)
            self._against_write(place, shadow, touched, event, None)
            if shadow.reads is not None:
                self._against(place, shadow.reads, touched, event, None)
            shadow.atomic().record(touched, self._now(touched), event)

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
        """A bulk copy into shared memory begins, by the thread of `lane` (worlds, threads); `key` is what it completes.

        mask: (worlds, 1), the worlds in which it does. The write is over for those who wait for the key, and so are
        the fences before it: the phase needs its bytes. coming: what will be there then; None where that is not known.
        later: (worlds,), where it may be the phase after this one that needs them; None for nowhere.
        """
        fenced = self._released.setdefault(key, self._nothing())[1]
        for world, warps in self._warps_of(lane):
            fenced[world] = np.maximum(fenced[world], self.fenced[world, warps].max(axis=0))
        for accessed in self._elements(place, position, mask):
            shadow, event = self._shadow(place), self._event("write", "async", origin)
            touched = accessed.touched(len(self.watched), lane.argmax(axis=-1)[:, None])
            brings = None if coming is None else accessed.bits(coming)
            self._begins(place, shadow, touched, event, brings)
            agent, phase = self._agent(key), self._ending(key, later)
            thread = np.full(len(touched.cell), -1)
            shadow.wrote(touched, np.full(len(thread), agent), thread, phase[touched.world], event, brings)

    def copy_issued(self, place: Place, position: Position, mask: Mask, origin: Origin, coming: Array) -> None:
        """Threads begin copies into shared memory (cp.async), which are over for nobody until they have landed."""
        for accessed in self._elements(place, position, mask):
            shadow, event = self._shadow(place), self._event("write", "generic", origin)
            touched, brings = accessed.touched(len(self.watched)), accessed.bits(coming)
            self._begins(place, shadow, touched, event, brings)
            time = np.full(len(touched.cell), PENDING)
            shadow.wrote(touched, touched.warp, touched.thread, time, event, brings)

    def bulk_store_issued(
        self, place: Place, position: Position, mask: Mask, origin: Origin, value: Value | None, by: Array
    ) -> None:
        """Bulk copies write a tensor, or add to it (value: None): over for nobody before `copy_landed`.

        Those of one thread come one after the other. by: as for `read`.
        """
        self.ordering |= value is None and bool(self._seen(mask).any())
        for accessed in self._elements(place, position, mask):
            kind = "write" if value is not None else "atomic"
            shadow, event = self._shadow(place), self._event(kind, "async", origin)
            touched = accessed.touched(len(self.watched), by)
            changed = None if value is None else accessed.changed(value)
            queued = shadow.write_time[touched.cell] == PENDING
            queued &= shadow.write_thread[touched.cell] == touched.thread
            if shadow.write_world is not None:
                queued &= shadow.write_world[touched.cell] == touched.world
            self._against_write(place, shadow, touched, event, ~queued if changed is None else changed & ~queued)
            for latest in (shadow.reads, shadow.atomics if value is not None else None):
                if latest is not None:
                    self._against(place, latest, touched, event, changed)
            pending = np.full(len(touched.cell), PENDING)
            if value is not None:
                shadow.wrote(touched, touched.warp, touched.thread, pending, event)
            else:
                shadow.atomic().record(touched, pending, event)

    def copy_landed(self, place: Place, position: Position, mask: Mask, by: Any = None) -> None:
        """Such copies have landed for the threads that began them. by: as for `read`."""
        for touched in self._touched(place, position, mask, by):
            shadow, now = self._shadow(place), self._now(touched)
            mine = (shadow.write_time[touched.cell] == PENDING) & (shadow.write_thread[touched.cell] == touched.thread)
            shadow.write_time[touched.cell[mine]] = now[mine]
            if shadow.atomics is not None:
                shadow.atomics.ended(touched, now)

    def proxy_crossed(self, place: Place, position: Position, mask: Mask, origin: Origin) -> None:
        """The async proxy uses what active threads name: is what was written there visible to it?"""
        for touched in self._touched(place, position, mask):
            self._unfenced(place, self._shadow(place), touched, self._event("read", "async", origin))

    # ---- memory

    def reallocated(self, root: int) -> None:
        """The allocation is declared anew."""
        self._shadows.pop(root, None)

    def ended(self) -> None:
        """The kernel has ended: drop what is remembered of its accesses."""
        self._shadows.clear()

    # ---- synchronization

    def barrier(self, mask: Mask) -> None:
        """Barrier of all warps with active threads, in each world."""
        for world, warps in self._warps_of(mask):
            self.clocks[world, warps] = self.clocks[world, warps].max(axis=0)
            self.fenced[world, warps] = self.fenced[world, warps].max(axis=0)
            self._tick(world, warps)

    def grid_barrier(self) -> None:
        """All blocks have met: what they did to tensors is over for all of them."""
        for root in self._tensors:
            self.reallocated(root)

    def warp_barrier(self, mask: Mask) -> None:
        """__syncwarp."""
        for world, warps in self._warps_of(mask):
            self._tick(world, warps)

    def arrived(self, key: object, mask: Mask) -> None:
        """Active warps pass on what they know to those who wait for `key` later."""
        clocks, fenced = self._released.setdefault(key, self._nothing())
        for world, warps in self._warps_of(mask):
            clocks[world] = np.maximum(clocks[world], self.clocks[world, warps].max(axis=0))
            fenced[world] = np.maximum(fenced[world], self.fenced[world, warps].max(axis=0))
            self._tick(world, warps)

    def phase_ended(self, key: object, world: int) -> None:
        """A phase of `key` has ended in a world: what was released until now goes to those who wait for it."""
        clocks, fenced = self._passed.setdefault(key, self._nothing())
        released = self._released.setdefault(key, self._nothing())
        clocks[world], fenced[world] = released[0][world], released[1][world]
        for warps, times in self._waited.pop((key, world), ()):
            if (clocks[world, warps] < times).all():
                self.overtaken.add(int(warps[0]))
        agent = self._agent(key)
        clocks[world, agent] += 1
        released[0][world, agent] = clocks[world, agent]

    def acquired(self, key: object, mask: Mask) -> None:
        """Active warps have waited for `key`."""
        clocks, fenced = self._passed.setdefault(key, self._nothing())
        for world, warps in self._warps_of(mask):
            self.clocks[world, warps] = np.maximum(self.clocks[world, warps], clocks[world])
            self.fenced[world, warps] = np.maximum(self.fenced[world, warps], fenced[world])

    def phase_waited(self, key: object, mask: Mask) -> None:
        """Active warps have waited for a phase of an mbarrier, by its parity.

        If the next phase may end before they do, one of the same parity may be all that is left to wait for: they are
        overtaken unless those who end it know that some of these warps have gone on.
        """
        for world, warps in self._warps_of(mask):
            self._waited.setdefault((key, world), []).append((warps, self.clocks[world, warps, warps]))

    def proxy_fence(self, mask: Mask) -> None:
        """fence.proxy.async by active threads: what their warps know to be over may be seen by the async proxy."""
        for world, warps in self._warps_of(mask):
            self.fenced[world, warps] = self.clocks[world, warps][:, : self.warps]
            own = self.clocks[world, warps, warps]
            self.clocks[world, warps, warps] = np.where(own % EPOCH < EPOCH - 1, own + 1, own)

    # ---- inside

    def _nothing(self) -> tuple[Array, Array]:
        worlds = len(self.machine.worlds)
        return np.zeros((worlds, self.warps + BARRIERS), np.int32), np.zeros((worlds, self.warps), np.int32)

    def _warps_of(self, mask: Mask) -> Iterator[tuple[int, Array]]:
        """World and warps with active threads."""
        for world in np.flatnonzero(mask.any(axis=-1) & self.watched).tolist():
            yield world, np.unique(np.flatnonzero(mask[world]) // WARP)

    def _tick(self, world: int, warps: Array) -> None:
        self.clocks[world, warps, warps] = (self.clocks[world, warps, warps] // EPOCH + 1) * EPOCH

    def _agent(self, key: object) -> int:
        """The number of an mbarrier among the agents."""
        return self._agents.setdefault(key, self.warps + len(self._agents) % BARRIERS)

    def _phase(self, key: object) -> Array:
        """How many phases of an mbarrier have ended, (worlds,)."""
        return self._passed.setdefault(key, self._nothing())[0][:, self._agent(key)]

    def _ending(self, key: object, later: Mask | None) -> Array:
        """The phase of an mbarrier that surely needs the bytes of a copy that begins now, (worlds,)."""
        return self._phase(key) + (1 if later is None else 1 + later)

    def _now(self, touched: Touched) -> Array:
        return self._known_time(touched, touched.warp)

    def _known_time(self, touched: Touched, agent: Array | int) -> Array:
        """The latest time of an agent that whoever accesses each cell knows to be over."""
        row = touched.world * self.warps + touched.warp
        return np.asarray(self.clocks.reshape(-1)[row * self.clocks.shape[2] + agent])

    def _shadow(self, place: Place) -> Shadow:
        memory = place.memory
        shadow = self._shadows.get(place.root)
        if shadow is None:
            shadow = Shadow(memory.flat.size, self.warps, isinstance(memory, Pages))
            self._shadows[place.root] = shadow
        elif shadow.size < memory.flat.size:
            shadow.grow(memory.flat.size)
        return shadow

    def _event(self, kind: str, proxy: str, origin: Origin) -> int:
        """The number of a statement's access."""
        key = kind, proxy, id(origin.stmt), origin.loops
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = len(self._events)
            self._events.append(_Event(kind, proxy, origin))
        return found

    def _touched(self, place: Place, position: Position, mask: Mask, by: Any = None) -> Iterator[Touched]:
        """The cells of the elements that are looked at."""
        for accessed in self._elements(place, position, mask):
            yield accessed.touched(len(self.watched), by)

    def _elements(self, place: Place, position: Position, mask: Mask) -> Iterator[Accessed]:
        """The elements that an access is about, in watched worlds and suspected; nothing where there are none."""
        active = self._seen(mask)
        if not active.any():
            return
        self._names[place.name] = self._tensors.get(place.root, "")
        if self.suspects is None:
            accessed = Accessed(place, position, active)
        elif self.suspects.has(place):
            accessed = Accessed(place, position, active, partial(self.suspects.among, place))
        else:
            return
        if len(accessed.cell):
            yield accessed

    def _disagreement(
        self, place: Place, position: Position, mask: Mask, value: Value
    ) -> tuple[Touched, int, int] | None:
        """See `Accessed.disagreement`."""
        active = self._seen(mask)
        if not isinstance(value, np.ndarray) or not active.any():
            return None
        return Accessed(place, position, active).disagreement(len(self.watched), value)

    def _seen(self, mask: Mask) -> Mask:
        """The active lanes of watched worlds; each world may be there several times, see `Machine.repeated`."""
        known = self._seen_of.get(id(mask))
        if known is None:
            if len(self._seen_of) >= _MOST_MASKS:
                self._seen_of.clear()
            active = mask & np.tile(self.watched, mask.shape[-2] // len(self.watched))[:, None]
            known = self._seen_of[id(mask)] = mask, active
        return known[1]

    def _begins(self, place: Place, shadow: Shadow, touched: Touched, event: int, brings: Array | None) -> None:
        """A copy begins: is what was there before over? One that brings the same may still be under way."""
        self._against_write(place, shadow, touched, event, shadow.changed_by(touched, brings))
        for latest in (shadow.reads, shadow.atomics):
            if latest is not None:
                self._against(place, latest, touched, event, None)

    def _against_write(self, place: Place, shadow: Shadow, touched: Touched, event: int, changed: Mask | None) -> None:
        """Is the last write of each cell over?"""
        agent, time = shadow.write_agent[touched.cell], shadow.write_time[touched.cell]
        over = time <= self._known_time(touched, agent)
        beside = (agent == touched.warp) & same_epoch(time, self._now(touched))
        wrong = ~over | (beside & (shadow.write_thread[touched.cell] != touched.thread))
        if changed is not None:
            wrong &= changed
        world = touched.world
        if shadow.write_world is not None:
            world = shadow.write_world[touched.cell]
            elsewhere = (time > 0) & (world != touched.world)
            self._across(place, touched, elsewhere if changed is None else elsewhere & changed, shadow, event)
            wrong &= ~elsewhere
        if wrong.any():
            at = int(np.flatnonzero(wrong)[0])
            cell = touched.cell[at]
            missing = (_WRITES if isinstance(place.memory, Pages) else _COPY) if time[at] == PENDING else ""
            thread = int(shadow.write_thread[cell])
            self._found(place, touched, at, int(shadow.write_event[cell]), thread, event, missing)

    def _across(self, place: Place, touched: Touched, wrong: Mask, shadow: Shadow, event: int) -> None:
        """Another block wrote these elements last."""
        if wrong.any():
            at = int(np.flatnonzero(wrong)[0])
            cell = touched.cell[at]
            assert shadow.write_world is not None
            world, thread = int(shadow.write_world[cell]), int(shadow.write_thread[cell])
            self._found(place, touched, at, int(shadow.write_event[cell]), thread, event, BLOCKS, world)

    def _unfenced(self, place: Place, shadow: Shadow, touched: Touched, event: int) -> None:
        """Does a fence stand between the threads' last write of each cell and the async proxy?"""
        agent, time = shadow.write_agent[touched.cell], shadow.write_time[touched.cell]
        generic = (agent >= 0) & (agent < self.warps) & (time > 0) & (time != PENDING)
        covered = self.fenced[touched.world, touched.warp, np.where(generic, agent, 0)]
        wrong = generic & (time > covered)
        if wrong.any():
            at = int(np.flatnonzero(wrong)[0])
            cell = touched.cell[at]
            thread = int(shadow.write_thread[cell])
            self._found(place, touched, at, int(shadow.write_event[cell]), thread, event, "fence.proxy.async")

    def _against(self, place: Place, latest: Latest, touched: Touched, event: int, changed: Mask | None) -> None:
        """Are the last reads (or atomics) of each cell over, in all warps?"""
        for warp in range(self.warps):
            time = latest.time[warp].take(touched.cell)
            if not time.any():
                continue
            own = touched.warp == warp
            known = self._known_time(touched, warp)
            beside = own & same_epoch(time, known) & (latest.thread[warp][touched.cell] != touched.thread)
            wrong = (time > known) | beside
            missing = _WRITES if isinstance(place.memory, Pages) and (time[wrong] == PENDING).any() else ""
            if latest.world is not None:
                elsewhere = (time > 0) & (latest.world[warp][touched.cell] != touched.world)
                if elsewhere.any():
                    wrong, missing = elsewhere, BLOCKS
            if changed is not None:
                wrong &= changed
            if wrong.any():
                at = int(np.flatnonzero(wrong)[0])
                cell = touched.cell[at]
                thread = int(latest.thread[warp][cell])
                thread = thread if thread >= 0 else SEVERAL - warp
                world = -1 if latest.world is None else int(latest.world[warp][cell])
                self._found(place, touched, at, int(latest.event[warp][cell]), thread, event, missing, world)

    def _found(
        self,
        place: Place,
        touched: Touched,
        at: int,
        before: int,
        thread: int,
        event: int,
        missing: str = "",
        elsewhere: int = -1,
    ) -> None:
        """Note a race; elsewhere: the world of the first access, if it is another one."""
        first, second = self._events[before], self._events[event]
        key = place.root, id(first.origin.stmt), first.kind, id(second.origin.stmt), second.kind, missing
        if key in self.races:
            return
        mine, world = int(touched.thread[at]), int(touched.world[at])
        blocks = [self.machine.worlds[w].block for w in (world if elsewhere < 0 else elsewhere, world)]
        self.races[key] = Race(
            place.name,
            self._tensors.get(place.root, ""),
            (_offset(place, int(touched.cell[at])),),
            Access(first.kind, first.proxy, blocks[0], thread, first.origin),
            Access(second.kind, second.proxy, blocks[1], mine, second.origin),
            missing or (_COPY if first.proxy == "async" else "a barrier"),
        )


def _offset(place: Place, cell: int) -> int:
    """Which element of a buffer a cell is."""
    memory = place.memory
    if isinstance(memory, Pages):
        return memory.element_at(cell)
    return (cell // memory.stride * memory.grain - place.begin) // place.kind.octets
