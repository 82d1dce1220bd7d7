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
from functools import cached_property, lru_cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from tlcheck.execute.memory.cells import Cells, Position
from tlcheck.execute.memory.frame import Mask
from tlcheck.execute.memory.pages import Pages
from tlcheck.execute.memory.state import NOWHERE, Origin
from tlcheck.execute.memory.values import Array, Value
from tlcheck.execute.observe.access_order import (
    ASYNC_READ,
    ATOMIC,
    BULK_LOAD,
    BULK_STORE,
    COPY,
    PROXY_FENCE,
    READ,
    WRITE,
    AccessForm,
    AccessOrder,
    OperationIssue,
)
from tlcheck.execute.observe.accesses import About, AccessedCells, AccessedElements, Chosen, KnownAccesses
from tlcheck.execute.observe.cell_shadow import CellShadow
from tlcheck.execute.observe.clock import PENDING
from tlcheck.execute.observe.races import A_BARRIER, AGREEMENT, BLOCKS, EXCHANGE, HALVES, SEVERAL, Access, Race
from tlcheck.execute.observe.release_order import Releases
from tlcheck.execute.observe.repeats import Repeats
from tlcheck.execute.observe.shadow import MANY, LastAccesses, LastWrites
from tlcheck.execute.observe.shuffle_orders import Exchanges
from tlcheck.execute.observe.suspects import Suspects
from tlcheck.program.mixing import mixed, operation_of
from tlcheck.signatures.signature import Completion
from tlcheck.signatures.table import signature_of
from tlcheck.snapshot.ir import Expr
from tlcheck.snapshot.walk import expressions, postorder

if TYPE_CHECKING:
    from tlcheck.execute.machine import Machine
    from tlcheck.execute.memory.places import Place

_COPY = "a wait for the copy"
_WRITES = "a wait for what the copy writes (without .read)"
_PRODUCT = "a wait for the product (the mbarrier of its tcgen05.commit)"
_COPIES = (COPY, BULK_LOAD)  # of which it is known what they bring
_WARPS_OF_A_GROUP = 4  # that execute wgmma together


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


def _is_product(event: _Event) -> bool:
    """Whether an event is the access of a wgmma to shared memory."""
    roots = expressions(event.origin.stmt) if event.proxy == "async" and event.origin.stmt is not None else ()
    found = map(signature_of, postorder(roots))
    return any(each is not None and each.asynchronous is Completion.WGMMA_GROUP for each in found)


@dataclass(frozen=True, eq=False)
class _Checked:
    """A record of where an event takes place, with the shadow of that allocation. event: its number. value: that it
    writes, or will.
    """

    place: Place
    elements: AccessedElements
    shadow: CellShadow
    cells: AccessedCells
    event: int
    value: Value | None

    @property
    def tensor(self) -> bool:
        """Whether it is in tensor memory."""
        return bool(self.place.lanes)

    @cached_property
    def unchanged(self) -> Mask:
        """The cells in which that value is already, as long as it has not been written."""
        assert self.value is not None
        return self.elements.unchanged(self.value)

    @cached_property
    def bits(self) -> Array | None:
        """The bits of the value for each cell."""
        return None if self.value is None else self.elements.bits(np.asarray(self.value))


