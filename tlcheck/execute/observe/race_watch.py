"""Finds data races: pairs of accesses to one cell that conflict and that nothing orders, with what a report names.

Writing the value that is there is no conflict. Neither is a copy of the bits that the last copy brings, nor reading
what one has written oneself, in a statement in which others wrote the same. Threads that store different values to one
element in one statement race. Blocks are ordered with nothing: what one of them writes and another one accesses is a
race, and `compare/own_order` asks what the source does.

Bulk copies and wgmma see shared memory through the async proxy: a thread's write before them has to be followed by
fence.proxy.async on the way to them (PTX ISA 8.2.3.1, "Proxies").
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from tlcheck.execute.memory.cells import Cells, Position
from tlcheck.execute.memory.frame import Mask
from tlcheck.execute.memory.pages import Pages
from tlcheck.execute.memory.state import NOWHERE, Origin
from tlcheck.execute.memory.values import Array, Value
from tlcheck.execute.observe.accesses import About, AccessedCells, AccessedElements, Chosen, KnownAccesses
from tlcheck.execute.observe.cell_shadow import CellShadow
from tlcheck.execute.observe.clock import BARRIERS, PENDING
from tlcheck.execute.observe.order import HappensBefore
from tlcheck.execute.observe.races import A_BARRIER, AGREEMENT, BLOCKS, EXCHANGE, HALVES, SEVERAL, Access, Race
from tlcheck.execute.observe.release_order import Releases
from tlcheck.execute.observe.repeats import Repeats
from tlcheck.execute.observe.shadow import MANY, LastAccesses, LastWrites
from tlcheck.execute.observe.shuffle_orders import Exchanges
from tlcheck.execute.observe.suspects import Suspects
from tlcheck.program.mixing import mixed, operation_of
from tlcheck.snapshot.ir import Expr

if TYPE_CHECKING:
    from tlcheck.execute.machine import Machine
    from tlcheck.execute.memory.places import Place

_COPY = "a wait for the copy"
_WRITES = "a wait for what the copy writes (without .read)"
_FENCES = "tcgen05.fence::before_thread_sync and ::after_thread_sync"
_PRODUCT = "a wait for the product (the mbarrier of its tcgen05.commit)"


@dataclass(frozen=True, slots=True, eq=False)
class _Event:
    """A statement's access, before it is known which thread matters. tick: when, see `Releases`. half: a store reads
    the other half of its byte.
    """

    kind: str
    proxy: str
    origin: Origin
    tick: int = 0
    half: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class _Checked:
    """A record of where an event takes place, with the shadow of that allocation. event: its number."""

    place: Place
    elements: AccessedElements
    shadow: CellShadow
    cells: AccessedCells
    event: int


class Watch(HappensBefore):
    """Watches the accesses of a machine. races: those found, one for each pair of statements and buffer."""

    def __init__(self, machine: Machine, worlds: Mask, written: frozenset[str]) -> None:
        """See `HappensBefore`."""
        super().__init__(machine, worlds, written)
        self.suspects: Suspects | None = None  # where accesses may not be ordered; None for anywhere
        self._shadows: dict[int, CellShadow] = {}
        self._repeats = Repeats()
        self._known = KnownAccesses()
        self._reads_late = False
        self._mixed = bool(mixed(machine.function))
        self._events: list[_Event] = [_Event("write", "generic", NOWHERE)]
        self._numbers: dict[tuple[object, ...], int] = {}  # of events
        self._exchanges = Exchanges(machine.function, self)

    @property
    def is_settled(self) -> bool:
        """Whether every schedule of asynchronous copies has the same result: see `Glance.is_settled`.

        All accesses have been looked at, and blocks are watched with some inputs at least.
        """
        worlds, watched = self.machine.worlds, self.watched
        blocks = {world.block for number, world in enumerate(worlds) if watched[number]}
        sure = self.suspects is None and not self.races and not self.ordering and not self._reads_late
        return sure and all(world.block in blocks for world in worlds)

    # ---- accesses

    def read(
        self, place: Place, position: Position, mask: Mask, origin: Origin, proxy: str = "generic", by: Any = None
    ) -> None:
        """Active threads read elements. by: the thread of each element, where that is not its lane."""
        self._reads_late |= by is not None and isinstance(place.memory, Pages)  # a bulk copy reads when it lands
        if origin.stmt in self.unused:
            return
        lanes = self.using.get(origin.stmt) if origin.stmt is not None and by is None else None
        if lanes is not None and mask.shape[-1] == len(lanes):
            mask = mask & lanes
        access = self._access(place, position, mask, _Event("read", proxy, origin), by)
        if access is not None:
            self._check(access, after_write=access.shadow.wrote(access.cells, self.machine.state.threads))
            if proxy == "async":
                self._check_fence(access)
            shuffles = self._exchanges.feeding(origin.stmt) if proxy == "generic" else frozenset[Expr]()
            access.shadow.record("read", access.cells, self.now(access.cells), access.event, shuffles)

    def half_read(self, place: Place, position: Position, mask: Mask, origin: Origin) -> None:
        """Active threads read the other halves of the bytes that they store."""
        access = self._access(place, position, mask, _Event("read", "generic", origin, half=True))
        if access is not None:
            self._check(access)
            access.shadow.record("read", access.cells, self.now(access.cells), access.event)

    def write(self, place: Place, position: Position, mask: Mask, origin: Origin, value: Value) -> None:
        """Active threads are about to write elements."""
        access = self._access(place, position, mask, _Event("write", "generic", origin))
        if access is not None:
            cells, shadow = access.cells, access.shadow
            self._check(access, access.elements.unchanged(value))
            shadow.record_write(cells, cells.warp, cells.thread, self.now(cells), access.event)
            active, shape = self.active(mask), place.memory.flat_position(position).shape
            if shape[-1] == 1 and active.shape[0] == len(self.watched):
                shadow.record_writers(cells, active, shape[-2] > 1)
            else:
                shadow.record_pairs(cells, self.machine.state.threads)

    def written(self, place: Place, position: Position, mask: Mask, origin: Origin, value: Value) -> None:
        """Active threads have written elements: those that wrote another value than is there now disagree."""
        if self.suspects is not None and place.root not in self.suspects.stores:
            return
        found = self.disagreement(place, position, mask, value)
        if found is not None:
            event = self._number(_Event("write", "generic", origin))
            missing = AGREEMENT if found.world == found.last_world else BLOCKS
            first, second = (found.last_world, found.last_thread, event), (found.world, found.thread, event)
            self._report(place, found.cell, first, second, missing)

    def atomic(self, place: Place, position: Position, mask: Mask, origin: Origin) -> None:
        """Active threads access elements with atomics: those of one operation have no conflict with one another."""
        self.ordering |= isinstance(place.memory, Pages) and bool(self.active(mask).any())
        access = self._access(place, position, mask, _Event("atomic", "generic", origin))
        if access is not None:
            kind = f"atomic {operation_of(origin.stmt)}".rstrip() if self._mixed else "atomic"
            self._check(access, kind=kind)
            access.shadow.record(kind, access.cells, self.now(access.cells), access.event)

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
        at: Array | None = None,
    ) -> None:
        """A bulk copy into shared memory begins, by the thread of `lane` (worlds, threads); `key` is what it completes.

        mask: (worlds, 1), the worlds in which it does. The write is over for those who wait for the key, and so are
        the fences before it: the phase needs its bytes. coming: what will be there then; None where that is not known.
        later: (worlds,), where it may be the phase after this one that needs them; None for nowhere. at: see
        `Observer.bulk_load_issued`.
        """
        self.fences_released(key, lane, at)
        event, thread = _Event("write", "async", origin), lane.argmax(axis=-1)[:, None]
        access = self._access(place, position, mask, event, thread)
        if access is not None:
            cells, bits = access.cells, None if coming is None else access.elements.bits(coming)
            self._check(access, after_write=access.shadow.brings_same(cells, bits))
            self._check_fence(access)
            there = cells.world if at is None else at[cells.world]
            over = self.phase_after(key, later)[there]
            access.shadow.record_write(cells, self.agent(key, there), MANY, over, access.event, bits)

    def copy_issued(self, place: Place, position: Position, mask: Mask, origin: Origin, coming: Array) -> None:
        """Threads begin copies into shared memory (cp.async), which are over for nobody until they have landed."""
        access = self._access(place, position, mask, _Event("write", "generic", origin))
        if access is not None:
            cells, bits = access.cells, access.elements.bits(coming)
            self._check(access, after_write=access.shadow.brings_same(cells, bits))
            access.shadow.record_write(cells, cells.warp, cells.thread, PENDING, access.event, bits)

    def bulk_store_issued(
        self, place: Place, position: Position, mask: Mask, origin: Origin, value: Value | None, by: Array
    ) -> None:
        """Bulk copies write a tensor, or add to it (value: None): over for nobody before `copy_landed`.

        Those of one thread come one after the other. What threads of the block wrote before may land later, unless
        a fence stands between (PTX 8.2.3.1). by: as for `read`.
        """
        self.ordering |= value is None and bool(self.active(mask).any())
        event = _Event("atomic" if value is None else "write", "async", origin)
        access = self._access(place, position, mask, event, by)
        if access is not None:
            cells, shadow = access.cells, access.shadow
            unchanged = None if value is None else access.elements.unchanged(value)
            self._check(access, unchanged, after_write=shadow.writes.is_pending(cells))
            self._check_fence(access)
            if value is None:
                shadow.record("atomic", cells, PENDING, access.event)
            else:
                shadow.record_write(cells, cells.warp, cells.thread, PENDING, access.event)

    def copy_landed(self, place: Place, position: Position, mask: Mask, by: Any = None) -> None:
        """The copies of this kind have landed for the threads that began them. by: as for `read`."""
        access = self._access(place, position, mask, _Event("write", "async", NOWHERE), by)
        if access is not None:
            access.shadow.land(access.cells, self.now(access.cells))

    def tensor_product_issued(
        self, place: Place, position: Position, mask: Mask, lane: Mask, origin: Origin, kind: str, proxy: str
    ) -> None:
        """A product begins: what it reads or writes is over for nobody before `tensor_product_landed`.

        Those of one thread write their sums one after the other.
        """
        what = kind, proxy, id(origin.stmt), None if self.releases is None else self.releases.tick
        if self._repeats.has(place.root, what, position, mask, lane):
            return
        event, thread = _Event(kind, proxy, origin), lane.argmax(axis=-1)[:, None]
        access = self._access(place, position, mask, event, thread, self.cores)
        if access is None:
            return
        self.product_begins(lane)
        cells, shadow = access.cells, access.shadow
        self._repeats.record(place.root, what, cells.cell, position, mask, lane)
        self._check(access, after_write=shadow.writes.is_pending(cells) if kind == "write" else None)
        if proxy == "async":
            self._check_fence(access)
        if kind == "write":
            shadow.record_write(cells, cells.warp, cells.thread, PENDING, access.event)
        else:
            shadow.record("read", cells, PENDING, access.event)

    def tensor_product_landed(self, place: Place, position: Position, mask: Mask, lane: Mask) -> None:
        """The product has read or written what it does."""
        if self._repeats.has(place.root, ("landed",), position, mask, lane):
            return
        event, thread = _Event("read", "async", NOWHERE), lane.argmax(axis=-1)[:, None]
        access = self._access(place, position, mask, event, thread, self.cores)
        if access is not None:
            self._repeats.record(place.root, ("landed",), access.cells.cell, position, mask, lane)
            access.shadow.land(access.cells, self.now(access.cells))

    def proxy_crossed(self, place: Place, position: Position, mask: Mask, origin: Origin) -> None:
        """The async proxy uses what active threads name: is what was written there visible to it?"""
        access = self._access(place, position, mask, _Event("read", "async", origin))
        if access is not None:
            self._check_fence(access)

    def exchanged(self, shuffle: Expr, mask: Mask) -> None:
        """Active threads give one another values in a shuffle of whole warps."""
        self._exchanges.happened(shuffle, mask)

    # ---- memory

    def reallocated(self, root: int) -> None:
        """The allocation is declared anew."""
        self._shadows.pop(root, None)
        self._repeats.forget(root)
        self._known.clear()

    def ended(self) -> None:
        """The kernel has ended: drop what is remembered of its accesses."""
        self._shadows.clear()
        self._repeats.forget()
        self._known.clear()

    # ---- inside

    def _access(
        self, place: Place, position: Position, mask: Mask, event: _Event, by: Any = None, core: int = 0
    ) -> _Checked | None:
        """The access that an event makes in watched worlds, as far as it is suspected; None where it makes none.

        core: by how much the warp of a product is further.
        """
        active = self.active(mask)
        if not active.any():
            return None
        self.note(place)
        chosen = None
        if self.suspects is not None:
            if not self.suspects.has(place):
                return None
            chosen = partial(self.suspects.among, place)
        elements, cells = self._known.of(place, (position, active, by), core, partial(self._found, chosen=chosen))
        if not len(elements.cell):
            return None
        memory = place.memory
        shadow = self._shadows.get(place.root)
        if shadow is None:
            shadow = CellShadow(memory.flat.size, self.rows, isinstance(memory, Pages))
            self._shadows[place.root] = shadow
        elif shadow.size < memory.flat.size:
            shadow.grow(memory.flat.size)
        self._repeats.touched(place.root, cells.cell)
        return _Checked(place, elements, shadow, cells, self._number(event))

    def _found(
        self, place: Place, about: About, core: int, chosen: Chosen | None
    ) -> tuple[AccessedElements, AccessedCells]:
        """The elements and cells of an access. chosen: which of the cells matter; None for all."""
        position, active, by = about
        elements = AccessedElements(place, position, active, chosen)
        cells = self.cells(elements, by)
        return elements, replace(cells, warp=cells.warp + core) if core else cells

    def _number(self, event: _Event) -> int:
        tick = 0 if self.releases is None else self.releases.tick
        key = event.kind, event.proxy, id(event.origin.stmt), event.origin.loops, tick, event.half
        found = self._numbers.get(key)
        if found is None:
            found = self._numbers[key] = len(self._events)
            self._events.append(replace(event, tick=tick))
        return found

    def _check(
        self, access: _Checked, benign: Mask | None = None, *, after_write: Mask | None = None, kind: str = ""
    ) -> None:
        """Report the races of an access.

        kind: of an atomic, with its operation; the event's if empty.
        benign: the cells in which it races with nothing; after_write: in which it does not with the last write.
        """
        cells, event = access.cells, self._events[access.event]
        if access.place.lanes:
            self._check_tensor_fences(access, event.kind)
        for last, unordered in access.shadow.unordered(kind or event.kind, cells, self.now(cells), self):
            is_write = last is access.shadow.writes
            for row, wrong in enumerate(unordered):
                if self.releases is not None and wrong.any():
                    wrong[wrong] = ~self._over(self.releases, access, last, row, np.flatnonzero(wrong))
                across = wrong & last.is_elsewhere(row, cells)
                within = wrong & ~across
                if across.any() and not is_write:
                    within[:] = False  # other blocks are enough to say
                perhaps = np.zeros_like(within)
                if not is_write and event.kind == "write" and event.proxy == "generic" and within.any():
                    surely, perhaps = self._exchanges.between(last, row, cells, event.origin.stmt)
                    perhaps &= within & ~surely
                    within &= ~(surely | perhaps)
                for mask, missing in ((across, BLOCKS), (within, ""), (perhaps, EXCHANGE)):
                    if benign is not None:
                        mask &= ~benign
                    if is_write and after_write is not None:
                        mask &= ~after_write
                    if mask.any():
                        self._report_after(access, last, row, int(mask.argmax()), missing)

    def _over(self, releases: Releases, access: _Checked, last: LastAccesses, row: int, at: Array) -> Mask:
        """Whether atomics and fences order the last accesses in a row before those of some of an access's cells."""
        cells = access.cells
        cell, event_of = cells.cell[at], last.event
        assert event_of is not None
        world = self._world_of(last, row, cells, at)
        events, thread = event_of[row].take(cell), last.thread[row].take(cell).astype(np.int64)
        if last is not access.shadow.writes:
            thread[thread == MANY] = SEVERAL - row % self.warps
        known = (
            np.array([e.proxy == "generic" for e in self._events])[events] & (thread != MANY) & (cells.thread[at] >= 0)
        )
        known &= last.time[row].take(cell) != PENDING
        found, tick = np.zeros(len(at), np.bool_), np.array([e.tick for e in self._events])[events]
        by, before = (cells.world[at], cells.thread[at]), (world, thread)
        found[known] = releases.over((by[0][known], by[1][known]), (before[0][known], before[1][known]), tick[known])
        return found

    def _check_tensor_fences(self, access: _Checked, kind: str) -> None:
        """Report accesses of tensor memory that threads are synchronized for, and that no tcgen05.fence orders."""
        for last, wrong in access.shadow.without_fences(kind, access.cells, self):
            for row, cells in enumerate(wrong):
                if cells.any():
                    self._report_after(access, last, row, int(cells.argmax()), _FENCES)

    def _world_of(self, last: LastAccesses, row: int, cells: AccessedCells, at: Array) -> Array:
        """The worlds that made the last accesses in a row to some of an access's cells."""
        cell = cells.cell[at]
        leaders = cells.world[at] if last.world is None else last.world[row].take(cell)
        if self.rows == self.warps:
            return np.asarray(leaders)
        agents = last.agent[0].take(cell) if isinstance(last, LastWrites) else np.full(len(at), row)
        barriers = agents >= self.rows  # a bulk copy, which is over with an mbarrier of the block whose cells these are
        rank = np.where(barriers, (agents - self.rows) // BARRIERS, agents // self.warps)
        return np.asarray(self.peers[leaders, rank])

    def _check_fence(self, access: _Checked) -> None:
        """Report a write by threads that no fence makes visible to the async proxy."""
        writes = access.shadow.writes
        unfenced = writes.unfenced(access.cells, self)
        if unfenced is None:
            return
        assert writes.event is not None
        by_threads = np.array([event.proxy == "generic" for event in self._events])
        unfenced = unfenced & by_threads[writes.event[0].take(access.cells.cell)]
        if unfenced.any():
            self._report_after(access, writes, 0, int(unfenced.argmax()), "fence.proxy.async")

    def _report_after(self, access: _Checked, last: LastAccesses, row: int, at: int, missing: str) -> None:
        """Report a race of the cell at an index among an access's with the last access in a row."""
        cells, is_write = access.cells, last is access.shadow.writes
        cell, world = int(cells.cell[at]), int(cells.world[at])
        assert last.event is not None
        agent = int(last.agent[0, cell]) if isinstance(last, LastWrites) else row
        of_core = 0 < self.cores <= agent % self.warps and agent < self.rows
        if not missing and (of_core or last.time[row, cell] == PENDING):
            begun = self._events[int(last.event[row, cell])]
            is_product = begun.kind == "read" or begun.proxy == "tensor"
            missing = _PRODUCT if is_product else _WRITES if isinstance(access.place.memory, Pages) else _COPY
        thread = int(last.thread[row, cell])
        if thread == MANY and not is_write:
            thread = SEVERAL - row % self.warps
        first_world = int(self._world_of(last, row, cells, np.array([at]))[0])
        first, begun = (first_world, thread, int(last.event[row, cell])), self._events[int(last.event[row, cell])]
        known = self.releases
        sure = known is not None and known.exact and not known.is_open(world, (first_world, thread), begun.tick)
        sure &= begun.proxy == "generic"
        self._report(access.place, cell, first, (world, int(cells.thread[at]), access.event), missing, sure)

    def _report(
        self,
        place: Place,
        cell: int,
        one: tuple[int, int, int],
        other: tuple[int, int, int],
        missing: str,
        sure: bool = False,
    ) -> None:
        """Note a race of two accesses, each given as world, thread and the number of the event. sure: see `Race`."""
        first, second = self._events[one[2]], self._events[other[2]]
        key = place.root, id(first.origin.stmt), first.kind, id(second.origin.stmt), second.kind, missing
        if key in self.races:
            return
        before, after = (
            Access(
                "write" if event.half else event.kind,
                event.proxy,
                self.machine.worlds[world].block,
                thread,
                event.origin,
            )
            for event, (world, thread, _) in ((first, one), (second, other))
        )
        barrier = A_BARRIER if before.block == after.block else "a barrier of the cluster"
        if first.half or second.half:
            missing = HALVES
        missing = missing or (_COPY if first.proxy == "async" else barrier)
        index, parameter = index_of(place, cell), self.tensors.get(place.root, "")
        self.races[key] = Race(place.name, parameter, index, before, after, missing, sure)


def index_of(place: Place, cell: int) -> tuple[int, ...]:
    """Return which element of a buffer a cell is; of tensor memory its lane and column."""
    if not place.lanes:
        return (offset_of(place, cell),)
    assert isinstance(place.memory, Cells)
    column, lane = divmod(place.memory.octet(cell) // 4, place.lanes)
    return lane, column


def offset_of(place: Place, cell: int) -> int:
    """Return which element of a buffer a cell is."""
    memory = place.memory
    if isinstance(memory, Pages):
        return memory.element_at(cell)
    return (cell // memory.stride * memory.grain - place.begin * 8) // place.kind.bits
