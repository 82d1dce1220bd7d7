"""Bulk copies by the tensor memory accelerator: cp.async.bulk and cp.async.bulk.tensor (PTX 9.7.9.25.5, 9.7.9.27).

A load is under way until the mbarrier that it names has its bytes; a store until its group is waited for, and it may
read shared memory as late as that. Elements of a box that lie outside the tensor arrive as zeros, and are not stored.
What a descriptor describes: see `descriptors`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from tlcheck.execute.compile.elements import BufferElement
from tlcheck.execute.compile.program import KernelProgram
from tlcheck.execute.compile.registry import call
from tlcheck.execute.events import STORES, Observer
from tlcheck.execute.memory.cells import Cells
from tlcheck.execute.memory.codes import Code, Computation
from tlcheck.execute.memory.frame import Frame, Mask, OfLanes, one_value
from tlcheck.execute.memory.pages import Pages
from tlcheck.execute.memory.state import Origin
from tlcheck.execute.memory.values import Array, Kind, Value
from tlcheck.execute.ops.thread.bulk_transfers import Transfer, issuers, transfer_of, where_in
from tlcheck.execute.ops.thread.cluster_peers import clusters_of, destinations, used_at
from tlcheck.execute.ops.thread.descriptors import Box, Gathered, Im2col, Tiled, descriptor, refuse_unlawful
from tlcheck.execute.ops.thread.mbarrier import Barrier, Named, barrier
from tlcheck.execute.schedule.agents import Agents, Flight, agents_of
from tlcheck.execute.stops import Illegal, NotModelled, Unaligned
from tlcheck.signatures.bulk_copies import is_descriptor
from tlcheck.signatures.table import signature_of
from tlcheck.snapshot.ir import Expr

_MOST_GOALS = 64  # that are kept of a statement
_TENSOR_ALIGNED = 128  # shared addresses of copies by a tensor map (PTX 5.5.6)


def _bulk(
    frame: Frame, spots: _Spots, tensor: BufferElement, octets: int, pick: Callable[[Value], Value], line: int
) -> Box:
    """Consecutive bytes: a box of one dimension, which has to lie within the tensor."""
    width, shared = tensor.kind.bits, spots.shared
    if octets % 16:
        raise Unaligned(f"bulk copy of {octets} bytes, which is no multiple of 16", line, 0, 0, tensor.name)
    begin, inner = pick(tensor.address(frame)), pick(shared.address(frame))
    _refuse_unaligned(tensor, begin, 16)
    _refuse_unaligned(shared, inner, 16)
    steps = np.arange(octets * 8 // width).reshape(-1, 1, 1)
    elements = np.asarray(begin) * 8 // width + steps
    shape = np.broadcast_shapes(elements.shape, (1, frame.worlds, 1))
    elements = np.broadcast_to(elements, shape)
    assert isinstance(tensor.memory, Pages)
    if elements.min() < 0 or elements.max() >= tensor.memory.size:
        world = int(np.argwhere((elements < 0) | (elements >= tensor.memory.size))[0][1])
        raise Illegal(f"bulk copy of {tensor.name} out of bounds", line, world, 0, tensor.name)
    at, where = spots.at(inner, frame.worlds, lambda address: np.asarray(address) * 8 + steps * width, octets)
    return Box(elements, None, at, where)


@call("tma_load", "tma_load_im2col", "tma_load_multicast", "tma_load_gather4", formula=True)
def load(e: Expr, program: KernelProgram) -> Computation:
    """(descriptor, mbarrier, shared address, coordinates, hint) or (shared address, address, mbarrier, bytes, hint).

    A multicast has a mask of ranks after the shared address: the same copy for each of these blocks, to the same place
    in its shared memory, which completes the same barrier there (PTX 9.7.9.27.1, .multicast::cluster). One of two
    blocks (.cta_group::2) completes the barrier of the block with the even rank of a pair.
    """
    agents, late, goes_to = agents_of(program.state), program.options.late, _goes_to(e, program)
    by_map = is_descriptor(e.args[0])
    box, shared, tensor_place, done = _load_by_map(e, program) if by_map else _load_bulk(e, program)
    reason = program.state.under_way(shared.name)

    issued_by, goals_of = OfLanes(lambda frame: list(issuers(frame))), _GoalsOf()
    watched = program.observers.hear(Observer.bulk_load_issued, Observer.read)

    def run(frame: Frame) -> Value:
        done.used_by_copies(frame)
        named = done(frame)
        for mask, pick in issued_by.of(frame):
            goals = goals_of.of(named, mask)
            whole = transfer_of(shared, tensor_place, box(frame, pick), mask, frame)
            origin, coming = program.state.origin(frame), None
            if watched and program.observers.covers(tensor_place):
                program.observers.read(tensor_place, whole.positions, whole.chosen, origin, by=whole.by)
            elif watched and program.options.plain:
                coming = whole.coming
            for destination in [None] if goes_to is None else goes_to(mask):
                at = None if destination is None else destination.barriers
                if at is not None:
                    with frame.narrowed(mask):
                        used_at(done.place, frame, at)
                transfer = whole if destination is None else destination.of(whole)
                goal = [(w if at is None else int(at[w]), number) for w, number in goals.barriers]
                for number, worlds, lanes in goals.by_number if watched else ():
                    key, unsure = (done.barriers.name, number), done.barriers.unsure[:, number]
                    later = unsure.copy() if unsure.any() else None
                    where = transfer.where
                    program.observers.bulk_load_issued(shared, where, worlds, lanes, origin, key, coming, later, at)
                for world, number in goal:
                    done.barriers.coming[world, number] += transfer.octets
                land = _landing(transfer, done, goal)
                if late:
                    transfer.hide(program, reason)
                    agents.flights.append(Flight(land, done.barriers))
                else:
                    land()
        return 0

    return run


@dataclass(frozen=True, eq=False)
class _Destination:
    """A record of where the copies of some blocks go, and whose barriers they complete: the worlds, (worlds,), of each
    world.
    """

    data: Array
    barriers: Array

    def of(self, transfer: Transfer) -> Transfer:
        """A copy with its elements in the other blocks' shared memory."""
        further = (self.data - np.arange(len(self.data))).reshape(1, -1, 1)
        return transfer if not further.any() else transfer.moved(further)


