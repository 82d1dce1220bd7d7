"""The matrices that a tcgen05.mma multiplies, in shared memory or tensor memory, and the sums; who issues it.

One thread of a warp issues an instruction for all lanes. It reads its matrices as late as it is complete.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from tlcheck.execute.compile.elements import BufferElement
from tlcheck.execute.compile.program import KernelProgram
from tlcheck.execute.events import Cell
from tlcheck.execute.memory.cells import Cells
from tlcheck.execute.memory.codes import Code
from tlcheck.execute.memory.frame import Frame, Mask
from tlcheck.execute.memory.places import refuse_outside
from tlcheck.execute.memory.values import Array, Kind, Value
from tlcheck.execute.ops.thread.cluster_peers import clusters_of
from tlcheck.execute.ops.thread.tcgen05_forms import LANES, ProductForm, rows_and_columns
from tlcheck.execute.ops.thread.tensor_memory import WORD, TensorMemory, WarpsOf, base
from tlcheck.execute.ops.thread.wgmma_descriptors import allocations, decode
from tlcheck.execute.stops import NotModelled
from tlcheck.snapshot.ir import Expr
from tlcheck.targets.nvidia import WARP

_MOST_KEPT = 256


@dataclass(frozen=True, eq=False)
class Issuer:
    """A warp's elected thread in each of some worlds. lane: (worlds, threads); mask: (worlds, 1)."""

    worlds: Array
    thread: int
    lane: Mask
    mask: Mask

    def pick(self, value: Value, of: int) -> Array:
        """Return what its threads have, (its worlds,). of: how many worlds there are."""
        wide = np.asarray(value)
        wide = np.broadcast_to(wide, np.broadcast_shapes(wide.shape, (of, 1)))
        return np.asarray(wide[self.worlds, self.thread if wide.shape[-1] > 1 else 0])

    def among(self, worlds: Array) -> Issuer:
        """Return the issuer in some of its worlds."""
        return self if len(worlds) == len(self.worlds) else issuer_in(worlds, self.thread, self.lane.shape)


def issuer_in(worlds: Array, thread: int, shape: tuple[int, ...]) -> Issuer:
    """A thread in some worlds of (worlds, threads): the same object for the same ones."""
    return _made(tuple(worlds.tolist()), thread, shape)


@lru_cache(maxsize=256)
def _made(worlds: tuple[int, ...], thread: int, shape: tuple[int, ...]) -> Issuer:
    lane, mask = np.zeros(shape, np.bool_), np.zeros((shape[0], 1), np.bool_)
    chosen = np.array(worlds, np.int64)
    lane[chosen, thread] = mask[chosen] = True
    for array in (lane, mask, chosen):
        array.flags.writeable = False
    return Issuer(chosen, thread, lane, mask)


def issuers(frame: Frame, what: str) -> Iterator[Issuer]:
    """Each active warp, with the worlds in which it is. elect.sync elects its first thread."""
    active = WarpsOf.of(frame, what).active
    for warp in np.flatnonzero(active.any(axis=0)).tolist():
        yield issuer_in(np.flatnonzero(active[:, warp]), warp * WARP, (frame.worlds, frame.lanes))


@dataclass(frozen=True, eq=False)
class OperandMatrix:
    """Elements of a place: where they are in each of some worlds, (worlds, rows, columns), flat.

    cells, of all worlds, (elements, worlds, 1): for observers.
    """

    place: BufferElement
    position: Array
    cells: Array

    def read(self, chosen: Array | slice = slice(None)) -> Array:
        """Return what is there, of those worlds that are chosen."""
        return self.place.memory.take(self.position[chosen], self.place.kind)

    def row(self, world: int, number: int) -> list[Cell]:
        """Return where a row of it lies. world: which of its worlds."""
        return [(self.place.memory, int(at)) for at in self.position[world, number]]


MatrixAt = Callable[[int, Array], OperandMatrix]
"""The matrix that an address or a descriptor names, in some worlds."""


@dataclass(frozen=True, eq=False)
class _Kept:
    """Matrices by what names them and their worlds: the same objects for the same ones."""

    make: MatrixAt
    found: dict[tuple[int, bytes], OperandMatrix] = field(default_factory=dict)

    def __call__(self, word: int, worlds: Array) -> OperandMatrix:
        key = word, worlds.tobytes()
        if key not in self.found:
            if len(self.found) >= _MOST_KEPT:
                self.found.clear()
            self.found[key] = self.make(word, worlds)
        return self.found[key]


@dataclass(frozen=True, eq=False)
class LocatedOperand:
    """An argument that names a matrix, and the one after it, that is added. word: the value of both together."""

    word: Callable[[Frame], Value]
    at: MatrixAt


