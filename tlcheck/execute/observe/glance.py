"""A first look at the order of accesses: coarser and faster than `Watch`, and sure only where it finds nothing.

It follows the same clocks over a shadow with a coarser grain (`unit_shadow`), without events: what several threads of a
warp do to a unit counts as done by none of them in particular. Elements of tensors have owners instead of clocks. So
whatever `Watch` would report is suspected here, and some things that are in order as well: the kernel then runs again,
under a `Watch` that looks at these alone. After what it suspects a glance goes on as if that had been in order.

Rounds of a loop that recur are counted instead of carried out (`recurrence`).
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
from tlcheck.execute.observe.access_order import AccessForm, AccessOrder, OperationIssue
from tlcheck.execute.observe.accesses import AccessedElements
from tlcheck.execute.observe.clock import Times
from tlcheck.execute.observe.owners import Owners
from tlcheck.execute.observe.recurrence import Recurrence
from tlcheck.execute.observe.repeats import Repeats
from tlcheck.execute.observe.shadow import LastAccesses
from tlcheck.execute.observe.suspects import Suspects
from tlcheck.execute.observe.unit_shadow import UnitAccess, Units

if TYPE_CHECKING:
    from tlcheck.execute.machine import Machine


class Glance(AccessOrder[UnitAccess]):
    """Watches the accesses of a machine. found: where they may not be ordered."""

    def __init__(self, machine: Machine, written: frozenset[str]) -> None:
        """See `HappensBefore`."""
        super().__init__(machine, written)
        self.found = Suspects()
        self._recurrence = Recurrence(self)
        self._units = Units(self, self.found, lambda: self._recurrence.settle())
        self._owners: dict[int, Owners] = {}
        self._repeats = Repeats()  # in tensor memory
        self._first_lane = 1

    def follow(self, other: Glance) -> None:
        """Go on where another one ended who watched other blocks: tensors are theirs as well."""
        self._owners = other._owners
        self._first_lane = other._first_lane + other.worlds * other.machine.state.threads

    @property
    def is_settled(self) -> bool:
        """Whether every schedule of asynchronous copies has the same result.

        All accesses that conflict are ordered, so that each reads the same write whenever copies land: as late as they
        may, as early, or between.
        """
        self._recurrence.settle()
        return not self.reads_late

    # ---- accesses

    def written(self, place: Place, position: Position, mask: Mask, origin: Origin, value: Value) -> None:
        """Active threads have written elements: those that wrote another value than is there now disagree."""
        if isinstance(place.memory, Cells):
            doubled = self._units.accessed(place, position, mask, whole=False).doubled
        else:
            doubled = place.root in self._owners and self._owners[place.root].doubled
        if doubled and self.disagreement(place, position, mask, value) is not None:
            self.found.stores.add(place.root)

    def reallocated(self, root: int) -> None:
        """The allocation is declared anew."""
        if root in self._units.shadows:
            self._recurrence.settle()
            self._units.forget(root)
            self._repeats.forget()

    def ended(self) -> None:
        """The kernel has ended: drop what is remembered of its shared memory. Tensors are other blocks' as well."""
        self._recurrence.settle()
        self._recurrence = Recurrence(self)
        self._units.clear()
        self._repeats.forget()

    # ---- synchronization

    def barrier(self, mask: Mask) -> None:
        """All warps with active threads have met, in each world."""
        self._synchronize("barrier", None, mask, super().barrier, mask)

    def warp_barrier(self, mask: Mask) -> None:
        """__syncwarp."""
        self._synchronize("warp", None, mask, super().warp_barrier, mask)

    def arrived(self, key: object, mask: Mask, at: Array | None = None) -> None:
        """Active warps have arrived at a barrier."""
        self._synchronize("arrived", key, mask, super().arrived, key, mask, at, at=at)

    def response_asked(self, key: object, mask: Mask, at: Array) -> None:
        """Active warps ask for what completes a barrier."""
        self._synchronize("asked", key, mask, super().response_asked, key, mask, at, at=at)

    def products_released(self, key: object, mask: Mask, at: Array) -> None:
        """Active warps have issued a tcgen05.commit."""
        self._synchronize("committed", key, mask, super().products_released, key, mask, at, at=at)

    def products_finished(self, key: object, mask: Mask, at: Array) -> None:
        """A tcgen05.commit of active warps arrives."""
        self._synchronize("finished", key, mask, super().products_finished, key, mask, at, at=at)

    def phase_ended(self, key: object, world: int) -> None:
        """A phase of a barrier has ended in a world."""
        event = "ended", key, world
        if not self._recurrence.is_known(event):
            self._recurrence(event, partial(super().phase_ended, key, world), event)

    def acquired(self, key: object, mask: Mask, at: Array | None = None) -> None:
        """Active warps have waited for a barrier."""
        self._synchronize("acquired", key, mask, super().acquired, key, mask, at, at=at)

    def phase_waited(self, key: object, mask: Mask, place: int = 0) -> None:
        """Active warps have waited for a phase of an mbarrier, by its parity."""
        self._synchronize("waited", key, mask, super().phase_waited, key, mask, place)

    def proxy_fence(self, mask: Mask) -> None:
        """fence.proxy.async by active threads."""
        self._synchronize("fence", None, mask, super().proxy_fence, mask)

    def tensor_fence(self, mask: Mask, after: bool) -> None:
        """tcgen05.fence by active threads."""
        self._synchronize("tensor fence", after, mask, super().tensor_fence, mask, after)

    # ---- what recurs, see `recurrence.Clocks`

    def times(self) -> Iterator[Times]:
        """Every array of times."""
        yield from super().times()
        for shadow in self._units.shadows.values():
            yield from shadow.times(self.leaders * self.agents)

    def marks(self) -> Iterator[Array]:
        """Yield who made the last accesses."""
        for shadow in self._units.shadows.values():
            yield from shadow.marks()

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
        """Carry out an access to shared memory, unless it recurs; of tensors, see who accesses each element."""
        if isinstance(place.memory, Pages):
            if form.kind:
                self._access_tensor(form.kind, place, position, mask, by)
            return
        key: object = None
        unsure = lane = ranks = None
        if issue is not None:
            lane, key, ranks = issue.lane, issue.key, self._ranks(issue.at)
            unsure = None if issue.later is None else issue.later.tobytes()
        elif by is not None:
            lane = by == np.arange(self.machine.state.threads)
        sign = form, place, _identity(position), id(mask), id(lane), ranks, key, unsure
        if self._recurrence.is_known(sign):
            return
        self.note(place)
        whole = issue is not None or (form.kind == "read" and (form.proxy == "async" or place.arranged))
        access = self._units.accessed(place, position, mask, whole, lane, self.cores if form.of_core else 0)
        # Recurrence keeps thousands of these: a partial is fewer objects for the garbage collector than a closure.
        carry_out = partial(self._carry_out, access, form, issue)
        self._recurrence((form, access, ranks, key, unsure), carry_out, sign, (position, mask, lane))

    def _carry_out(self, access: UnitAccess, form: AccessForm, issue: OperationIssue | None) -> None:
        if not len(access.cells.cell):
            return
        if issue is not None:
            self._begin(form, issue)
        if access.tensor and self._repeats_itself(access, form):
            return
        self._happens(access, form, issue)

    def _repeats_itself(self, access: UnitAccess, form: AccessForm) -> bool:
        """Whether a tensor core accesses tensor memory as it has done, and nothing has touched the units since."""
        root = id(access.shadow)
        if form.of_core and self._repeats.has(root, (form,), access):
            return True
        self._repeats.touched(root, access.cells.cell)
        if form.of_core:
            self._repeats.record(root, (form,), access.cells.cell, access)
        return False

    def _conflict(self, access: UnitAccess, form: AccessForm, last: LastAccesses, where: Mask, fence: str = "") -> None:
        """Suspect the units."""
        access.shadow.suspect(access.cells.cell[where.any(axis=0)])

    def _keep(self, access: UnitAccess, form: AccessForm, agent: Array, thread: Array | int, time: Array | int) -> None:
        """Remember an access, which is over with a time of an agent."""
        if form.kind == "write":
            access.shadow.writes.record_by(access.cells, agent, thread, time)
        else:
            access.shadow.record(form.kind, access.cells, time)

    def _synchronize(
        self, what: str, key: object, mask: Mask, act: Callable[..., None], *about: Any, at: Array | None = None
    ) -> None:
        """Carry out a synchronization by active lanes, unless it recurs. at: see `Observer.arrived`."""
        ranks = self._ranks(at)
        sign = what, key, id(mask), ranks
        if self._recurrence.is_known(sign):
            return
        event = what, key, ranks, mask[0, 0] if mask.strides == (0, 0) else mask.tobytes()
        self._recurrence(event, partial(act, *about), sign, mask)

    def _access_tensor(self, kind: str, place: Place, position: Position, mask: Mask, by: Any = None) -> None:
        """Suspect a tensor of which lanes access an element that is another one's, whatever barriers are between."""
        assert isinstance(place.memory, Pages)
        self.ordering |= kind == "atomic"
        self.reads_late |= kind == "read" and by is not None
        if not mask.any():
            return
        self.note(place)
        cells = self.cells(AccessedElements(place, position, mask), by)
        lane = cells.world * self.machine.state.threads + cells.thread + self._first_lane
        owners = self._owners.setdefault(place.root, Owners())
        if owners.access(kind, cells.cell, lane, place.memory.flat.size, bulk=by is not None):
            self.found.tensors.add(place.root)

    def _ranks(self, at: Array | None) -> tuple[int, ...] | None:
        """The ranks of the blocks at whose barriers each world does something; None for its own."""
        return None if at is None or self.rows == self.warps else tuple(self.rank[at].tolist())


def _identity(position: Position) -> object:
    """Return what tells a position from others, as long as it lives."""
    return id(position) if isinstance(position, np.ndarray) else position
