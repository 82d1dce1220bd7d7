"""Scale factors of block-scaled products in tensor memory (PTX 9.7.16.10.7): how they get there, and what they are.

A word has four factors of 8 bits, each 2 to the power of its value less 127 (E8M0). The word of row m is in column
m / 32 of lane m % 32, and again in each of the four quarters of the lanes. A product takes one byte of each word, by
its number in the instruction descriptor.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from tlcheck.execute.compile.elements import BufferElement
from tlcheck.execute.compile.program import KernelProgram
from tlcheck.execute.compile.registry import call
from tlcheck.execute.memory.codes import Code, Computation
from tlcheck.execute.memory.frame import Frame
from tlcheck.execute.memory.state import Origin
from tlcheck.execute.memory.values import Array, Value, kind_of
from tlcheck.execute.ops.scale_factors import factors
from tlcheck.execute.ops.thread.tcgen05_forms import LANES
from tlcheck.execute.ops.thread.tcgen05_mma import ProductsUnderWay
from tlcheck.execute.ops.thread.tcgen05_operands import Blocks, Issuer, issuers
from tlcheck.execute.ops.thread.tensor_memory import WORD, TensorMemory, base, name_in, require_one_group
from tlcheck.execute.stops import NotModelled
from tlcheck.signatures.tcgen05 import is_of_pair
from tlcheck.snapshot.ir import Expr
from tlcheck.targets.nvidia import WARP

WORDS = 128  # that one tcgen05.cp copies: 32 lanes of 4 columns
_COLUMNS = WORDS // WARP
_SCOPE = "shared.tmem"


@call("ptx_tcgen05_sf_warp_transpose")
def transpose(e: Expr, program: KernelProgram) -> Computation:
    """(address): a warp transposes 4 x 32 words in place, as tcgen05.cp wants them (`tl_templates/cuda/tcgen_05.h`)."""
    if program.state.threads % WARP:
        raise NotModelled("warp instruction in a block of incomplete warps")
    lane = np.arange(program.state.threads).reshape(1, -1) % WARP
    read = program.pointer(e.args[0], np.arange(_COLUMNS) * WARP, Code(lambda frame: lane, steady=True))
    written = program.pointer(e.args[0], np.arange(_COLUMNS), Code(lambda frame: lane * _COLUMNS, steady=True))

    def by_threads(frame: Frame) -> Value:
        words = np.array(read.load(frame))
        program.observers.warp_barrier(frame.mask())
        written.store(frame, words)
        return 0

    def as_one(frame: Frame) -> Value:
        (before, _), (after, mask) = read.position(frame), written.position(frame)
        observers, memory = program.observers, read.memory
        observers.tile_accessed(read, before, mask, frame.lanes, None)
        words = np.array(memory.take(before, read.kind))
        observers.tile_accessed(written, after, mask, frame.lanes, words)
        memory.put(after, words, mask, written.kind)
        observers.tile_written(written, after, mask, frame.lanes, words)
        return 0

    return as_one if program.options.source else by_threads


@dataclass(eq=False)
class _ScaleCopy:
    """A tcgen05.cp under way: until a commit is complete it may read shared memory. See `_Product` for the fields."""

    program: KernelProgram
    issuer: Issuer
    source: BufferElement
    cells: Array
    origin: Origin
    worlds: Array
    total: None = None
    scale: None = None
    keeps: Array = field(default_factory=lambda: np.zeros(1, np.bool_))

    def complete(self, worlds: Array, others: object = ()) -> None:
        """The copy has read what it copies, in some worlds."""
        self.worlds = np.setdiff1d(self.worlds, worlds)
        by = self.issuer.among(worlds)
        self.program.observers.tensor_product_landed(self.source, self.cells, by.mask, by.lane)


@call("ptx_tcgen05_cp_warpx4")
def copy(e: Expr, program: KernelProgram) -> Computation:
    """(address, where tensor memory's address is, columns further on): tcgen05.cp.32x128b.warpx4 (PTX 9.7.16.9.2).

    Each row of 16 bytes becomes four columns of a lane, the same in each quarter of the lanes. Of two blocks each
    copies its own. Products of the same thread come after it.
    """
    source = program.pointer(e.args[0], np.arange(WORDS))
    if source.kind != kind_of("uint32"):
        raise NotModelled(f"tcgen05.cp of {source.kind.name}")
    require, target = require_one_group(e, program), _target(e, program)
    those, queue = Blocks.of(2 if is_of_pair(e) else 1, program), ProductsUnderWay.of(program)
    lane, column = (a.reshape(-1, 1) for a in np.mgrid[:LANES, :_COLUMNS])
    word = (lane % WARP * _COLUMNS + column).reshape(-1)
    further = those.worlds - np.arange(those.worlds.shape[1])

    def run(frame: Frame) -> Value:
        require(frame)
        located = source.located(frame)
        for warp in issuers(frame, "tcgen05.cp"):
            with frame.narrowed(warp.lane):
                source.allowed(located, frame)
            flat = np.broadcast_to(source.memory.flat_position(located.position), (WORDS, frame.worlds, frame.lanes))[
                :, :, warp.thread, None
            ]
            for shift in further:
                cells = flat + shift.reshape(1, -1, 1)
                made = _ScaleCopy(program, warp, source, cells, program.state.origin(frame), warp.worlds)
                program.observers.tensor_product_issued(
                    source, cells, warp.mask, warp.lane, made.origin, "read", "async"
                )
                queue.open.append(made)  # type: ignore[arg-type]
                target(frame, warp, source.memory.take(cells, source.kind)[word], shift, lane, column)
                if not program.options.late:
                    queue.finish([made], warp.lane)  # type: ignore[list-item]
        return 0

    return run


_Target = Callable[[Frame, Issuer, Array, Array, Array, Array], None]


def _target(e: Expr, program: KernelProgram) -> _Target:
    """Writes elements of lanes and columns, (elements, 1), in the worlds that are so many further on."""
    pointer, further = e.args[1], program.code(e.args[2])
    declared = program.pointers.declared(pointer)
    if program.options.source and declared is not None and declared.scope == _SCOPE:
        width = int(declared.shape[-1].value or 0)
        place = program.pointer(pointer)

        def tile(frame: Frame, warp: Issuer, words: Array, shift: Array, lane: Array, column: Array) -> None:
            more = int(warp.pick(further.run(frame), frame.worlds)[0])
            if not 0 <= more <= width - _COLUMNS:
                raise NotModelled(f"tcgen05.cp to columns beyond those of {place.name}")
            at = (lane * width + column)[:, :, None] + more
            position = place.memory.flat_position(place.memory.locate(at, place.kind, 0)) + shift.reshape(1, -1, 1)
            _put(place, position, words, warp, frame)

        return tile
    first, memory = base(pointer, program), TensorMemory.of(program)
    place = memory.place(name_in(pointer) if pointer.op != "var" else str(pointer.value), kind_of("uint32"))

    def addressed(frame: Frame, warp: Issuer, words: Array, shift: Array, lane: Array, column: Array) -> None:
        start = np.zeros(frame.worlds, np.int64)
        start[warp.worlds] = warp.pick(first(frame), frame.worlds) + warp.pick(further.run(frame), frame.worlds)
        for world in warp.worlds.tolist():
            columns = start[world] + np.arange(_COLUMNS)
            memory.require(place.name, "tcgen05.cp to", int(world + shift[world]), columns, warp.thread)
        octets = ((start + column) * LANES + lane)[:, :, None] * WORD
        worlds = (np.arange(frame.worlds) + shift).reshape(1, -1, 1)
        _put(place, memory.position(octets, worlds), words, warp, frame)

    return addressed


def _put(place: BufferElement, position: Array, words: Array, warp: Issuer, frame: Frame) -> None:
    observers, origin = place.observers, place.state.origin(frame)
    watched = observers.covers(place)
    if watched:
        observers.write(place, position, warp.lane, origin, words)
    place.memory.put(position, words, warp.mask, place.kind)
    if watched:
        observers.written(place, position, warp.lane, origin, words)


@dataclass(frozen=True, eq=False)
class ScaleFactors:
    """An argument that names scale factors of some rows, of as many blocks: where they are, of each block."""

    place: BufferElement
    first: Computation
    further: Code
    rows: int
    blocks: Blocks
    memory: TensorMemory

    @classmethod
    def of(cls, e: Expr, at: int, rows: int, blocks: int, program: KernelProgram) -> ScaleFactors:
        """Read argument `at`, with the columns that the next one adds."""
        memory, pointer = TensorMemory.of(program), e.args[at]
        place = memory.place(str(pointer.value), kind_of("uint32"))
        those = Blocks.of(blocks, program)
        return cls(place, base(pointer, program), program.code(e.args[at + 1]), rows, those, memory)

    def take(self, frame: Frame, issuer: Issuer, number: Array) -> Array:
        """The factors, (blocks, its worlds, rows). number: the byte of each word, (its worlds,)."""
        start = issuer.pick(self.first(frame), frame.worlds) + issuer.pick(self.further.run(frame), frame.worlds)
        row = np.arange(self.rows)
        found = []
        for peers in self.blocks.worlds:
            for world, column in zip(issuer.worlds.tolist(), start.tolist(), strict=True):
                columns = column + np.arange(-(-self.rows // WARP))
                self.memory.require(self.place.name, "tcgen05.mma on", int(peers[world]), columns, issuer.thread)
            octets = ((start[:, None] + row // WARP) * LANES + row % WARP) * WORD
            position = self.memory.position(octets, peers[issuer.worlds][:, None])
            self._tell(position, issuer, frame)
            found.append(factors(self.place.memory.take(position, self.place.kind), number[:, None]))
        return np.stack(found)

    def _tell(self, position: Array, issuer: Issuer, frame: Frame) -> None:
        observers, place = self.place.observers, self.place
        if observers.covers(place):
            whole = np.zeros((self.rows, frame.worlds, 1), np.int64)
            whole[:, issuer.worlds, 0] = position.T
            observers.read(place, whole, issuer.lane, place.state.origin(frame))
