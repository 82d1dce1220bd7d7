"""Cluster launch control: a cluster takes over another one that has not begun (PTX 9.7.13.17, clusterlaunchcontrol).

Which cluster a query gets is for the hardware to say. Here each cluster that runs gets some of those that do not, the
first ones first, and then none: at both levels of a kernel the same ones. A response is 16 bytes, which nobody but
`query_cancel` understands; it comes as bulk copies come.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np

from tlcheck.execute.compile.elements import BufferElement
from tlcheck.execute.compile.program import KernelProgram
from tlcheck.execute.compile.registry import call
from tlcheck.execute.memory.codes import Computation
from tlcheck.execute.memory.frame import Frame, Mask
from tlcheck.execute.memory.values import Array, Value, nothing_in
from tlcheck.execute.ops.thread.bulk_transfers import issuers
from tlcheck.execute.ops.thread.cluster_peers import clusters_of, destinations, moved, used_at
from tlcheck.execute.ops.thread.mbarrier import barrier
from tlcheck.execute.schedule.agents import Flight, agents_of
from tlcheck.execute.schedule.clusters import cluster_of
from tlcheck.execute.schedule.launches import grid
from tlcheck.execute.stops import NotModelled
from tlcheck.snapshot.ir import Expr

TAKEN = 2  # clusters that each one takes over at most
_OCTETS, _WORDS = 16, 4
_PARTS = {"clc_get_first_ctaid_x": 0, "clc_get_first_ctaid_y": 1, "clc_get_first_ctaid_z": 2, "clc_is_canceled": 3}
_Responses = dict[int, list[Array]]  # by the first world of a cluster: what its queries get


def _responses(program: KernelProgram) -> _Responses:
    """Made at the first use: first block and 1 for a cluster that is taken over; zeros for none."""
    state, key = program.state, "clusterlaunchcontrol"
    if key not in state.shared:
        extents, cluster = grid(program.function, program.scalars), cluster_of(program.function)
        steps = [range(0, extent, step) for extent, step in zip(reversed(extents), reversed(cluster), strict=True)]
        every, found = [(x, y, z) for z, y, x in product(*steps)], _Responses()
        for seed in dict.fromkeys(state.seeds):
            worlds = [number for number, world in enumerate(state.worlds) if world.seed == seed]
            running = {state.worlds[world].block for world in worlds}
            leaders = list(dict.fromkeys(clusters_of(program).leaders[worlds].tolist()))
            waiting = [np.array([*block, 1], np.uint32) for block in every if block not in running]
            for place, leader in enumerate(leaders):
                found[leader] = waiting[place :: len(leaders)][:TAKEN]
        state.shared[key] = found
    responses = state.shared[key]
    assert isinstance(responses, dict)
    return responses


@call("clc_try_cancel", "clc_try_cancel_multicast")
def try_cancel(e: Expr, program: KernelProgram) -> Computation:
    """(address of the response, mbarrier): each active thread asks; .multicast::cluster::all tells every block."""
    place, done = program.pointer(e.args[0], _WORDS), barrier(e.args[1], program)
    if place.kind.bits != 32:
        raise NotModelled(f"{e.value} into {place.kind.name}")
    agents, late, observers = agents_of(program.state), program.options.late, program.observers
    reason = program.state.under_way(place.name)
    ranks = range(clusters_of(program).size) if e.value == "clc_try_cancel_multicast" else None

    def run(frame: Frame) -> Value:
        responses = _responses(program)
        for issuer, _ in issuers(frame):
            found = np.zeros((_WORDS, frame.worlds, 1), np.uint32)
            for world in np.flatnonzero(issuer.any(axis=-1)).tolist():
                left = responses[int(clusters_of(program).leaders[world])]
                found[:, world, 0] = left.pop(0) if left else 0
            with frame.narrowed(issuer):
                own = np.arange(frame.worlds)
                for at in [own] if ranks is None else [at for r in ranks for _, at in destinations(r, frame, program)]:
                    _begin(frame, issuer, found, at)
        return 0

    def _begin(frame: Frame, issuer: Mask, found: Array, at: Array) -> None:
        position, _ = place.allowed(place.located(frame), frame)
        where = moved(place, place.memory.flat_position(position), at)
        mask, origin = np.asarray(issuer.any(axis=-1, keepdims=True)), program.state.origin(frame)
        used_at(done.place, frame, at)
        goals = [(int(at[world]), number) for world, number, _, _ in done(frame).each]
        for number in dict.fromkeys(number for _, number in goals):
            key = done.barriers.name, number
            observers.bulk_load_issued(place, where, mask, issuer, origin, key, found, None, at)
            observers.response_asked(key, issuer, at)
        for world, number in goals:
            done.barriers.coming[world, number] += _OCTETS

        def land() -> None:
            place.memory.put(where, found, mask, place.kind)
            for world, number in goals:
                done.barriers.coming[world, number] -= _OCTETS
                done.barriers.expect(world, number, -_OCTETS)

        if late:
            unset = nothing_in(place.kind, program.state.chances, reason)
            place.memory.put(where, unset[at], mask, place.kind)
            agents.flights.append(Flight(land, done.barriers))
        else:
            land()

    return run


@call(*_PARTS)
def query(e: Expr, program: KernelProgram) -> Computation:
    """(address of the response): whether a cluster was taken over, or its first block (query_cancel).

    TileLang's function passes fence.proxy.async after it has read.
    """
    place, part = program.pointer(e.args[0], _WORDS), _PARTS[str(e.value)]
    return _reading(place, part, program)


def _reading(place: BufferElement, part: int, program: KernelProgram) -> Callable[[Frame], Value]:
    def run(frame: Frame) -> Value:
        words = np.asarray(place.load(frame))
        program.observers.proxy_fence(frame.mask())
        found = words[part]
        return np.asarray(found.astype(np.int32) if part == _WORDS - 1 else found)

    return run