def _goes_to(e: Expr, program: KernelProgram) -> Callable[[Mask], list[_Destination]] | None:
    """The destinations of the copies of issuing threads; None for the own block."""
    in_pairs = dict(e.annotations).get("use_2cta", "0") not in ("0", "False")
    if e.value != "tma_load_multicast":
        return (lambda mask: [_to_leader(mask, program)]) if in_pairs else None
    if in_pairs:
        raise NotModelled("tma_load_multicast of two blocks (cta_group::2)")
    word = e.args[3]
    if word.op != "int" or not isinstance(word.value, int):
        raise NotModelled("tma_load_multicast with a mask that varies")
    ranks = [rank for rank in range(16) if word.value >> rank & 1]

    def each(mask: Mask) -> list[_Destination]:
        frame = Frame({}, mask.shape[0], mask.shape[1], mask)
        found = [at for rank in ranks for _, at in destinations(rank, frame, program)]
        return [_Destination(at, at) for at in found]

    return each


def _to_leader(mask: Mask, program: KernelProgram) -> _Destination:
    clusters, own = clusters_of(program), np.arange(len(mask))
    pair = own.copy()
    for world in np.flatnonzero(mask.any(axis=-1)).tolist():
        pair[world] = clusters.world(world, int(clusters.rank[world]) & ~1)
    return _Destination(own, pair)


@dataclass(frozen=True, eq=False)
class _Goals:
    """The barriers that copies complete, (world, number), and for each number the worlds and the lanes that say so."""

    barriers: list[tuple[int, int]]
    by_number: list[tuple[int, Mask, Mask]]

    @classmethod
    def made(cls, named: Named, issuer: Mask) -> _Goals:
        barriers = [(world, number) for world, number, lanes, _ in named.each if (issuer[world] & lanes).any()]
        by_number = []
        for number in dict.fromkeys(number for _, number in barriers):
            those = np.zeros((len(issuer), 1), np.bool_)
            those[[world for world, other in barriers if other == number]] = True
            by_number.append((number, issuer.any(axis=-1, keepdims=True) & those, issuer & those))
        return cls(barriers, by_number)


