"""Stores and bulk copies to the shared memory of other blocks of a cluster (PTX 5.1.6; 9.7.9.25.4.1)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tlcheck.execute.compile.elements import BufferElement
from tlcheck.execute.compile.program import KernelProgram
from tlcheck.execute.compile.registry import call
from tlcheck.execute.memory.cells import Cells
from tlcheck.execute.memory.codes import Computation
from tlcheck.execute.memory.frame import Frame, Mask, one_value
from tlcheck.execute.memory.places import refuse_outside
from tlcheck.execute.memory.values import Array, Value, lanes_of, nothing_in
from tlcheck.execute.ops.thread.bulk_transfers import issuers, where_in
from tlcheck.execute.ops.thread.cluster_peers import destinations, moved, store_at, used_at
from tlcheck.execute.ops.thread.mbarrier import barrier
from tlcheck.execute.schedule.agents import Flight, agents_of
from tlcheck.execute.stops import NotModelled, Unaligned
from tlcheck.snapshot.ir import Expr

_UNIT = 16  # bytes of which a copy's addresses and size are multiples


@call("ptx_cluster_store")
def store(e: Expr, program: KernelProgram) -> Computation:
    """(address, value, rank, elements further on): each thread stores a value in another block."""
    value, rank = program.code(e.args[1]), program.code(e.args[2])
    place = program.pointer(e.args[0], lanes_of(e.args[1].dtype), e.args[3] if len(e.args) > 3 else None)

    def run(frame: Frame) -> Value:
        stored = value.run(frame)
        for lanes, at in destinations(rank.run(frame), frame, program):
            with frame.narrowed(lanes):
                store_at(place, frame, stored, at)
        return 0

    return run


@dataclass(frozen=True, eq=False)
class _Copy:
    """Bytes of the shared memory of a thread's block under way to that of another one, in some worlds."""

    source: BufferElement
    target: BufferElement
    read: Array
    written: Array
    mask: Mask

    def land(self) -> None:
        """Carry it out."""
        memory, kind = self.source.memory, self.source.kind
        assert isinstance(memory, Cells)
        self.target.memory.put(self.written, memory.take(self.read, kind), self.mask, kind)


@call("tma_store_cluster")
def copy(e: Expr, program: KernelProgram) -> Computation:
    """(address there, address here, rank, bytes, mbarrier): a bulk copy to the shared memory of another block.

    TileLang's function (tl_templates/cuda/copy_sm90.h) arrives at the barrier there and announces the bytes, passes
    fence.proxy.async, then begins the copy, which completes that barrier.
    """
    target, source = program.pointer(e.args[0]), program.pointer(e.args[1])
    rank, count, done = program.code(e.args[2]), program.code(e.args[3]), barrier(e.args[4], program)
    if target.kind != source.kind:
        raise NotModelled(f"tma_store_cluster from {source.kind.name} to {target.kind.name}")
    agents, observers, late = agents_of(program.state), program.observers, program.options.late
    reason = program.state.under_way(target.name)

    def run(frame: Frame) -> Value:
        octets = one_value(count.run(frame), "the size of a bulk copy")
        for lanes, at in destinations(rank.run(frame), frame, program):
            with frame.narrowed(lanes):
                used_at(done.place, frame, at)
                named = done(frame)
                for number, mask in named.by_number:
                    observers.arrived((done.barriers.name, number), mask, at)
                for world, number, _, threads in named.each:
                    done.barriers.announce(int(at[world]), number, octets * threads)
                    done.barriers.arrive(int(at[world]), number, threads)
                observers.proxy_fence(frame.mask())
                for issuer, pick in issuers(frame):
                    made = _made(source, target, octets, issuer, pick, frame, at)
                    goals = [(int(at[w]), number) for w, number, own, _ in named.each if (own & issuer[w]).any()]
                    _begin(made, goals, issuer, at, frame)
        return 0

    def _begin(made: _Copy, goals: list[tuple[int, int]], issuer: Mask, at: Array, frame: Frame) -> None:
        origin, barriers = program.state.origin(frame), done.barriers
        observers.read(source, made.read, made.mask[None], origin, "async", by=issuer.argmax(axis=-1)[:, None])
        for number in dict.fromkeys(number for _, number in goals):
            key, coming = (barriers.name, number), source.memory.take(made.read, source.kind)
            observers.bulk_load_issued(target, made.written, made.mask, issuer, origin, key, coming, None, at)
        octets = made.read.shape[0] * source.kind.bits // 8
        for world, number in goals:
            barriers.coming[world, number] += octets

        def land() -> None:
            made.land()
            for world, number in goals:
                barriers.coming[world, number] -= octets
                barriers.expect(world, number, -octets)

        if late:
            hidden = nothing_in(target.kind, program.state.chances, reason)
            target.memory.put(made.written, hidden[at], made.mask, target.kind)
            agents.flights.append(Flight(land, barriers))
        else:
            land()

    return run


def _made(
    source: BufferElement,
    target: BufferElement,
    octets: int,
    issuer: Mask,
    pick: Callable[[Value], Value],
    frame: Frame,
    at: Array,
) -> _Copy:
    """The copy of one thread in each world. Raises Illegal for addresses and sizes that no such copy has."""
    places, mask = [], np.asarray(issuer.any(axis=-1, keepdims=True))
    world = int(np.flatnonzero(mask)[0])
    thread, line = int(issuer[world].argmax()), source.state.line
    if octets % _UNIT:
        raise Unaligned(f"bulk copy of {octets} bytes, which is no multiple of 16", line, world, thread, source.name)
    for place, verb in ((source, "bulk copy of"), (target, "bulk copy to")):
        memory, begin = place.memory, np.asarray(pick(place.address(frame)))
        if not isinstance(memory, Cells) or not memory.shared:
            raise NotModelled(f"tma_store_cluster of {place.name}")
        if (np.broadcast_to(begin, mask.shape)[mask] % _UNIT).any():
            what = f"bulk copy with an address in {place.name} that is no multiple of 16 bytes"
            raise Unaligned(what, line, world, thread, place.name)
        steps = np.arange(octets * 8 // place.kind.bits).reshape(-1, 1, 1) * place.kind.bits
        bits = np.broadcast_to(begin * 8 + steps, (len(steps), frame.worlds, 1))
        refuse_outside(place, bits[:, mask[:, 0]] // 8, place.kind, verb, (world, thread))
        places.append(where_in(memory, bits))
    return _Copy(source, target, places[0], moved(target, places[1], at), mask)
