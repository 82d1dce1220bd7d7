"""Define what happens while a kernel runs: the events that are published, and who listens to them.

A kernel is compiled for its observers: an event that none of them defines is a call of nothing. Who runs a kernel makes
the observers, hands them in and asks them afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from tlcheck.execute.memory.cells import Cells, Position
from tlcheck.execute.memory.frame import Frame, Mask
from tlcheck.execute.memory.pages import Pages
from tlcheck.execute.memory.places import Place
from tlcheck.execute.memory.state import Origin
from tlcheck.execute.memory.values import Array, Value
from tlcheck.signatures.atomics import Atomic
from tlcheck.snapshot.ir import Expr, Stmt

COPIES, LOADS, STORES, PRODUCTS = "copies", "loads", "stores", "products"
TENSOR_PRODUCTS = "tensor products"  # added to tensor memory: a commit tells an mbarrier when they are complete
Cell = tuple[Cells | Pages, int]  # memory, and an index into its flat data
Operands = Callable[[tuple[int, ...]], Sequence[Sequence[Cell]]]  # of an element, by its index


@dataclass(frozen=True, slots=True, eq=False)
class Elements:
    """Elements of a place, of `lanes` lanes; mask: the active ones, None for all."""

    place: Place
    position: Position
    mask: Mask | None
    lanes: int


@dataclass(frozen=True, slots=True, eq=False)
class Operation:
    """A record of what a source kernel begins and waits for itself, with what it reads and writes.

    kind: one of those above. key: the mbarrier that it completes, None for groups of a thread. worlds: (worlds,), those
    in which it completes that; None for all.
    """

    kind: str
    reads: Sequence[Elements] = ()
    writes: Sequence[Elements] = ()
    key: object = None
    worlds: Mask | None = None

    @property
    def elements(self) -> Iterator[tuple[Elements, bool]]:
        """Yield the elements, each with whether the access writes them."""
        yield from ((elements, False) for elements in self.reads)
        yield from ((elements, True) for elements in self.writes)


@dataclass(frozen=True, slots=True, eq=False)
class TensorCoreForm:
    """A product on tensor cores, by `threads` threads: m x n x k, of elements of a dtype.

    instruction: such as `mma`. buffer: the accumulators. shared: bytes of operands that it reads from shared memory.
    """

    instruction: str
    m: int
    n: int
    k: int
    dtype: str
    threads: int
    buffer: str
    shared: int = 0

    @property
    def shape(self) -> str:
        """The shape as PTX writes it: `m16n8k16`."""
        return f"m{self.m}n{self.n}k{self.k}"


@dataclass(frozen=True, eq=False)
class Side:
    """A branch that runs beside others.

    path: for each place where branches parted on the way to it, the number of that place and its own among them. warps,
    last: its first and its last one, in each world.
    """

    path: tuple[tuple[int, int], ...]
    warps: Array
    last: Array

    @classmethod
    def of(cls, path: tuple[tuple[int, int], ...], lanes: Mask, width: int) -> Side:
        """The branch of these lanes, (worlds, lanes). width: lanes of a warp."""
        last = lanes.shape[-1] - 1 - lanes[:, ::-1].argmax(axis=-1)
        return cls(path, lanes.argmax(axis=-1) // width, last // width)

    def is_beside(self, other: Side) -> bool:
        """Whether both run at the same time: they parted somewhere."""
        mine = dict(self.path)
        return any(mine.get(fork, number) != number for fork, number in other.path)


class Observer:
    """Listens to those events that it defines. Each says what it is told of; here it means nothing.

    place, position: where elements are, one for each lane of mask. by: the thread of each element, where that is not
    its lane.
    """

    def ended(self) -> None:
        """The kernel has come to its end."""

    # ---- branches and loops

    def steered(self, stmt: Stmt) -> None:
        """As it is compiled: what is in memory decides whether this side of a branch runs, or how often this loop."""

    def branched(self, stmt: Stmt) -> None:
        """Such a side of a branch runs; such a loop of so many iterations that each part of a pipeline of it runs."""

    def turned(self, side: Side | None) -> None:
        """The run turns to this side of a branch whose sides run beside one another; None: it leaves all of them."""

    # ---- accesses to shared and global memory

    def covers(self, place: Place) -> bool:
        """Whether it wants to be told of accesses to a place. Raises NotModelled where it cannot follow them."""
        return False

    def read(
        self, place: Place, position: Position, mask: Mask, origin: Origin, proxy: str = "generic", by: Any = None
    ) -> None:
        """Active threads read elements. proxy: `generic` or `async` (PTX 8.2.3.1)."""

    def half_read(self, place: Place, position: Position, mask: Mask, origin: Origin) -> None:
        """Active threads read the other halves of the bytes into which they store elements, to leave these as they
        are.
        """

    def write(self, place: Place, position: Position, mask: Mask, origin: Origin, value: Value) -> None:
        """Active threads are about to write elements."""

    def written(self, place: Place, position: Position, mask: Mask, origin: Origin, value: Value) -> None:
        """Active threads have written elements."""

    def atomic(self, place: Place, position: Position, mask: Mask, origin: Origin) -> None:
        """Active threads access elements with atomics."""

    def atomic_made(
        self, atomic: Atomic, order: int, root: int, cell: Array, threads: tuple[Array, Array] | None, origin: Origin
    ) -> None:
        """An atomic on elements of an allocation, in the order in which its threads make it, whoever covers them.

        order: of memory, by its number in C++. cell: flat. threads: the world and the thread of each; None where it is
        not known which threads make it.
        """

    def added(
        self, memory: Cells | Pages, cells: Array, terms: Array, worlds: Array, threads: Array, origin: Origin
    ) -> None:
        """Atomics or bulk copies add terms to cells of an allocation, whoever covers them.

        cells: flat. cells, terms, worlds, threads: (additions,). threads: -1 where no thread adds.
        """

    def thread_fence(self, mask: Mask, wide: bool) -> None:
        """Active threads pass a fence of threads (PTX 9.7.13.4). wide: it counts for other blocks too."""

    def proxy_crossed(self, place: Place, position: Position, mask: Mask, origin: Origin) -> None:
        """The async proxy is going to use what active threads name."""

    def tensor_left(self, place: Place, frame: Frame, outside: Mask, stores: bool) -> None:
        """A plain index of the source is out of a tensor's bounds in these lanes, and the access is dropped there.

        outside: (worlds, lanes) or with vector lanes before.
        """

    def atomic_left(self, place: Place, frame: Frame, outside: Mask) -> None:
        """An atomic of the source leaves a tensor with what it changes, and does nothing there.

        outside: as for `tensor_left`.
        """

    def region_left(self, place: Place, frame: Frame, outside: Mask, stores: bool) -> None:
        """The region of a tile operator in the source is out of a tensor's bounds at these points, which are dropped.

        outside: (points, worlds, lanes).
        """

    # ---- asynchronous copies

    def copy_issued(self, place: Place, position: Position, mask: Mask, origin: Origin, coming: Array) -> None:
        """Active threads begin copies into shared memory (cp.async). coming: what they bring."""

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

        mask: (worlds, 1), the worlds in which it does. coming: what it brings; None where that is not known. later:
        (worlds,), where it may be the phase after this one that needs it; None for nowhere. at: (worlds,), the world
        to which it goes, and whose mbarrier it completes, where that may be another block of the cluster.
        """

    def response_asked(self, key: object, mask: Mask, at: Array) -> None:
        """Active threads ask for what comes later, and completes a barrier `key` of the worlds `at`."""

    def bulk_store_issued(
        self, place: Place, position: Position, mask: Mask, origin: Origin, value: Value | None, by: Array
    ) -> None:
        """Bulk copies write a tensor, or add to it (value: None)."""

    def bulk_store_begun(
        self, tensor: Place, position: Array, mask: Mask, shared: Place, octets: int, issuer: Mask, adds: bool
    ) -> None:
        """The threads of issuer (worlds, threads) begin bulk copies of so many bytes each; see `bulk_store_issued`."""

    def copy_landed(self, place: Place, position: Position, mask: Mask, by: Any = None) -> None:
        """Copies have landed for the threads that began them."""

    # ---- asynchronous products

    def tensor_product_issued(
        self, place: Place, position: Position, mask: Mask, lane: Mask, origin: Origin, kind: str, proxy: str
    ) -> None:
        """A product begins, by the thread of `lane` (worlds, threads): it will read elements, or write them.

        mask: (worlds, 1), the worlds in which it does. kind: read or write. proxy: `async` for shared memory, `tensor`
        for tensor memory.
        """

    def tensor_product_landed(self, place: Place, position: Position, mask: Mask, lane: Mask) -> None:
        """A product of the tensor cores has read or written what it does."""

    # ---- synchronization

    def barrier(self, mask: Mask) -> None:
        """All warps with active threads have met, in each world."""

    def grid_barrier(self) -> None:
        """All blocks have met."""

    def warp_barrier(self, mask: Mask) -> None:
        """__syncwarp."""

    def arrived(self, key: object, mask: Mask, at: Array | None = None) -> None:
        """Active threads have arrived at a barrier. at: (worlds,), the world whose barrier it is, if not their own."""

    def phase_ended(self, key: object, world: int) -> None:
        """A phase of a barrier has ended in a world."""

    def acquired(self, key: object, mask: Mask, at: Array | None = None) -> None:
        """Active threads have waited for a barrier. at: as for `arrived`."""

    def phase_waited(self, key: object, mask: Mask, place: int = 0) -> None:
        """Active threads have waited for a phase of an mbarrier, by its parity. place: stands for the statement."""

    def proxy_fence(self, mask: Mask) -> None:
        """fence.proxy.async by active threads."""

    def tensor_fence(self, mask: Mask, after: bool) -> None:
        """tcgen05.fence by active threads. after: ::after_thread_sync, not ::before_thread_sync."""

    def products_released(self, key: object, mask: Mask, at: Array) -> None:
        """Active threads issue a tcgen05.commit that arrives at a barrier of the worlds `at` once it is finished."""

    def products_finished(self, key: object, mask: Mask, at: Array) -> None:
        """Products of active threads that were committed to a barrier of the worlds `at`, (worlds,), are complete."""

    # ---- a source kernel

    def tile_reached(self, stmt: Stmt, frame: Frame) -> None:
        """Active threads reach a tile operator or a T.Parallel."""

    def tile_accessed(
        self, place: Place, position: Position, mask: Mask | None, lanes: int, value: Value | None
    ) -> None:
        """A tile operator reads a region (value: None) or is about to write it."""

    def tile_written(self, place: Place, position: Position, mask: Mask | None, lanes: int, value: Value) -> None:
        """A tile operator has written a region, in all blocks at once."""

    def parallel_loop(self, begins: bool) -> None:
        """A T.Parallel begins or ends."""

    def tma_copy(self, begins: bool) -> None:
        """A T.tma_copy begins or ends."""

    def async_product(self, place: Place, begins: bool) -> None:
        """An asynchronous product is about to be added to a place, or has been."""

    def tensor_product(self, begins: bool) -> None:
        """A product is about to be added to tensor memory, or has been."""

    def operation_begun(self, operation: Operation) -> None:
        """An operation begins that the author waits for himself."""

    def operations_awaited(self, kind: str, newest: int, mask: Mask, reads: bool = False) -> None:
        """Active threads wait for all such operations but the newest; with `reads` only until they have read."""

    def products_committed(self, key: object, mask: Mask) -> None:
        """All TENSOR_PRODUCTS until now complete a phase of an mbarrier, for active threads."""

    def wait_uncommitted(self, mask: Mask) -> None:
        """Active threads wait for groups of copies, and those that they have begun are in none yet."""

    # ---- memory

    def allocated(self, root: int, memory: Cells | Pages) -> None:
        """Memory has this number from now on: a tensor, or what a block has declared."""

    def reallocated(self, root: int) -> None:
        """An allocation is declared anew, by all threads."""

    # ---- what a value is made of

    def acting(self, frame: Frame) -> None:
        """The next access to memory is in this frame."""

    def landing(self, origin: Origin) -> None:
        """The next write is that of a statement that ran before."""

    def strayed(self, outside: Mask | None) -> None:
        """The last read took nothing in lanes where the region leaves its buffer; None for nowhere."""

    def combined(self, frame: Frame, position: Position, mask: Mask | None) -> None:
        """The next write is an atomic and lists those lanes that take part. position, mask: of all lanes."""

    def product(self, operands: Operands, keeps: bool = True) -> None:
        """Each element of the next write is the product of a row and a column. keeps: added to what is there."""

    def reduction(self, operands: Operands, keeps: bool) -> None:
        """Each element of the next write is the reduction of the first group of operands. keeps: together with what is
        there, which is the second.
        """

    def absent_read(self, mask: Mask) -> None:
        """A shuffle reads threads that take no part, in these threads: undefined (PTX 9.7.9.6, shfl.sync)."""

    def exchanged(self, shuffle: Expr, mask: Mask) -> None:
        """Active threads give one another values in a shuffle of whole warps."""

    # ---- arithmetic

    def computed(self, stmt: Stmt, frame: Frame) -> None:
        """A statement of a frame's active lanes is about to compute what it stores."""

    # ---- tensor cores

    def product_issued(self, form: TensorCoreForm, stmt: Stmt | None, mask: Mask, times: int = 1) -> None:
        """The warps or warpgroups of active threads begin so many products each, in a statement."""

    # ---- what a kernel says

    def printed(self, frame: Frame, text: str, value: Value | None) -> None:
        """T.print of a text, with a value or without."""

    def element_printed(self, frame: Frame, text: str, shape: tuple[int, ...], first: bool, value: Value) -> None:
        """T.print of an element of a buffer of this shape. first: whether it is the first one."""

    def breakpoint_reached(self, frame: Frame, place: tuple[str, int], names: Mapping[str, Value]) -> None:
        """A `breakpoint()` in a file and line. names: the values of variables there."""