class _GoalsOf:
    """The goals of the copies of one statement: the same objects for the same barriers and lanes."""

    def __init__(self) -> None:
        self._kept: dict[tuple[int, int], tuple[Named, Mask, _Goals]] = {}

    def of(self, named: Named, issuer: Mask) -> _Goals:
        key = id(named), id(issuer)
        if key not in self._kept:
            if len(self._kept) >= _MOST_GOALS:
                self._kept.clear()
            self._kept[key] = named, issuer, _Goals.made(named, issuer)
        return self._kept[key][2]


def _landing(transfer: Transfer, done: Barrier, barriers: list[tuple[int, int]]) -> Callable[[], None]:
    def land() -> None:
        transfer.load()
        for world, number in barriers:
            done.barriers.coming[world, number] -= transfer.octets
            done.barriers.expect(world, number, -transfer.octets)

    return land


Boxes = Callable[[Frame, Callable[[Value], Value]], Box]


def _load_by_map(e: Expr, program: KernelProgram) -> tuple[Boxes, BufferElement, BufferElement, Barrier]:
    map_ = _map(e, program)
    shared = program.pointer(e.args[2])
    coordinates = [program.code(a) for a in _from_coordinates(e)[: map_.coordinates]]
    return _boxes(map_, shared, coordinates), shared, map_.tensor.place, barrier(e.args[1], program)


def _map(e: Expr, program: KernelProgram) -> Tiled | Im2col:
    found = descriptor(e.args[0], program)
    return Gathered.of(found) if e.value in ("tma_load_gather4", "tma_store_scatter4") else found


def _from_coordinates(e: Expr) -> tuple[Expr, ...]:
    """The arguments of a copy by a tensor map, from the first coordinate on."""
    signature = signature_of(e)
    if signature is None or signature.coordinates is None:
        raise NotModelled(f"the coordinates of {e.value}")
    return e.args[signature.coordinates :]


def _boxes(map_: Tiled | Im2col, shared: BufferElement, coordinates: list[Code]) -> Boxes:
    tensor = map_.tensor.place
    spots = _Spots(shared, map_.tensor.held)
    examined = False

    def box(frame: Frame, pick: Callable[[Value], Value]) -> Box:
        nonlocal examined
        if not examined:
            refuse_unlawful(map_, frame)
        examined = True
        at = pick(shared.address(frame))
        _refuse_unaligned(shared, at, _TENSOR_ALIGNED)
        bits, where = spots.at(at, frame.worlds, map_.bits)
        starts = [pick(c.run(frame)) for c in coordinates]
        if isinstance(map_, Tiled):
            # the manual does not say so: an H100 stops where a box begins between two units of 16 bytes of a row
            what = f"bulk copy of a box of {tensor.name} whose innermost coordinate is no multiple of 16 bytes"
            _refuse_any(tensor, np.asarray(starts[0]) * tensor.kind.bits % 128 != 0, what)
        return replace(map_.at(frame, starts, bits), where=where, held=map_.tensor.held)

    return box


@dataclass(frozen=True, eq=False)
class _Spots:
    """A record of where copies of a kind go to in shared memory, or come from: the same arrays for the same addresses
    in bounds.

    Plainly each copy has its own, by which a tracer knows it.
    """

    shared: BufferElement
    kind: Kind
    kept: dict[tuple[bytes, int], tuple[Array, Array | None]] = field(default_factory=dict)

    def at(
        self, address: Value, worlds: int, bits_of: Callable[[Value], Array], size: int = 0
    ) -> tuple[Array, Array | None]:
        """The bits of a copy at an address, and its flat positions, if others may have the same.

        size: of the copy, where it may vary.
        """
        memory, key = self.shared.memory, (np.asarray(address).tobytes(), size)
        bits = None if key in self.kept else bits_of(address)
        if bits is not None:
            bits = np.broadcast_to(bits, (len(bits), worlds, 1))
            if self.shared.state.options.plain or not isinstance(memory, Cells):
                return bits, None
            if bits.min() < 0 or bits.max() // self.kind.bits >= memory.room(self.kind, 0):
                return bits, None
            self.kept[key] = bits, where_in(memory, bits)
        return self.kept[key]


