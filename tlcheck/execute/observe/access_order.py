"""Define what becomes of each access: what it is checked against, whether a fence has to be there, and until when it
is under way.

`Glance` and `Watch` follow it alike: they differ in how they find the cells that an event names, in what a conflict
leads to, and in what they keep of an access.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from tlcheck.execute.memory.cells import Position
from tlcheck.execute.memory.frame import Mask
from tlcheck.execute.memory.places import Place
from tlcheck.execute.memory.state import NOWHERE, Origin
from tlcheck.execute.memory.values import Array, Value
from tlcheck.execute.observe.accesses import AccessedCells
from tlcheck.execute.observe.clock import PENDING
from tlcheck.execute.observe.order import HappensBefore
from tlcheck.execute.observe.shadow import MANY, LastAccesses, Shadow

TENSOR_FENCES = "tcgen05.fence::before_thread_sync and ::after_thread_sync"
PROXY_FENCE = "fence.proxy.async"


@dataclass(frozen=True, slots=True, eq=False)
class AccessForm:
    """An event does this to cells.

    kind: read, write or atomic, also with its operation; empty where it is no access. proxy: by which it is made: the
    async one sees what threads have written only after a fence (PTX 8.2.3.1). under_way: it is over for nobody before
    it lands. in_turn: those of one thread come one after the other. of_core: a tensor core makes it. half: a store
    reads the other half of its byte. lands: what has been under way is over.
    """

    kind: str = ""
    proxy: str = "generic"
    under_way: bool = False
    in_turn: bool = False
    of_core: bool = False
    half: bool = False
    lands: bool = False


READ, ASYNC_READ, HALF_READ = AccessForm("read"), AccessForm("read", "async"), AccessForm("read", half=True)
WRITE, ATOMIC = AccessForm("write"), AccessForm("atomic")
COPY = AccessForm("write", under_way=True)
BULK_LOAD = AccessForm("write", "async")  # over with a phase of an mbarrier
BULK_STORE, BULK_ATOMIC = (AccessForm(kind, "async", under_way=True, in_turn=True) for kind in ("write", "atomic"))
PRODUCTS = {
    (kind, proxy): AccessForm(kind, proxy, under_way=True, in_turn=kind == "write", of_core=True)
    for kind in ("read", "write")
    for proxy in ("async", "tensor")
}
LANDED, PRODUCT_LANDED = AccessForm(lands=True), AccessForm(of_core=True, lands=True)
CROSSED = AccessForm(proxy="async")


@dataclass(frozen=True, slots=True, eq=False)
class OperationIssue:
    """The thread of each world that begins an operation, (worlds, threads).

    key: the mbarrier that it completes, None for none. later, at: see `Observer.bulk_load_issued`.
    """

    lane: Mask
    key: object = None
    later: Mask | None = None
    at: Array | None = None


class _Accessed(Protocol):
    """The cells of an access, in the shadow of their allocation. tensor: whether they are tensor memory."""

    @property
    def shadow(self) -> Shadow: ...

    @property
    def cells(self) -> AccessedCells: ...

    @property
    def tensor(self) -> bool: ...


A = TypeVar("A", bound=_Accessed)


class AccessOrder(HappensBefore, ABC, Generic[A]):
    """Checks the accesses of a machine against those before them. reads_late: a bulk copy has read a tensor, when it
    landed: nobody knows what it got.
    """

    reads_late = False

    # ---- events

    def read(
        self, place: Place, position: Position, mask: Mask, origin: Origin, proxy: str = "generic", by: Any = None
    ) -> None:
        """Active threads read elements."""
        self._follow(ASYNC_READ if proxy == "async" else READ, place, position, mask, origin, by=by)

    def half_read(self, place: Place, position: Position, mask: Mask, origin: Origin) -> None:
        """Active threads read the other halves of the bytes that they store."""
        self._follow(HALF_READ, place, position, mask, origin)

    def write(self, place: Place, position: Position, mask: Mask, origin: Origin, value: Value) -> None:
        """Active threads are about to write elements."""
        self._follow(WRITE, place, position, mask, origin, value=value)

    def atomic(self, place: Place, position: Position, mask: Mask, origin: Origin) -> None:
        """Active threads access elements with atomics: those of one operation have no conflict with one another."""
        self._follow(ATOMIC, place, position, mask, origin)

    def copy_issued(self, place: Place, position: Position, mask: Mask, origin: Origin, coming: Array) -> None:
        """Threads begin copies into shared memory (cp.async), which are over for nobody until they have landed."""
        self._follow(COPY, place, position, mask, origin, value=coming)

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
        """A bulk copy into shared memory begins. The write is over for those who wait for the key, and so are the
        fences before it: the phase needs its bytes.
        """
        self._follow(BULK_LOAD, place, position, mask, origin, value=coming, issue=OperationIssue(lane, key, later, at))

    def bulk_store_issued(
        self, place: Place, position: Position, mask: Mask, origin: Origin, value: Value | None, by: Array
    ) -> None:
        """Bulk copies write a tensor, or add to it (value: None): over for nobody before `copy_landed`.

        Those of one thread come one after the other. What threads of the block wrote before may land later, unless
        a fence stands between (PTX 8.2.3.1).
        """
        self._follow(BULK_ATOMIC if value is None else BULK_STORE, place, position, mask, origin, by=by, value=value)

    def copy_landed(self, place: Place, position: Position, mask: Mask, by: Any = None) -> None:
        """The copies of this kind have landed for the threads that began them."""
        self._follow(LANDED, place, position, mask, NOWHERE, by=by)

    def tensor_product_issued(
        self, place: Place, position: Position, mask: Mask, lane: Mask, origin: Origin, kind: str, proxy: str
    ) -> None:
        """A product begins: what it reads or writes is over for nobody before `tensor_product_landed`.

        Those of one thread write their sums one after the other.
        """
        self._follow(PRODUCTS[kind, proxy], place, position, mask, origin, issue=OperationIssue(lane))

    def tensor_product_landed(self, place: Place, position: Position, mask: Mask, lane: Mask) -> None:
        """The product has read or written what it does."""
        self._follow(PRODUCT_LANDED, place, position, mask, NOWHERE, issue=OperationIssue(lane))

    def proxy_crossed(self, place: Place, position: Position, mask: Mask, origin: Origin) -> None:
        """The async proxy uses what active threads name: is what was written there visible to it?"""
        self._follow(CROSSED, place, position, mask, origin)

    # ---- what becomes of them

    def _begin(self, form: AccessForm, issue: OperationIssue) -> None:
        """An operation takes along what its warp knows, or the fences before it."""
        if issue.key is not None:
            self.fences_released(issue.key, issue.lane, issue.at)
        elif not form.lands:
            self.product_begins(issue.lane)

    def _happens(self, access: A, form: AccessForm, issue: OperationIssue | None) -> None:
        """Check an access, and keep it for those that come."""
        cells, shadow = access.cells, access.shadow
        now = self.now(cells)
        if form.lands:
            shadow.land(cells, now)
            return
        if form.kind:
            self._check(access, form, now)
        if form.proxy == "async":
            unfenced = shadow.writes.unfenced(cells, self)
            if unfenced is not None:
                self._conflict(access, form, shadow.writes, unfenced[None], PROXY_FENCE)
        if issue is not None and issue.key is not None:
            there = cells.world if issue.at is None else issue.at[cells.world]
            over = self.phase_after(issue.key, issue.later)[there]
            self._keep(access, form, self.agent(issue.key, there), MANY, over)
        elif form.kind:
            self._keep(access, form, cells.warp, cells.thread, PENDING if form.under_way else now)

    def _check(self, access: A, form: AccessForm, now: Array) -> None:
        """Find the last accesses that an access comes too early after."""
        cells, shadow = access.cells, access.shadow
        if access.tensor:
            for last, unfenced in shadow.without_fences(form.kind, cells, self):
                self._conflict(access, form, last, unfenced, TENSOR_FENCES)
        for last, unordered in shadow.unordered(form.kind, cells, now, self):
            if form.in_turn and last is shadow.writes:
                unordered &= ~shadow.writes.is_pending(cells)
            self._conflict(access, form, last, unordered)

    # ---- what differs

    @abstractmethod
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
        """Find the cells of an event, then see to what happens. value: what is written, or will be, where known."""

    @abstractmethod
    def _conflict(self, access: A, form: AccessForm, last: LastAccesses, where: Mask, fence: str = "") -> None:
        """An access conflicts with last ones that nothing orders before it, (1 or warps, cells).

        fence: what is missing, where all but that is there.
        """

    @abstractmethod
    def _keep(self, access: A, form: AccessForm, agent: Array, thread: Array | int, time: Array | int) -> None:
        """Remember an access, which is over with a time of an agent. thread: MANY for none in particular."""
