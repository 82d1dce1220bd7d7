"""Find what races in the source: a race of the lowered kernel that is the author's own is not TileLang's.

In the source statements run one after the other; what has no order are the iterations of a T.Parallel, the threads of
code that is written for threads (in global memory until T.sync_threads; in shared memory TileLang puts the barriers),
and the blocks. An epoch is what has no order within: two accesses of one element in one epoch by different lanes, of
which one writes another value than is there, are the author's. So are those of different blocks in the whole run, and
those of branches that run side by side, where none of the author's barriers stands between them, and those with what
the author waits for himself (`unwaited`). In global memory code for threads, or a T.tma_copy, and a T.Parallel or tile
operator take the author's T.sync_threads between them: TileLang puts its barriers for shared memory, and a T.tma_copy
is "with user-managed synchronization" (TileLang, language/copy_op.py).

Atomics of one operation have any order; of several, such as a sum and a minimum, they race as writes do.

No barrier fits into a statement: what threads read in one they may read before or after other threads write it there.
None fits between the two arms of a branch that warps take at once.
Where TileLang was told to put no barriers, only the author's T.sync_threads ends an epoch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tlcheck.execute.events import COPIES, PRODUCTS, TENSOR_PRODUCTS, Operation, Side
from tlcheck.execute.memory.cells import Cells, Position
from tlcheck.execute.memory.frame import Mask
from tlcheck.execute.memory.pages import Pages
from tlcheck.execute.memory.state import NOWHERE, Origin
from tlcheck.execute.memory.values import Array, Value
from tlcheck.execute.observe.accesses import AccessedCells, AccessedElements
from tlcheck.execute.observe.arms import are_apart
from tlcheck.execute.observe.epoch_accesses import SEVERAL, EpochAccesses
from tlcheck.execute.observe.order import HappensBefore
from tlcheck.execute.observe.race_watch import offset_of
from tlcheck.execute.observe.races import Access, Clash, Contest, Race
from tlcheck.execute.observe.release_order import ALL, Releases
from tlcheck.execute.observe.shadow import CONFLICTS
from tlcheck.execute.observe.unwaited import Unwaited
from tlcheck.program.mixing import mixed, operation_of
from tlcheck.program.observed import may_order
from tlcheck.snapshot.ir import Stmt

if TYPE_CHECKING:
    from tlcheck.execute.machine import Machine
    from tlcheck.execute.memory.places import Place

EARLY = "asynchronous copies"
_TILE = -1  # the lane of what a block does as a whole


class Author(HappensBefore):
    """Watches some buffers of a source kernel. own: buffer -> line of a race between iterations or threads; sides:
    of one between branches that run side by side; blocks: of one between blocks; early: of one with a copy for which
    the author has not waited yet; unready: of one with such a T.wgmma_gemm; between: of one between code for threads,
    or a T.tma_copy, and a T.Parallel or tile operator. Of each the first one."""

    def __init__(self, machine: Machine, names: frozenset[str], about: frozenset[str] | None = None) -> None:
        """names: of the buffers, and of the parameters. about: those whose races are asked for, None for all."""
        super().__init__(machine, names)
        self._about = names if about is None else frozenset(map(machine.pointers.owner, about))
        self.own: dict[str, Clash] = {}
        self.sides: dict[str, Clash] = {}
        self.blocks: dict[str, Clash] = {}
        self.between: dict[str, Clash] = {}
        self._met = 1  # T.sync_threads so far, and one
        self.early: dict[str, Clash] = {}
        self.unready: dict[str, Clash] = {}
        self.uncommitted: Stmt | None = None  # a wait for groups while the copies that are under way are in none
        self._unwaited = Unwaited()
        self._landing: dict[int, Mask] = {}  # of allocations, the flat cells that cp.async is about to write
        self._products: list[int] = []  # allocations to which asynchronous products are added, the newest last
        self._watching, self._epoch, self._iterating, self._managed = names, 1, False, False
        count, self._lanes = len(machine.worlds), machine.options.target.warp
        self._part = np.ones((count, -(-machine.state.threads // self._lanes)), np.int32)  # of the epoch, of each warp
        self._side: Side | None = None  # that runs
        self._adding = False  # whether a product is being added to tensor memory
        self._barriers = int(machine.options.barriers)
        self._statement: tuple[Stmt | None, tuple[tuple[str, int], ...]] = (None, ())
        self._stored, self._fresh = False, True  # whether that statement has written, whether it has just begun
        self._last: dict[tuple[int, str], EpochAccesses] = {}
        self._made: list[tuple[str, Origin, bool, int]] = [
            ("write", NOWHERE, False, 0)
        ]  # as `_access_number` makes them
        self._origin = NOWHERE  # of the statement that runs
        self._mixed = bool(mixed(machine.function))
        self._joint: dict[int, Array] = {}  # of statements in which several lanes wrote one cell: who wrote which

    @property
    def contested(self) -> dict[str, dict[str, Clash]]:
        """Return who races for which buffers."""
        within = {"iterations or threads": self.own, "branches that run side by side": self.sides}
        within |= {EARLY: self.early, "asynchronous products": self.unready}
        return {**within, "blocks": self.blocks}

    @property
    def contests(self) -> Iterator[tuple[str, Contest]]:
        """Yield what races in the source, by buffer."""
        for who, lines in self.contested.items():
            for racing, clash in lines.items():
                yield racing, self._contest(who, clash)

    def _contest(self, who: str, clash: Clash) -> Contest:
        wait = self.uncommitted if who == EARLY else None
        return Contest(
            who, clash.line, who == "blocks" and not clash.sure and may_order(self.machine.function), clash, wait
        )

    def contest(self, race: Race) -> Contest | None:
        """Return what races in the source where the lowered kernel does; None if nothing does."""
        name = race.parameter or self._called(race.buffer)
        for who, lines in self.contested.items():
            if (who == "blocks") == race.across and name in lines:
                return self._contest(who, lines[name])
        if name in self.between and not race.across:
            return self._contest("statements that only T.sync_threads orders", self.between[name])
        if name in self.blocks and race.parameter:  # what it holds hangs on the order of blocks in any case
            contest = self._contest("blocks", self.blocks[name])
            return None if contest.atomics else contest
        return None

    def covers(self, place: Place) -> bool:
        """Whether accesses to a place are watched."""
        return self._is_named(place) or place.root in self._products

    def _is_asked_for(self, place: Place) -> bool:
        return self._called(place.name) in self._about or self.tensors.get(place.root, "") in self._about

    def _is_named(self, place: Place) -> bool:
        return self._called(place.name) in self._watching or self.tensors.get(place.root, "") in self._watching

    def _called(self, name: str) -> str:
        """Return the name under which races are kept: of a view, the buffer that it is a view of."""
        return self.machine.pointers.owner(name)

    def turned(self, side: Side | None) -> None:
        """The run turns to this side of a branch."""
        self._side = side

    def async_product(self, place: Place, begins: bool) -> None:
        """A T.wgmma_gemm adds to a place, also to what another one is adding there."""
        if begins:
            self._products = [root for root in self._products if root != place.root]
        else:
            self._products.append(place.root)

    def tensor_product(self, begins: bool) -> None:
        """A product is about to be added to tensor memory, or has been: also to what another one is adding there."""
        self._adding = begins

    def products_committed(self, key: object, mask: Mask) -> None:
        """An mbarrier will be complete when all products are that have begun until now."""
        self._unwaited.commit(key, self.phases(key).copy())

    def operation_begun(self, operation: Operation) -> None:
        """An operation begins that the author waits for himself."""
        phase = None if operation.key is None else self.phases(operation.key).copy()
        number = self._unwaited.begin(operation, np.ones(self.worlds, np.bool_), phase)
        for elements, is_written in operation.elements:
            active = self._active(elements.mask, elements.lanes)
            if self.covers(elements.place) and active.any():
                touched = self.cells(AccessedElements(elements.place, elements.position, active))
                self._unwaited.holds(number, elements.place, touched.cell, is_written)

    def copy_issued(self, place: Place, position: Position, mask: Mask, origin: Origin, coming: Array) -> None:
        """Threads begin copies (cp.async), which the author commits and waits for."""
        self._land(place, position, mask, landing=True)

    def copy_landed(self, place: Place, position: Position, mask: Mask, by: Any = None) -> None:
        """The copies of this kind have landed."""
        self._land(place, position, mask, landing=False)

    def wait_uncommitted(self, mask: Mask) -> None:
        """A wait for groups of copies covers none of those that are under way."""
        if self.uncommitted is None and mask.any():
            self.uncommitted = self.machine.state.at

    def _land(self, place: Place, position: Position, mask: Mask, landing: bool) -> None:
        """Note which cells copies are about to write."""
        if not self.covers(place) or not mask.any():
            return
        cells = self._landing.setdefault(place.root, np.zeros(place.memory.flat.size, np.bool_))
        cells[self.cells(AccessedElements(place, position, mask)).cell] = landing

    def operations_awaited(self, kind: str, newest: int, mask: Mask, reads: bool = False) -> None:
        """Active threads wait for all such operations but the newest; with `reads` only until they have read."""
        if kind == PRODUCTS:
            self._products = self._products[-newest:] if newest else []
        self._unwaited.finish(kind, newest, np.asarray(mask.any(axis=-1)), reads)

    def phase_waited(self, key: object, mask: Mask, place: int = 0) -> None:
        """A wait for an mbarrier, at which the threads' own copies may arrive as well."""
        super().phase_waited(key, mask, place)
        self._unwaited.passed(key, np.asarray(mask.any(axis=-1)), self.phases(key))
        self.operations_awaited(COPIES, 0, mask)

    def parallel_loop(self, begins: bool) -> None:
        """A T.Parallel begins or ends."""
        self._iterating = begins
        self._epoch += self._barriers

    def tma_copy(self, begins: bool) -> None:
        """A T.tma_copy begins or ends."""
        self._managed = begins

    def tile_accessed(
        self, place: Place, position: Position, mask: Mask | None, lanes: int, value: Value | None
    ) -> None:
        """A tile operator reads a region (value: None) or writes it; the block does so together."""
        active = self._active(mask, lanes)
        if self.covers(place) and active.any():
            self._epoch += self._barriers
            self._origin = Origin(self.machine.state.at)
            self._accessed(place, position, active, "write" if value is not None else "read", value, _TILE)
            self._epoch += self._barriers

    def tile_written(self, place: Place, position: Position, mask: Mask | None, lanes: int, value: Value) -> None:
        """A tile operator has written a region: of blocks that wrote one element, one finds another value there."""
        if isinstance(place.memory, Pages) and self.covers(place):
            self._origin = Origin(self.machine.state.at)
            self.written(place, position, self._active(mask, lanes), NOWHERE, value)

    def _active(self, mask: Mask | None, lanes: int) -> Mask:
        """The worlds in which a tile operator takes place."""
        everywhere = np.asarray(True if mask is None else mask)
        return np.broadcast_to(everywhere, (*everywhere.shape[:-2], self.worlds, lanes))

    def read(
        self, place: Place, position: Position, mask: Mask, origin: Origin, proxy: str = "generic", by: Any = None
    ) -> None:
        """Active lanes read elements."""
        if origin.stmt in self.unused:
            return
        self._begin(origin, stores=False)
        self._accessed(place, position, mask, "read", None, by)

    def write(self, place: Place, position: Position, mask: Mask, origin: Origin, value: Value) -> None:
        """Active lanes are about to write elements."""
        self._begin(origin, stores=True)
        self._accessed(place, position, mask, "write", value, None)

    def bulk_store_issued(
        self, place: Place, position: Position, mask: Mask, origin: Origin, value: Value | None, by: Array
    ) -> None:
        """Bulk copies write a tensor, or add to it."""
        self._begin(origin, stores=True)
        self._accessed(place, position, mask, "atomic" if value is None else "write", value, by)

    def written(self, place: Place, position: Position, mask: Mask, origin: Origin, value: Value) -> None:
        """Active lanes have written elements."""
        if not self._is_asked_for(place):
            return
        found = self.disagreement(place, position, mask, value)
        if found is not None:
            lines = self.own if found.world == found.last_world else self.blocks
            if self._name(place) not in lines:
                event = self._access_number("write")
                alone = origin is NOWHERE  # a tile operator: the block writes as one
                first = self._by(event, _TILE if alone else found.thread, found.world)
                second = self._by(event, _TILE if alone else found.last_thread, found.last_world)
                lines[self._name(place)] = self._clash(place, found.cell, first, second)

    def atomic(self, place: Place, position: Position, mask: Mask, origin: Origin) -> None:
        """Active lanes access elements with atomics."""
        self._begin(origin, stores=True)
        self._accessed(place, position, mask, "atomic", None, None)

    def barrier(self, mask: Mask) -> None:
        """T.sync_threads."""
        super().barrier(mask)
        self._epoch += 1
        self._met += 1

    def warp_barrier(self, mask: Mask) -> None:
        """T.sync_warp, which orders the threads of each warp if all of them come to it."""
        super().warp_barrier(mask)
        worlds, warps = self._part.shape
        come = np.ones((worlds, warps * self._lanes), np.bool_)
        come[:, : self.machine.state.threads] = mask
        self._part += np.asarray(come.reshape(worlds, warps, self._lanes).all(axis=-1))

    def _parts(self, touched: AccessedCells, threads: bool) -> Array:
        """Return the part of the epoch in which threads access cells; 0 where no threads do."""
        return self._part[touched.world, touched.thread // self._lanes] if threads else np.zeros(1, np.int32)

    def phase_ended(self, key: object, world: int) -> None:
        """A barrier lets its threads go."""
        super().phase_ended(key, world)
        self._epoch += 1
        self._met += 1

    def reallocated(self, root: int) -> None:
        """The allocation is declared anew."""
        self._landing.pop(root, None)
        for key in [key for key in self._last if key[0] == root]:
            del self._last[key]

    def _name(self, place: Place) -> str:
        return self.tensors.get(place.root, "") or self._called(place.name)

    def _begin(self, origin: Origin, stores: bool) -> None:
        """Notice whether another statement runs, or the same one again."""
        self._origin = origin
        stmt, loops = self._statement
        if origin.stmt is not stmt or origin.loops != loops or (self._stored and not stores):
            self._statement, self._stored, self._fresh = (origin.stmt, origin.loops), False, True
        self._stored = self._stored or stores

    def _accessed(self, place: Place, position: Position, mask: Mask, kind: str, value: Value | None, by: Any) -> None:
        if not mask.any():
            return
        self._look_at_unwaited(place, position, mask, kind)
        if not self._is_named(place):
            return
        if isinstance(place.memory, Cells) and not self._iterating and self._fresh:
            self._epoch += self._barriers  # TileLang puts them between statements of threads
            self._fresh = False
        if self._is_asked_for(place):
            accessed = AccessedElements(place, position, mask)
            changed = True if value is None else ~accessed.unchanged(value)
            self._look(place, self.cells(accessed, by), kind, changed, by is None)

    def _access_number(self, kind: str) -> int:
        """The number of an access of the statement that runs: its kind, origin, whether in T.Parallel, and when."""
        made = kind, self._origin, self._iterating, 0 if self.releases is None else self.releases.tick
        if self._made[-1] != made:
            self._made.append(made)
        return len(self._made) - 1

    def _look(self, place: Place, touched: AccessedCells, kind: str, changed: Any, by_lanes: bool) -> None:
        """Does an access conflict with those before? by_lanes: threads are numbered as lanes are."""
        memory, side = place.memory, self._side
        threads = by_lanes and not self._iterating
        event = self._access_number(kind)
        own_kind = f"{kind} {operation_of(self._origin.stmt)}" if kind == "atomic" and self._mixed else ""
        for other in (*CONFLICTS[kind], *self._atomics_but(own_kind)):
            last = self._last.get((place.root, other))
            if last is not None:
                last.reach(memory.flat.size)
                own = self._is_own(last, touched) if (kind, other) == ("read", "write") else None
                for lines, wrong in self._conflicts(last, touched, side, threads, isinstance(memory, Cells)):
                    known, found = lines.get(self._name(place)), wrong & changed
                    if self.releases is not None and found.any():
                        found = found & ~self._over(self.releases, last, touched, threads, found)
                    sure = found if own is None or lines is self.blocks else found & ~own
                    if sure.any() if known is not None and known.own else known is None and found.any():
                        at = int(np.argmax(sure if sure.any() else found))
                        cell = touched.cell[at]
                        first = self._by(int(last.event[cell]), int(last.lane[cell]), int(last.world[cell]))
                        second = self._by(event, int(touched.thread[at]), int(touched.world[at]))
                        clash = self._clash(place, cell, first, second)
                        surely = lines is self.blocks and self._is_surely_unordered(last, cell, int(touched.world[at]))
                        lines[self._name(place)] = replace(clash, own=not sure.any(), sure=surely)
        for name in filter(None, (kind, own_kind)):
            mine = self._last.setdefault((place.root, name), EpochAccesses())
            mine.reach(memory.flat.size)
            mine.set(touched, self._epoch, self._parts(touched, threads))
            mine.event[touched.cell] = event
            if kind == "write" and (mine.lane[touched.cell] != touched.thread).any():
                codes = touched.cell.astype(np.int64) * self.machine.state.threads + touched.thread
                self._joint[event] = np.unique(codes)
            mine.stamp(touched, side, self.clocks, self._warps_in(touched, side, threads))
            mine.threads[touched.cell] = self._met if threads or self._managed else -self._met

    def _atomics_but(self, own: str) -> list[str]:
        """The kinds of atomics whose order with those of a kind decides the value; none for one without operation."""
        known = {kind for _, kind in self._last if kind.startswith("atomic ")} if own and own != "atomic " else ()
        return sorted(kind for kind in known if kind not in (own, "atomic "))

    def _over(
        self, releases: Releases, last: EpochAccesses, touched: AccessedCells, threads: bool, wrong: Mask
    ) -> Mask:
        """Return which of the accesses that seem wrong come after the last ones by atomics and fences.

        A tile operator, a T.Parallel and several threads stand for all of their block.
        """
        at, over = np.flatnonzero(wrong), np.zeros(len(wrong), np.bool_)
        cell = touched.cell[at]
        by = touched.thread[at] if threads else np.full(len(at), ALL)
        before = np.where((last.part[cell] > 0) & (last.lane[cell] >= 0), last.lane[cell], ALL)
        tick = np.array([made[3] for made in self._made])[last.event[cell]]
        over[at] = releases.over((touched.world[at], by), (last.world[cell], before), tick)
        return over

    def _is_surely_unordered(self, last: EpochAccesses, cell: int, world: int) -> bool:
        """Whether no atomic or fence may have ordered another block's last access before one of this world."""
        lane, known = int(last.lane[cell]), self.releases
        tick = self._made[int(last.event[cell])][3]
        return known is not None and known.exact and not known.is_open(world, (int(last.world[cell]), lane), tick)

    def _in_other_arms(self, last: EpochAccesses, touched: AccessedCells, side: Side | None, threads: bool) -> Mask:
        """Return which of them another warp has accessed in the other arm of a branch."""
        cell = touched.cell
        found = (last.part[cell] > 0) & (last.lane[cell] >= 0) & (last.side[cell] == 0) & last.here(touched)
        if side is not None or not threads or not found.any():
            return np.zeros(len(cell), np.bool_)
        found &= last.lane[cell] // self._lanes != touched.thread // self._lanes
        for event in np.unique(last.event[cell[found]]).tolist():
            if not are_apart(self.machine.function, self._made[event][1], self._origin):
                found &= last.event[cell] != event
        return np.asarray(found)

    def _is_own(self, last: EpochAccesses, touched: AccessedCells) -> Mask | None:
        """Return which of them a lane reads that it has written itself, as others wrote the same; None for none."""
        events = last.event[touched.cell]
        own = np.zeros(len(events), np.bool_)
        for event in np.unique(events).tolist():
            if event in self._joint:
                codes = touched.cell.astype(np.int64) * self.machine.state.threads + touched.thread
                own |= (events == event) & np.isin(codes, self._joint[event])
        return own if own.any() else None

    def _by(self, event: int, lane: int, world: int) -> Access:
        """An access that was made, by one lane or several."""
        kind, origin, iterating, _ = self._made[event]
        block = self.machine.worlds[world].block
        if lane == SEVERAL:
            return Access(f"{kind} by several {'iterations' if iterating else 'threads'}", "", block, -1, origin)
        if lane == _TILE:
            return Access(kind, "", block, -1, origin)
        if iterating:
            return Access(f"{kind} by iteration {lane} of T.Parallel", "", block, -1, origin)
        return Access(kind, "", block, lane, origin)

    def _clash(self, place: Place, cell: int, first: Access | None, second: Access) -> Clash:
        """Two accesses of a cell that conflict."""
        return Clash(self.machine.state.line, (offset_of(place, int(cell)),), first, second)

    def _warps_in(self, touched: AccessedCells, side: Side | None, threads: bool) -> Sequence[Array]:
        """The first and the last warp that makes each access in a branch; one of them issues a T.tma_copy."""
        if side is None or threads:
            return touched.warp, touched.warp
        base = self.first_row[touched.world]
        first = base + side.warps[touched.world]
        return first, first if self._managed else base + side.last[touched.world]

    def _look_at_unwaited(self, place: Place, position: Position, active: Mask, kind: str) -> None:
        """Does an access conflict with what nobody has waited for?"""
        multiplied, landing = kind == "read" and place.root in self._products, self._landing.get(place.root)
        if not (multiplied or landing is not None or self._unwaited.uses(place.root)):
            return
        touched = self.cells(AccessedElements(place, position, active))
        if multiplied:
            self._unwaited_for(self.unready, place, touched, 0, kind)
        if landing is not None and landing[touched.cell].any():
            self._unwaited_for(self.early, place, touched, int(np.argmax(landing[touched.cell])), kind)
        met = self._unwaited.meets(place.root, touched, kind != "read", self._adding)
        if met:
            lines = self.unready if met in (PRODUCTS, TENSOR_PRODUCTS) else self.early
            self._unwaited_for(lines, place, touched, 0, kind)

    def _unwaited_for(self, lines: dict[str, Clash], place: Place, touched: AccessedCells, at: int, kind: str) -> None:
        """Note an access while something is under way that nobody has waited for. at: which of the cells shows it."""
        if self._name(place) not in lines:
            second = self._by(self._access_number(kind), -1, int(touched.world[at]))
            lines[self._name(place)] = self._clash(place, touched.cell[at], None, second)

    def _conflicts(
        self, last: EpochAccesses, touched: AccessedCells, side: Side | None, threads: bool, cells: bool
    ) -> Iterator[tuple[dict[str, Clash], Mask]]:
        """Yield where accesses conflict with the last ones, in each way. threads: code for threads; cells: of one
        block.
        """
        yield self.own, last.beside(touched, self._epoch, self._parts(touched, threads), self._lanes)
        yield self.sides, last.unordered(touched, side, self.clocks) | self._in_other_arms(last, touched, side, threads)
        if not cells:
            yield self.between, last.mixed(touched, self._met, threads or self._managed)
            yield self.blocks, last.across(touched)