def _refuse_unaligned(place: BufferElement, address: Value, octets: int) -> None:
    """Raise Unaligned where a copy's address is no multiple of so many bytes."""
    what = f"bulk copy with an address in {place.name} that is no multiple of {octets} bytes"
    _refuse_any(place, np.asarray(address) % octets != 0, what)


def _refuse_any(place: BufferElement, unaligned: Array, what: str) -> None:
    """Raise Unaligned with the first world in which a copy is, if there is one."""
    found = np.argwhere(np.atleast_2d(unaligned))
    if len(found):
        raise Unaligned(what, place.state.line, int(found[0][-2]), 0, place.name)


def _load_bulk(e: Expr, program: KernelProgram) -> tuple[Boxes, BufferElement, BufferElement, Barrier]:
    shared, tensor, count = program.pointer(e.args[0]), program.pointer(e.args[1]), program.code(e.args[3])
    return _runs(shared, tensor, count, program), shared, tensor, barrier(e.args[2], program)


def _runs(shared: BufferElement, tensor: BufferElement, count: Code, program: KernelProgram) -> Boxes:
    spots = _Spots(shared, tensor.kind)

    def box(frame: Frame, pick: Callable[[Value], Value]) -> Box:
        octets = one_value(pick(count.run(frame)), "the size of a bulk copy")
        return _bulk(frame, spots, tensor, octets, pick, program.state.line)

    return box


@dataclass(eq=False)
class _Stores:
    """Stores that are not in a group yet, and groups of stores: (issuing lanes, copies).

    A group is kept until it is waited for; where the kernel has waits without `.read` (`ends`), until one of these.
    """

    open: list[tuple[Mask, _Leaving]] = field(default_factory=list)
    groups: list[tuple[Mask, list[tuple[Flight, _Leaving]]]] = field(default_factory=list)
    ends: bool = False

    @classmethod
    def of(cls, program: KernelProgram) -> _Stores:
        found = program.state.shared.setdefault("tma_store", cls())
        assert isinstance(found, cls)
        return found

    def commit(self, lanes: Mask, agents: Agents) -> None:
        """Make a group of the open copies of these lanes."""
        mine = [entry for entry in self.open if (entry[0] & lanes).any()]
        self.open = [entry for entry in self.open if not any(entry is m for m in mine)]
        copies = [(Flight(leaving.land, self), leaving) for _, leaving in mine]
        agents.flights += [flight for flight, _ in copies]
        self.groups.append((np.array(lanes), copies))

    def wait(self, newest: int, lanes: Mask, agents: Agents, *, reads: bool) -> None:
        """Land all groups of these lanes but the newest. reads: only what they read is waited for."""
        mine = [group for group in self.groups if (group[0] & lanes).any()]
        due = mine[: len(mine) - newest] if newest else mine
        landing = {id(flight) for _, copies in due for flight, _ in copies}
        agents.land(lambda flight: id(flight) in landing)
        if not reads:
            for leaving in (leaving for _, copies in due for _, leaving in copies):
                leaving.end()
        if not (reads and self.ends):
            self.groups = [group for group in self.groups if not any(group is d for d in due)]