@dataclass(frozen=True, eq=False)
class Blocks:
    """The blocks that have parts of a matrix, as many rows each: the worlds of each, (blocks, worlds)."""

    worlds: Array

    @classmethod
    def of(cls, number: int, program: KernelProgram) -> Blocks:
        """A world's own block, or both of its pair: two of a cluster whose ranks differ in the last bit."""
        own = np.arange(len(program.state.worlds))
        if number == 1:
            return cls(own[None])
        clusters = clusters_of(program)
        if clusters.size % 2:
            raise NotModelled("tcgen05 of two blocks without a cluster of them")
        even = clusters.rank & ~1
        pairs = np.stack([clusters.peers[own, even], clusters.peers[own, even + 1]])
        if (pairs < 0).any():
            raise NotModelled("a cluster of which some blocks do not run")
        return cls(pairs)

    def spread(self, cells: Array, worlds: Array) -> tuple[Array, Array]:
        """Flat positions of cells (rows, columns), of each world and of all: (worlds, rows, columns); (elements, ...).

        cells: those of world 0, the rows of all blocks.
        """
        rows = len(cells) // len(self.worlds)
        further = np.repeat(self.worlds, rows, axis=0)  # (rows, worlds)
        position = cells[None] + further.T[worlds][:, :, None]
        every = cells[:, :, None] + further[:, None, :]
        return position, every.reshape(-1, self.worlds.shape[1], 1)


def in_shared(
    e: Expr, at: int, shape: tuple[int, int], kind: Kind, by_k: bool, program: KernelProgram, blocks: int = 1
) -> LocatedOperand:
    """A matrix in shared memory: its descriptor at argument `at`, and the bytes by which it starts further on.

    blocks: that have parts of its rows.
    """
    descriptor, further = program.pointer(e.args[at]), program.code(e.args[at + 1])
    those, memory_of = Blocks.of(blocks, program), allocations(program)

    def word(frame: Frame) -> Value:
        units = np.asarray(further.run(frame)).astype(np.int64) >> 4
        return np.asarray(descriptor.load(frame)) + units.astype(np.uint64)

    def make(word: int, worlds: Array) -> OperandMatrix:
        matrix = decode(word)
        if matrix.allocation >= len(memory_of):
            raise NotModelled("tcgen05 descriptor that was not initialized here")
        place = memory_of[matrix.allocation]
        memory = place.memory
        assert isinstance(memory, Cells)
        if kind not in memory.kinds:
            raise NotModelled(f"tcgen05.mma of {kind.name} in memory of {' and '.join(k.name for k in memory.kinds)}")
        octets = np.concatenate([matrix.octets(shape[0] // blocks, shape[1], kind.bits // 8, by_k)] * blocks)
        refuse_outside(place, octets, kind, "tcgen05.mma reads", (int(worlds[0]), 0))
        cell = memory.at(octets * 8)
        viewed = BufferElement(
            program.state, program.observers, place.name, kind, place.root, Code(lambda frame: place.begin), []
        )
        return OperandMatrix(viewed, *those.spread(cell, worlds))

    return LocatedOperand(word, _Kept(make))


def in_tensor_memory(e: Expr, at: int, form: ProductForm, program: KernelProgram, sums: bool) -> LocatedOperand:
    """The sums, or A, in tensor memory: argument `at` keeps an address, the next one is added to it."""
    first, further, memory = base(e.args[at], program), program.code(e.args[at + 1]), TensorMemory.of(program)
    kind, name = form.sum if sums else form.left, str(e.args[at].value)
    those = Blocks.of(form.blocks, program)
    lane, column = rows_and_columns(form.m, form.n if sums else form.k, form.stays, form.blocks)
    if not sums and (form.stays or kind.bits < 8):
        raise NotModelled(f"{e.value} of {kind.name} in tensor memory")
    octets = column * WORD if sums else column * kind.octets  # along a lane
    high = int(lane.max())

    def word(frame: Frame) -> Value:
        return np.asarray(first(frame)).astype(np.int64) + np.asarray(further.run(frame)).astype(np.int64)

    def make(word: int, worlds: Array) -> OperandMatrix:
        first_lane, first_column = word >> 16, word & 0xFFFF
        if first_lane and (first_lane != 16 or high + 16 >= LANES or form.m != 64 or form.stays):
            raise NotModelled(f"tcgen05.mma with sums or A from lane {first_lane} on")
        columns = first_column + np.unique(octets // WORD)
        for world in those.worlds[:, worlds].T.reshape(-1).tolist():
            memory.require(name, "tcgen05.mma on", world, columns, 0)
        place = memory.place(name, kind)
        within = ((first_column + octets // WORD) * LANES + first_lane + lane) * WORD + octets % WORD
        return OperandMatrix(place, *those.spread(memory.position(within, np.intp(0)), worlds))

    return LocatedOperand(word, _Kept(make))
