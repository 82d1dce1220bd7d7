"""mbarrier: barriers in shared memory that count arrivals and bytes (PTX 9.7.13.15).

A phase of a barrier ends when as many threads have arrived as it was made for and all announced bytes have come; bytes
may come before they are announced. A wait for parity p goes on once the phase of that parity has ended: a fresh barrier
lets parity 1 pass.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod

import numpy as np

from tlcheck.execute.compile.elements import BufferElement
from tlcheck.execute.compile.program import KernelProgram
from tlcheck.execute.compile.registry import annotation, call
from tlcheck.execute.events import Observer, Observers
from tlcheck.execute.memory.codes import Code, Computation
from tlcheck.execute.memory.frame import Frame, Mask, one_value
from tlcheck.execute.memory.values import Array, Value
from tlcheck.execute.ops.thread.cluster_peers import destinations, used_at
from tlcheck.execute.schedule.agents import agents_of
from tlcheck.execute.stops import Illegal, NotModelled, Overrun, SourceUnclear
from tlcheck.snapshot.ir import Block, Expr

_ROOM = 1024  # barriers of get_mbarrier, whose number older releases may not declare
_MOST_KEPT = 64


@dataclass(frozen=True, eq=False)
class Named:
    """The barriers that active lanes name.

    each: world, number, lanes of that world, and how many these are. by_number: the lanes that name a barrier, in all
    worlds, (worlds, lanes).
    """

    each: list[tuple[int, int, Mask, int]]
    by_number: list[tuple[int, Mask]]

    @classmethod
    def of(cls, found: list[tuple[int, int, Mask]], shape: tuple[int, ...]) -> Named:
        by_number: dict[int, Mask] = {}
        for world, number, lanes in found:
            by_number.setdefault(number, np.zeros(shape, np.bool_))[world] = lanes
        return cls([(*about, int(about[2].sum())) for about in found], list(by_number.items()))


@dataclass(eq=False)
class Barriers:
    """The barriers of one buffer in all worlds, arrays (worlds, barriers): threads that arrive in a phase, those that
    still have to, bytes still to come (negative if not announced yet), phases that have ended, bytes of bulk copies
    that are under way. unsure: whether bytes were announced when such copies were all that the phase still waited for:
    it may have ended before."""

    name: str
    count: Array
    pending: Array
    bytes: Array
    phase: Array
    coming: Array
    unsure: Array
    observers: Observers

    @classmethod
    def of(cls, program: KernelProgram, name: str, room: int = _ROOM) -> Barriers:
        """The barriers of a buffer, made at their first use. room: how many there are."""
        key = f"mbarrier {name}"
        if key not in program.state.shared:
            shape = (len(program.state.worlds), room)
            count, pending, octets, phase, coming = (np.zeros(shape, np.int64) for _ in range(5))
            unsure = np.zeros(shape, np.bool_)
            program.state.shared[key] = cls(name, count, pending, octets, phase, coming, unsure, program.observers)
        found = program.state.shared[key]
        assert isinstance(found, Barriers)
        return found

    @property
    def room(self) -> int:
        """The number of barriers."""
        return int(self.count.shape[1])

    def make(self, world: int, place: int, count: int) -> None:
        """A fresh barrier for `count` arrivals."""
        self.count[world, place] = self.pending[world, place] = count
        self.bytes[world, place] = self.phase[world, place] = 0

    def arrive(self, world: int, place: int, times: int) -> None:
        """`times` threads arrive; each phase takes its number of them."""
        while times > 0:
            taken = min(times, int(self.pending[world, place]))
            if taken <= 0:
                raise Overrun(f"more threads arrive at {self.name}[{place}] than it is made for", 0, world, 0)
            self.pending[world, place] -= taken
            times -= taken
            self._end(world, place)

    def announce(self, world: int, place: int, count: int) -> None:
        """Bytes are to come."""
        at = world, place
        self.unsure[at] |= not self.pending[at] and 0 < self.bytes[at] <= self.coming[at]
        self.bytes[at] += count

    def expect(self, world: int, place: int, count: int) -> None:
        """Announce bytes, or with a negative count let them come."""
        self.bytes[world, place] += count
        self._end(world, place)

    def _end(self, world: int, place: int) -> None:
        if self.count[world, place] and not self.pending[world, place] and not self.bytes[world, place]:
            self.phase[world, place] += 1
            self.unsure[world, place] = False
            self.pending[world, place] = self.count[world, place]
            self.observers.phase_ended((self.name, place), world)


@dataclass(frozen=True, eq=False)
class Barrier:
    """The barrier that an argument names: an element of a buffer, or get_mbarrier(number) of older releases.

    place: where it is, as far as the kernel declares that.
    """

    barriers: Barriers
    index: Code
    place: BufferElement | None = None
    kept: dict[tuple[int, int], tuple[Mask | None, Named]] = field(default_factory=dict)

    def used(self, frame: Frame) -> None:
        """Publish that active threads use the barrier: whoever makes it has to have done so before."""
        if self.place is not None and self.barriers.observers.hear(Observer.atomic):
            position, _ = self.place.position(frame)
            self.barriers.observers.atomic(self.place, position, frame.mask(), self.place.state.origin(frame))

    def used_by_copies(self, frame: Frame) -> None:
        """Publish that bulk copies of active threads will complete the barrier."""
        self.used(frame)
        if self.place is not None and self.barriers.observers.hear(Observer.proxy_crossed):
            position, _ = self.place.position(frame)
            self.barriers.observers.proxy_crossed(self.place, position, frame.mask(), self.place.state.origin(frame))

    def __call__(self, frame: Frame) -> Named:
        """The barriers that active lanes name: found once for one number and the same lanes."""
        index = self.index.run(frame)
        if isinstance(index, np.ndarray) or not 0 <= index < self.barriers.room:
            return self._several(frame.mask(), index)
        key = int(index), id(frame.active)
        if key not in self.kept:
            if len(self.kept) >= _MOST_KEPT:
                self.kept.clear()
            mask = frame.mask()
            worlds = np.flatnonzero(mask.any(axis=-1)).tolist()
            self.kept[key] = frame.active, Named.of([(world, key[0], mask[world]) for world in worlds], mask.shape)
        return self.kept[key][1]

    def of_blocks(self, frame: Frame) -> list[tuple[int, int]]:
        """World and number of the barrier that each block names. Raises SourceUnclear where its threads differ."""
        found = [(world, number) for world, number, _, _ in self(frame).each]
        if len({world for world, _ in found}) < len(found):
            raise SourceUnclear("the number of an mbarrier differs between threads")
        return found

    def _several(self, mask: Mask, index: Value) -> Named:
        """Lanes of a world may name different ones."""
        numbers = np.broadcast_to(np.asarray(index), mask.shape)
        found = []
        for world in np.flatnonzero(mask.any(axis=-1)).tolist():
            for number in np.unique(numbers[world][mask[world]]).tolist():
                if not 0 <= number < self.barriers.room:
                    raise Illegal(f"{self.barriers.name}[{number}] is out of bounds", 0, world, 0)
                found.append((world, int(number), mask[world] & (numbers[world] == number)))
        return Named.of(found, mask.shape)


def barrier(e: Expr, program: KernelProgram) -> Barrier:
    """The barrier that an argument names. Raises NotModelled for another form."""
    while e.op == "call" and e.value in ("address_of", "access_ptr"):
        e = e.args[0]
    if e.op == "load" and e.buffer is not None and len(e.args) == 1:
        barriers = _declared_at(e.buffer.data, e.buffer.name, program)
        return Barrier(barriers, program.code(e.args[0]), program.place(e.buffer, e.args))
    if e.op == "call" and e.value == "tvm_access_ptr":
        return _pointed(e, program)
    if e.op == "call" and e.value == "get_mbarrier":
        return Barrier(Barriers.of(program, "mbarrier"), program.code(e.args[0]))
    if e.op == "int":  # what releases up to 0.1.8 write before they have made barriers, and some kernels keep
        raise NotModelled("a bulk copy that names no mbarrier")
    raise NotModelled(f"mbarrier {e.value or e.op}")


def _pointed(e: Expr, program: KernelProgram) -> Barrier:
    """The barrier at an address: (type, pointer, offset, extent, access)."""
    pointer = e.args[1]
    declared = program.pointers.declared(pointer)
    if declared is None or not declared.scope.endswith("barrier"):
        raise NotModelled("mbarrier tvm_access_ptr")
    return Barrier(_declared_at(pointer, declared.name, program), program.code(e.args[2]), program.pointer(e))


def _declared_at(pointer: Expr, name: str, program: KernelProgram) -> Barriers:
    """The barriers of the buffer that is declared at a pointer variable."""
    declared = program.pointers.declared(pointer)
    sizes = () if declared is None else [n.value for n in declared.shape]
    room = prod(n if isinstance(n, int) else _ROOM for n in sizes) if sizes else _ROOM
    return Barriers.of(program, f"{name}#{program.pointers.root(pointer.uid)}", room)


@call("ptx_init_barrier_thread_count", formula=True)
def init(e: Expr, program: KernelProgram) -> Computation:
    """mbarrier.init: (barrier, number of arrivals). Making one that is there is undefined (PTX, "mbarrier.init")."""
    which, count = barrier(e.args[0], program), program.code(e.args[1])

    def run(frame: Frame) -> Value:
        arrivals = one_value(count.run(frame), "the number of arrivals at an mbarrier")
        if which.place is not None:
            which.place.store(frame, np.uint64(arrivals))
        for world, number, lanes, count_of in which(frame).each:
            if count_of > 1:
                name, second = which.barriers.name.split("#")[0], int(np.flatnonzero(lanes)[1])
                raise Illegal(f"several threads make {name}[{number}]", program.state.line, world, second, name)
            which.barriers.make(world, number, arrivals)
        return 0

    return run


@call("create_barriers", "create_list_of_mbarrier", formula=True)
def create(e: Expr, program: KernelProgram) -> Computation:
    """Declares the barriers of get_mbarrier; with several arguments these are the numbers of arrivals."""
    counts = [program.code(a) for a in e.args] if e.value == "create_list_of_mbarrier" else []

    def run(frame: Frame) -> Value:
        for number, count in enumerate(counts):
            for world in range(frame.worlds):
                Barriers.of(program, "mbarrier").make(world, number, int(count.run(frame)))
        return 0

    return run


@annotation("barrier_init")
def declared(block: Block, program: KernelProgram) -> None:
    """Make the barriers whose counts stand, before device-tir, at the block that allocates them."""
    for data, counts in block.barriers:
        barriers = _declared_at(data, str(data.value), program)
        for number, count in enumerate(counts):
            if count.op != "int":
                raise NotModelled("barrier_init of unknown counts")
            for world in range(len(program.state.worlds)):
                barriers.make(world, number, int(count.value or 0))


@call("ptx_arrive_barrier", "mbarrier_arrive", formula=True)
def arrive(e: Expr, program: KernelProgram) -> Computation:
    """mbarrier.arrive: each active thread arrives once."""
    if len(e.args) > 1:
        raise NotModelled(f"{e.value} of another block")
    which = barrier(e.args[0], program)

    def run(frame: Frame) -> Value:
        which.used(frame)
        named = which(frame)
        release(program, which.barriers, named)
        for world, number, _, threads in named.each:
            which.barriers.arrive(world, number, threads)
        return 0

    return run


@call("ptx_arrive_cluster_barrier", formula=True)
def arrive_at(e: Expr, program: KernelProgram) -> Computation:
    """(barrier, rank): each active thread arrives once at the barrier of another block of its cluster, or its own.

    What it did before is over for those who wait there, as CUTLASS and TileLang rely on (`ClusterBarrier::arrive`).
    """
    which, rank = barrier(e.args[0], program), program.code(e.args[1])

    def run(frame: Frame) -> Value:
        for lanes, at in destinations(rank.run(frame), frame, program):
            with frame.narrowed(lanes):
                used_at(which.place, frame, at)
                named = which(frame)
                for number, mask in named.by_number:
                    program.observers.arrived((which.barriers.name, number), mask, at)
                for world, number, _, threads in named.each:
                    which.barriers.arrive(int(at[world]), number, threads)
        return 0

    return run


@call("mbarrier_expect_tx", "ptx_arrive_barrier_expect_tx", "mbarrier_arrive_expect_tx", formula=True)
def expect(e: Expr, program: KernelProgram) -> Computation:
    """mbarrier.expect_tx: bytes are announced, by each active thread; the other two arrive as well."""
    if len(e.args) != 2:
        raise NotModelled(f"{e.value} of another block")
    which, count = barrier(e.args[0], program), program.code(e.args[1])
    arrives = e.value != "mbarrier_expect_tx"

    def run(frame: Frame) -> Value:
        which.used(frame)
        announced = one_value(count.run(frame), "the bytes announced to an mbarrier")
        named = which(frame)
        if arrives:
            release(program, which.barriers, named)
        for world, number, _, threads in named.each:
            which.barriers.announce(world, number, announced * threads)
            if arrives:
                which.barriers.arrive(world, number, threads)
        return 0

    return run


@call("mbarrier_wait_parity", formula=True)
def wait(e: Expr, program: KernelProgram) -> Computation:
    """mbarrier.try_wait.parity, until it succeeds: (barrier, parity)."""
    which, parity = barrier(e.args[0], program), program.code(e.args[1])
    name, agents = which.barriers.name.partition("#")[0], agents_of(program.state)

    def run(frame: Frame) -> Value:
        which.used(frame)
        named, phase = which(frame), which.barriers.phase
        due = _sought(parity.run(frame), named, frame)

        def ready() -> bool:
            return all((int(phase[w, n]) & 1) != p for w, n, p in due)

        def what() -> str:
            return "waits at " + ", ".join(sorted({_awaited(name, which.barriers, *one) for one in due}))

        agents.wait(ready, what, program.state.at, frame, which.barriers, name)
        for number, mask in named.by_number:
            key = which.barriers.name, number
            program.observers.acquired(key, mask)
            program.observers.phase_waited(key, mask, id(e))
        return 0

    return run


def _awaited(name: str, barriers: Barriers, world: int, number: int, parity: int) -> str:
    """`full[0] for parity 0, where 64 of 128 arrivals have come`."""
    count, pending = int(barriers.count[world, number]), int(barriers.pending[world, number])
    return f"{name}[{number}] for parity {parity}, where {count - pending} of {count} arrivals have come"


def _sought(parity: Value, named: Named, frame: Frame) -> list[tuple[int, int, int]]:
    """World, number and parity of each barrier that is waited for."""
    if not isinstance(parity, np.ndarray):
        return [(world, number, int(parity) & 1) for world, number, _, _ in named.each]
    sought = np.broadcast_to(parity, (frame.worlds, frame.lanes))
    return [(world, number, int(sought[world][lanes][0]) & 1) for world, number, lanes, _ in named.each]


def release(program: KernelProgram, barriers: Barriers, named: Named) -> None:
    """Publish that these threads arrive."""
    for number, mask in named.by_number:
        program.observers.arrived((barriers.name, number), mask)