@call("tma_store", "tma_store_scatter4", formula=True)
def store(e: Expr, program: KernelProgram) -> Computation:
    """(descriptor, shared address, coordinates, whether to add, hint), or (address, shared address, bytes, ...). One to
    four rows (tma_store_scatter4) never adds.

    Older releases have the two addresses of a bulk store in the other order.
    """
    first = e.args[0]
    if is_descriptor(first):
        map_ = _map(e, program)
        shared, tensor, args = program.pointer(e.args[1]), map_.tensor.place, _from_coordinates(e)
        box = _boxes(map_, shared, [program.code(a) for a in args[: map_.coordinates]])
        flags = () if isinstance(map_, Gathered) else args[map_.coordinates :]
    else:
        shared, tensor = program.pointer(e.args[1]), program.pointer(e.args[0])
        if isinstance(program.state.memory.get(shared.root), Pages):
            shared, tensor = tensor, shared
        box, flags = _runs(shared, tensor, program.code(e.args[2]), program), e.args[3:]
    adds, stores = bool(flags and flags[0].value), _Stores.of(program)
    counted = program.observers.hear(Observer.bulk_store_begun)

    def run(frame: Frame) -> Value:
        for mask, pick in issuers(frame):
            transfer = transfer_of(shared, tensor, box(frame, pick), mask, frame)
            leaving = _Leaving(transfer, shared, tensor, adds, program.state.origin(frame))
            leaving.look()
            if counted:
                program.observers.bulk_store_begun(
                    tensor, transfer.positions, transfer.chosen, shared, transfer.octets, mask, adds
                )
            stores.open.append((mask, leaving))
        return 0

    return run


@dataclass(frozen=True, eq=False)
class _Leaving:
    """A store; the thread that issued it reads shared memory, as late as it may, or at once."""

    transfer: Transfer
    shared: BufferElement
    tensor: BufferElement
    adds: bool
    origin: Origin

    def look(self) -> None:
        """Note what it reads."""
        observers = self.shared.observers
        observers.read(self.shared, self.transfer.where, self.transfer.issuer, self.origin, "async")

    def land(self) -> None:
        """Carry it out."""
        self.look()
        transfer, observers = self.transfer, self.shared.observers
        positions, chosen, watched = transfer.positions, transfer.chosen, observers.covers(self.tensor)
        values = transfer.values if watched and not self.adds else None
        if watched:
            observers.bulk_store_issued(self.tensor, positions, chosen, self.origin, values, transfer.by)
        observers.landing(self.origin)
        if self.adds and observers.hear(Observer.added):
            self._tell_terms()
        (transfer.add if self.adds else transfer.store)()
        if values is not None:  # copies of several blocks may have landed at once
            observers.written(self.tensor, positions, chosen, self.origin, values)

    def _tell_terms(self) -> None:
        """Publish what it adds, by the threads that issued it."""
        transfer = self.transfer
        values = transfer.values
        chosen = np.broadcast_to(transfer.chosen, values.shape)
        worlds = np.arange(len(transfer.by)).reshape(1, -1, 1)
        worlds, threads = (np.broadcast_to(each, values.shape)[chosen] for each in (worlds, transfer.by))
        cells = transfer.positions[chosen]
        self.shared.observers.added(transfer.pages, cells, values[chosen], worlds, threads, self.origin)

    def end(self) -> None:
        """Note that the thread that issued it has waited for what it writes."""
        observers = self.shared.observers
        if observers.covers(self.tensor):
            observers.copy_landed(self.tensor, self.transfer.positions, self.transfer.chosen, self.transfer.by)


@call("tma_store_arrive", formula=True)
def commit(e: Expr, program: KernelProgram) -> Computation:
    """cp.async.bulk.commit_group."""
    stores, agents = _Stores.of(program), agents_of(program.state)

    def run(frame: Frame) -> Value:
        stores.commit(frame.mask(), agents)
        return 0

    return run


@call("tma_store_wait", formula=True)
def wait(e: Expr, program: KernelProgram) -> Computation:
    """cp.async.bulk.wait_group.read n: at most n groups of the thread still read; without an argument, none.

    A second argument that is 0 leaves the `.read` out: what they write is waited for as well.
    """
    newest = int(e.args[0].value or 0) if e.args else 0
    reads = len(e.args) < 2 or bool(e.args[1].value)
    stores, agents = _Stores.of(program), agents_of(program.state)
    stores.ends |= not reads

    def run(frame: Frame) -> Value:
        stores.wait(newest, frame.mask(), agents, reads=reads)
        program.observers.operations_awaited(STORES, newest, frame.mask(), reads)
        return 0

    return run