_EVENTS = tuple([name for name, event in vars(Observer).items() if callable(event)])
# those that an observer is told of places that it covers
_OF_PLACES = ("read", "half_read", "write", "written", "atomic")


class Observers(Observer):
    """Publishes each event to those of some observers that define it, in their order."""

    def __init__(self, *observers: Observer) -> None:
        self._listening = {
            name: [one for one in observers if getattr(type(one), name) is not getattr(Observer, name)]
            for name in _EVENTS
        }
        self._heard: dict[tuple[Callable[..., object], ...], bool] = {}  # what is asked at every access
        for name, listening in self._listening.items():
            setattr(self, name, _publishing(name, listening))

    def hear(self, *events: Callable[..., object]) -> bool:
        """Whether anybody listens to one of some events, given as `Observer` defines them."""
        if events not in self._heard:
            self._heard[events] = any(self._listening[event.__name__] for event in events)
        return self._heard[events]


def _publishing(event: str, listening: Sequence[Observer]) -> Callable[..., object]:
    """The function that publishes an event."""
    if not listening:
        return _nothing
    if len(listening) == 1:
        found: Callable[..., object] = getattr(listening[0], event)
        return found
    if event == "covers":
        return lambda place: any(one.covers(place) for one in listening)
    return partial(_to_all, [(one, getattr(one, event)) for one in listening], event in _OF_PLACES)


def _nothing(*about: object, **more: object) -> None:
    """Nobody listens."""


def _to_all(listening: Iterable[tuple[Observer, Callable[..., None]]], chosen: bool, *about: Any, **more: Any) -> None:
    """Tell several. chosen: those alone that cover the place, which comes first."""
    for observer, event in listening:
        if not chosen or observer.covers(about[0]):
            event(*about, **more)
