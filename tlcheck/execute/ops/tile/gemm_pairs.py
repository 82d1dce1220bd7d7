"""T.tcgen05_gemm of two blocks (use_2cta): each has rows of A and C, half of the columns of B (TileLang, gemm_op.py).

The block of the even rank says so for both. The sums of each block become its A times both halves of B, side by side.
Whether the author waits for it is not looked at in the source: another block may do so.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tlcheck.execute.compile.program import KernelProgram
from tlcheck.execute.memory.codes import Code, Computation
from tlcheck.execute.memory.frame import Frame, Mask, one_per_world
from tlcheck.execute.memory.matrix_products import product
from tlcheck.execute.memory.values import Array, Value
from tlcheck.execute.ops.thread.cluster_peers import clusters_of, destinations
from tlcheck.execute.ops.thread.mbarrier import Barrier
from tlcheck.execute.ops.tile.regions import Tile, block_frame

_BLOCKS = 2


@dataclass(frozen=True, eq=False)
class Shard:
    """A tile of one of the two blocks: where it is, (points, worlds, 1) flat, for the world that names it."""

    tile: Tile
    where: Array
    inner: Frame

    @classmethod
    def each(cls, tile: Tile, inner: Frame, program: KernelProgram, blocks: int = _BLOCKS) -> list[Shard]:
        """Return the part of either block, or of the own one."""
        clusters, own = clusters_of(program), np.arange(inner.worlds)
        even, position = clusters.rank & ~1, tile.flat(inner)
        pairs = [own] if blocks == 1 else [clusters.peers[own, even + rank] for rank in range(blocks)]
        return [cls(tile, np.asarray(position + (peer - own).reshape(1, -1, 1)), inner) for peer in pairs]

    def matrix(self, across: bool = False) -> Array:
        """Return what is there, (worlds, rows, columns)."""
        tile, observers = self.tile, self.tile.place.observers
        observers.tile_accessed(tile.place, self.where, self.mask, self.inner.lanes, None)
        found = tile.place.memory.take(self.where, tile.kind)
        found = found.reshape(*tile.lattice.shape(self.inner)[-2:], self.inner.worlds).transpose(2, 0, 1)
        return np.asarray(found.swapaxes(1, 2) if across else found)

    def write(self, values: Array) -> None:
        """Make it a matrix of each world."""
        tile, observers = self.tile, self.tile.place.observers
        flat = values.transpose(1, 2, 0).reshape(-1, self.inner.worlds, 1)
        observers.tile_accessed(tile.place, self.where, self.mask, self.inner.lanes, flat)
        tile.place.memory.put(self.where, flat, self.mask, tile.kind)
        observers.tile_written(tile.place, self.where, self.mask, self.inner.lanes, flat)

    @property
    def mask(self) -> Mask | None:
        return self.inner.active


def of_pairs(
    tiles: tuple[Tile, Tile, Tile], across: tuple[bool, bool], clear: Code, done: Barrier | None, program: KernelProgram
) -> Computation:
    """The product of A and B of both blocks, added to C of both. across: whether A, B are transposed."""
    observers = program.observers

    def run(frame: Frame) -> int:
        inner = block_frame(frame)
        observers.tensor_product(begins=True)
        a, b, c = (Shard.each(tile, inner, program) for tile in tiles)
        right = np.concatenate([shard.matrix(across[1]) for shard in b], axis=2)
        cleared = np.asarray(one_per_world(clear.run(frame), "clear_accum")).reshape(-1, 1, 1)
        for left, total in zip(a, c, strict=True):
            found = product(left.matrix(across[0]), right)
            if not cleared.all():
                found = found + np.where(cleared, 0, total.matrix().astype(np.float64))
            kind = total.tile.kind
            found = found if kind.is_float else found.astype(np.int64)  # exact so far; it wraps as the sums do
            settle = program.state.summed(kind, right.shape[1])
            total.write(np.asarray(found if settle is None else settle(found)).astype(kind.array))
        observers.tensor_product(begins=False)
        if done is not None:
            complete_in_both(done, frame, program)
        return 0

    return by_even(run, program)


def by_even(run: Computation, program: KernelProgram) -> Computation:
    """Return what the blocks of even rank do alone: TileLang issues a product of two blocks in these."""
    even = clusters_of(program).rank[:, None] % _BLOCKS == 0

    def narrowed(frame: Frame) -> Value:
        active = frame.among(even)
        if active is not None and not active.any():
            return 0
        with frame.narrowed(active):
            return run(frame)

    return narrowed


def complete_in_both(done: Barrier, frame: Frame, program: KernelProgram) -> None:
    """The products until now are complete: once in each of two blocks (ranks 0 and 1)."""
    observers = program.observers
    for rank in range(_BLOCKS):
        for _, at in destinations(rank, frame, program):
            for number, mask in done(frame).by_number:
                observers.arrived((done.barriers.name, number), mask, at)
            for world, number in done.of_blocks(frame):
                done.barriers.arrive(int(at[world]), number, 1)
