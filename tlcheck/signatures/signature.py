"""The signature of an instruction."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum

from tlcheck.snapshot.ir import Expr

ADDRESSES = frozenset(("address_of", "access_ptr", "tvm_access_ptr"))


class Completion(Enum):
    """Tells how an asynchronous operation completes."""

    CP_ASYNC_GROUP = "cp.async group"
    BULK_GROUP = "bulk group"
    WGMMA_GROUP = "wgmma group"
    MBARRIER = "mbarrier"
    TENSOR_COMMIT = "tcgen05.commit"


class Proxy(Enum):
    """The path by which memory is accessed (PTX 8.2.3.1, "Proxies")."""

    GENERIC = "generic"
    ASYNC = "async"


class Collective(Enum):
    """The threads that execute an instruction together."""

    THREAD = "thread"
    ELECTED = "elected thread"  # each thread that executes it acts for its block: one is elected to
    WARP = "warp"
    WARPGROUP = "warpgroup"
    BLOCK = "block"
    CLUSTER = "cluster"  # it acts on other blocks of the cluster, or waits for them
    GRID = "grid"


class Leaves(Enum):
    """Threads leave one of these."""

    ITERATION = "iteration"
    LOOP = "loop"
    KERNEL = "kernel"


class Fence(Enum):
    """The accesses that a fence orders."""

    PROXY = "proxy"  # those of the generic proxy before those of the async proxy
    MBARRIER_INIT = "mbarrier init"  # the making of mbarriers before their use by the async proxy
    THREADS = "threads"  # those of a thread before it and after it, with atomics
    REGISTERS = "registers"  # those of a warpgroup's registers before wgmma
    TENSOR_MEMORY = "tensor memory"  # those of tensor memory around a synchronization of threads


@dataclass(frozen=True, slots=True)
class Address:
    """An argument that names memory: an address, a pointer variable, or a descriptor.

    at: position of the argument. An external function's name is not counted.
    offset: position of the argument that is added to the address; None for no such argument.
    octets: whether that argument counts bytes, not elements.
    """

    at: int
    offset: int | None = None
    octets: bool = False


@dataclass(frozen=True, slots=True)
class Signature:
    """The effects of an instruction. The default is an instruction of one thread that touches no memory.

    reads, writes, updates: the memory that it reads, writes, or both reads and writes, as an addition does.
    mbarrier: position of the argument that names an mbarrier.
    size: position of the argument that says how much it copies; None for none, or where a tensor map says so.
    coordinates: position of the first coordinate in the tensor of a tensor map.
    predicate: position of the argument without which it reads nothing.
    waits: threads may wait for other warps, on some target. A warp moves in lockstep: `bar.warp.sync` does not wait.
    releases: hands on what its threads did before, to those that wait for it.
    leaves: what threads may leave; None for nothing.
    of_block: its value may be another one in each block.
    exchanges: its value is made of the registers of other threads.
    asynchronous: how it completes; None for an instruction that is complete when the next one runs.
    commits: it makes a group of the operations before it.
    awaits: it waits for operations that complete so.
    fence: the accesses that it orders.
    proxy: the path by which it accesses memory.
    collective: the threads that execute it together.
    group: the neighbouring threads that wait for one another; 0 for all that execute it. Those of one warp do not wait.
    """

    reads: tuple[Address, ...] = ()
    writes: tuple[Address, ...] = ()
    updates: tuple[Address, ...] = ()
    mbarrier: int | None = None
    size: int | None = None
    coordinates: int | None = None
    predicate: int | None = None
    waits: bool = False
    releases: bool = False
    leaves: Leaves | None = None
    of_block: bool = False
    exchanges: bool = False
    asynchronous: Completion | None = None
    commits: Completion | None = None
    awaits: Completion | None = None
    fence: Fence | None = None
    proxy: Proxy = Proxy.GENERIC
    collective: Collective = Collective.THREAD
    group: int = 0

    def waits_with(self, warp: int) -> bool:
        """Whether threads may wait for other warps, on a target whose warps have so many threads."""
        return self.waits and not 0 < self.group <= warp

    @property
    def destinations(self) -> tuple[Address, ...]:
        """The memory that changes."""
        return self.writes + self.updates

    @property
    def touches_memory(self) -> bool:
        return bool(self.reads or self.destinations)


class CountedAs(Enum):
    """What a gate counts of instructions that touch memory, besides the accesses of bulk copies and atomics."""

    COPY = "copy"  # to shared memory, by a thread
    MATRICES = "matrices"  # that a warp moves
    PRODUCT = "product"  # of matrices; its arguments begin with the words that name it
    NAMED_PRODUCT = "named product"  # one whose first argument is the instruction's name
    TENSOR_PRODUCT = "product in tensor memory"  # one whose descriptor says its shape
    LIBRARY_PRODUCT = "library product"  # one that the device library makes


Form = Callable[[str, tuple[Expr, ...]], Signature]
"""The signature of a call by its full name and its arguments, where one name has several forms."""


@dataclass(frozen=True, eq=False)
class Family:
    """Instructions that one section of a manual describes.

    name: what the manual calls them. manual: the section. signatures: by the name of the call.
    needs: what a target has to have of `Target.instructions`; empty if every target has these instructions.
    counted: what a gate counts of them; None for nothing.
    """

    name: str
    manual: str
    signatures: Mapping[str, Signature | Form]
    needs: str = ""
    counted: CountedAs | None = None
