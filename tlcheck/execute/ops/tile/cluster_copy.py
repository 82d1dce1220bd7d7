"""T.copy_cluster, and T.tma_copy to several blocks (TileLang, language/copy_op.py).

With `dst_block` a tile goes to the shared memory of another block of the cluster, which waits at the barrier that is
named, if one is. With `cluster_mask` the block of the lowest rank in the mask copies its tile to all blocks in it; the
others in it wait for that, or with T.tma_copy their barrier does. Blocks outside of the mask copy for themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tlcheck.execute.compile.program import KernelProgram
from tlcheck.execute.memory.codes import Computation
from tlcheck.execute.memory.frame import Frame, Mask
from tlcheck.execute.memory.values import Array, converted
from tlcheck.execute.ops.thread.cluster_peers import clusters_of, destinations, moved, used_at
from tlcheck.execute.ops.thread.mbarrier import Barrier, barrier
from tlcheck.execute.ops.tile.regions import Tile, block_frame
from tlcheck.execute.schedule.agents import agents_of
from tlcheck.execute.stops import NotModelled
from tlcheck.snapshot.ir import Expr

_MOST_RANKS = 16


def to_a_block(e: Expr, source: Tile, target: Tile, program: KernelProgram) -> Computation:
    """Copy a tile to the rank that `dst_block` names, and arrive once at the barrier there."""
    computed = dict(e.computed)
    rank = program.code(computed["dst_block"] if "dst_block" in computed else _number(e, "dst_block"))
    done = barrier(computed["barrier"], program) if "barrier" in computed else None

    def run(frame: Frame) -> int:
        values = _values(source, target, frame, program)
        for lanes, at in destinations(rank.run(frame), frame, program):
            with frame.narrowed(lanes):
                _write(target, block_frame(frame), values, at)
                if done is not None:
                    _arrive(done, frame, at, program)
        return 0

    return run


def _number(e: Expr, note: str) -> Expr:
    """A constant that a copy notes."""
    return Expr("int", "int32", value=int(dict(e.annotations)[note]))


def _values(source: Tile, target: Tile, frame: Frame, program: KernelProgram) -> Array:
    if source.differs(frame) or target.differs(frame):
        raise NotModelled("copy to another block by single threads")
    inner = block_frame(frame)
    return np.asarray(converted(source.read(inner), source.kind, target.kind, program.options.exact))


def _write(target: Tile, inner: Frame, values: Array, at: Array) -> None:
    """Write a tile in the shared memory of other blocks."""
    place, located, mask = target.place, target.place.located(inner), target.mask(inner)
    where = moved(place, place.memory.flat_position(located.position), at)
    place.observers.tile_accessed(place, where, mask, inner.lanes, values)
    place.memory.put(where, values, mask, target.kind)
    place.observers.tile_written(place, where, mask, inner.lanes, values)


def _arrive(done: Barrier, frame: Frame, at: Array, program: KernelProgram) -> None:
    """The copy is complete: once in each block."""
    used_at(done.place, frame, at)
    named = done(frame)
    for number, mask in named.by_number:
        program.observers.arrived((done.barriers.name, number), mask, at)
    for world, number, _, _ in named.each:
        done.barriers.arrive(int(at[world]), number, 1)


@dataclass(frozen=True, eq=False)
class _Multicast:
    """A tile that the first of some ranks brings to all of them. brought, taken: how often to each block, and how often
    it has waited for that, (worlds,).
    """

    source: Tile
    target: Tile
    ranks: Sequence[int]
    done: Barrier | None
    program: KernelProgram
    brought: Array
    taken: Array

    @property
    def key(self) -> object:
        return "multicast", id(self)

    def bring(self, frame: Frame) -> None:
        """Copy the tile to all."""
        program, inner = self.program, block_frame(frame)
        values = _values(self.source, self.target, frame, program)
        self.target.write(inner, values)
        for other in self.ranks[1:]:
            for mask, at in destinations(other, frame, program):
                _write(self.target, inner, values, at)
                self._tell(frame, mask, at)

    def _tell(self, frame: Frame, mask: Mask, at: Array) -> None:
        """The tile is there: the block goes on, or its barrier has what it waits for."""
        observers, done = self.program.observers, self.done
        if done is None:
            observers.arrived(self.key, mask, at)
            for world in at[mask.any(axis=-1)].tolist():
                self.brought[world] += 1
                observers.phase_ended(self.key, world)
            return
        for number, lanes in done(frame).by_number:
            observers.arrived((done.barriers.name, number), lanes, at)
        for world, number, _, _ in done(frame).each:
            done.barriers.expect(int(at[world]), number, -1)

    def take(self, frame: Frame) -> None:
        """Wait for the tile, or have the barrier wait for it."""
        if self.done is not None:
            for world, number, _, _ in self.done(frame).each:
                self.done.barriers.announce(world, number, 1)
            return
        mask, state = np.array(frame.mask()), self.program.state
        worlds = np.flatnonzero(mask.any(axis=-1))
        self.taken[worlds] += 1
        due = self.taken[worlds]

        def ready() -> bool:
            return bool((self.brought[worlds] >= due).all())

        def what() -> str:
            return f"waits for {self.target.name}, which another block copies to it"

        agents_of(state).wait(ready, what, state.at, frame)
        self.program.observers.acquired(self.key, mask)


def to_several(e: Expr, source: Tile, target: Tile, program: KernelProgram) -> Computation:
    """Copy a tile to all blocks in `cluster_mask`."""
    word = int(dict(e.annotations)["cluster_mask"])
    ranks = [rank for rank in range(_MOST_RANKS) if word >> rank & 1]
    done = barrier(dict(e.computed)["barrier"], program) if e.value == "tma_copy" else None
    brought, taken = np.zeros((2, len(program.state.worlds)), np.int64)
    copy, rank = _Multicast(source, target, ranks, done, program, brought, taken), clusters_of(program).rank[:, None]
    groups = ~np.isin(rank, ranks), rank == ranks[0], np.isin(rank, ranks[1:])

    def alone(frame: Frame) -> None:
        target.write(block_frame(frame), _values(source, target, frame, program))

    def run(frame: Frame) -> int:
        for group, act in zip(groups, (alone, copy.bring, copy.take), strict=True):
            active = frame.among(group)
            if active is None or active.any():
                with frame.narrowed(active):
                    act(frame)
        return 0

    return run