class Watch(AccessOrder[_Checked]):
    """Watches the accesses of a machine. races: those found, one for each pair of statements and buffer."""

    def __init__(self, machine: Machine, written: frozenset[str]) -> None:
        """See `HappensBefore`."""
        super().__init__(machine, written)
        self.suspects: Suspects | None = None  # where accesses may not be ordered; None for anywhere
        self._shadows: dict[int, CellShadow] = {}
        self._repeats = Repeats()
        self._known = KnownAccesses()
        self._mixed = bool(mixed(machine.function))
        self._events: list[_Event] = [_Event("write", "generic", NOWHERE)]
        self._numbers: dict[tuple[object, ...], int] = {}  # of events
        self._exchanges = Exchanges(machine.function, self)

    @property
    def is_settled(self) -> bool:
        """Whether every schedule of asynchronous copies has the same result: see `Glance.is_settled`.

        All accesses have been looked at.
        """
        return self.suspects is None and not self.races and not self.ordering and not self.reads_late

    # ---- accesses

    def read(
        self, place: Place, position: Position, mask: Mask, origin: Origin, proxy: str = "generic", by: Any = None
    ) -> None:
        """Active threads read elements, of which some use the result."""
        self.reads_late |= by is not None and isinstance(place.memory, Pages)
        if origin.stmt in self.unused:
            return
        lanes = self.using.get(origin.stmt) if origin.stmt is not None and by is None else None
        if lanes is not None and mask.shape[-1] == len(lanes):
            mask = mask & lanes
        super().read(place, position, mask, origin, proxy, by)

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
        form = _atomic(operation_of(origin.stmt)) if self._mixed else ATOMIC
        self._follow(form, place, position, mask, origin)

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

    def _follow(
        self,
        form: AccessForm,
        place: Place,
        position: Position,
        mask: Mask,
        origin: Origin,
        *,
        by: Any = None,
        value: Value | None = None,
        issue: OperationIssue | None = None,
    ) -> None:
        """Look at an access, as far as it is suspected; a tensor core's, unless it repeats itself."""
        lane = None if issue is None else issue.lane
        what = form, id(origin.stmt), 0 if self.releases is None else self.releases.tick
        if form.of_core and self._repeats.has(place.root, what, position, mask, lane):
            return
        if issue is not None:
            self._begin(form, issue)
        event = _Event(form.kind.partition(" ")[0] or "read", form.proxy, origin, half=form.half)
        thread, core = by if lane is None else lane.argmax(axis=-1)[:, None], self.cores if form.of_core else 0
        access = self._access(place, position, mask, event, thread, core, value)
        if access is None:
            return
        if form.of_core:
            self._repeats.record(place.root, what, access.cells.cell, position, mask, lane)
        self._happens(access, form, issue)
        if form is WRITE:
            self._keep_writers(access, position, mask)

    def _access(
        self,
        place: Place,
        position: Position,
        mask: Mask,
        event: _Event,
        by: Any,
        core: int,
        value: Value | None,
    ) -> _Checked | None:
        """The access that an event makes, as far as it is suspected; None where it makes none.

        by: as for `read`. core: by how much the warp of a product is further.
        """
        if not mask.any():
            return None
        self.ordering |= event.kind == "atomic" and isinstance(place.memory, Pages)
        self.note(place)
        chosen = None
        if self.suspects is not None:
            if not self.suspects.has(place):
                return None
            chosen = partial(self.suspects.among, place)
        elements, cells = self._known.of(place, (position, mask, by), core, partial(self._found, chosen=chosen))
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
        return _Checked(place, elements, shadow, cells, self._number(event), value)

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

    def _conflict(self, access: _Checked, form: AccessForm, last: LastAccesses, where: Mask, fence: str = "") -> None:
        """Report the races of an access with last ones, unless it does no harm."""
        if fence:
            self._lacks_fence(access, last, where, fence)
            return
        cells, event, is_write = access.cells, self._events[access.event], last is access.shadow.writes
        harmless = self._harmless(access, form, last)
        for row, wrong in enumerate(where):
            if self.releases is not None and wrong.any():
                wrong[wrong] = ~self._over(self.releases, access, last, row, np.flatnonzero(wrong))
            if not is_write and wrong.any():
                wrong[wrong] = ~self._awaited(cells, last, row, np.flatnonzero(wrong))
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
                if harmless is not None:
                    mask &= ~harmless
                if mask.any():
                    self._report_after(access, last, row, int(mask.argmax()), missing)

    def _awaited(self, cells: AccessedCells, last: LastAccesses, row: int, at: Array) -> Mask:
        """Whether the last reads are those of a wgmma of the same warpgroup: who waits for that waits for all of it.

        An access before the wait is a race with the read that comes with the wait.
        """
        assert last.event is not None
        events = last.event[row].take(cells.cell[at])
        found = np.isin(events, [number for number in np.unique(events).tolist() if _is_product(self._events[number])])
        found &= ~np.broadcast_to(last.is_elsewhere(row, cells), cells.cell.shape)[at]
        group = _WARPS_OF_A_GROUP * self.width
        return np.asarray(found & (last.thread[row].take(cells.cell[at]) // group == cells.thread[at] // group))

    def _harmless(self, access: _Checked, form: AccessForm, last: LastAccesses) -> Mask | None:
        """Return where an access and last ones do not mind one another, see above; None for nowhere."""
        if form is WRITE or form is BULK_STORE:
            return access.unchanged
        if last is not access.shadow.writes:
            return None
        if form is READ or form is ASYNC_READ:
            return access.shadow.wrote(access.cells, self.machine.state.threads)
        return access.shadow.brings_same(access.cells, access.bits) if form in _COPIES else None

    def _lacks_fence(self, access: _Checked, last: LastAccesses, where: Mask, fence: str) -> None:
        """Report where the order of an access after last ones lacks a fence alone."""
        if fence == PROXY_FENCE:  # of which threads' own writes alone have need
            assert last.event is not None
            by_threads = np.array([event.proxy == "generic" for event in self._events])
            where = where & by_threads[last.event[0].take(access.cells.cell)]
        for row, cells in enumerate(where):
            if cells.any():
                self._report_after(access, last, row, int(cells.argmax()), fence)

    def _keep(self, access: _Checked, form: AccessForm, agent: Array, thread: Array | int, time: Array | int) -> None:
        """Remember an access with its event, and what is known of the values."""
        shadow, cells = access.shadow, access.cells
        if form.kind == "write":
            bits = access.bits if form in _COPIES else None
            shadow.record_write(cells, agent, thread, time, access.event, bits)
        else:
            stmt = self._events[access.event].origin.stmt
            shuffles = self._exchanges.feeding(stmt) if form is READ else frozenset[Expr]()
            shadow.record(form.kind, cells, time, access.event, shuffles)

    def _keep_writers(self, access: _Checked, position: Position, mask: Mask) -> None:
        """Remember which threads have written together."""
        shape = access.place.memory.flat_position(position).shape
        if shape[-1] == 1 and mask.shape[0] == self.worlds:
            access.shadow.record_writers(access.cells, mask, shape[-2] > 1)
        else:
            access.shadow.record_pairs(access.cells, self.machine.state.threads)

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

    def _world_of(self, last: LastAccesses, row: int, cells: AccessedCells, at: Array) -> Array:
        """The worlds that made the last accesses in a row to some of an access's cells."""
        cell = cells.cell[at]
        leaders = cells.world[at] if last.world is None else last.world[row].take(cell)
        if self.rows == self.warps:
            return np.asarray(leaders)
        agents = last.agent[0].take(cell) if isinstance(last, LastWrites) else np.full(len(at), row)
        barriers = agents >= self.rows  # a bulk copy, which is over with an mbarrier of the block whose cells these are
        rank = np.where(barriers, (agents - self.rows) // self.barriers, agents // self.warps)
        return np.asarray(self.peers[leaders, rank])

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
        stmt = self._events[access.event].origin.stmt
        event = int(last.event[row, cell])
        if not is_write and self._events[event].origin.stmt is stmt:  # a thread that reads what it is to write
            event = last.event_before(row, cell)
        first, begun = (first_world, thread, event), self._events[event]
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
        missing = missing or (_COPY if first.proxy == "async" and not _is_product(first) else barrier)
        index, parameter = index_of(place, cell), self.tensors.get(place.root, "")
        seed = self.machine.worlds[other[0]].seed
        self.races[key] = Race(place.name, parameter, index, before, after, missing, sure, seed)


@lru_cache(maxsize=64)
def _atomic(operation: str) -> AccessForm:
    """An atomic of an operation that has no order with others."""
    return AccessForm(f"atomic {operation}".rstrip())


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
