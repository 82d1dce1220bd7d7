"""The matrices that a wgmma multiplies: where those in shared memory are, and reading them later, even several at once.

A product may read its operands as late as its group is waited for. Those of a loop's steps are read as one matrix.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

import numpy as np

from tlcheck.execute.compile.elements import BufferElement
from tlcheck.execute.compile.program import KernelProgram
from tlcheck.execute.events import Cell, Observer
from tlcheck.execute.memory.cells import Cells
from tlcheck.execute.memory.codes import Code
from tlcheck.execute.memory.frame import Frame, Mask
from tlcheck.execute.memory.places import refuse_outside
from tlcheck.execute.memory.state import NOWHERE, Origin
from tlcheck.execute.memory.values import Array, Kind, Value, stretched
from tlcheck.execute.ops.thread.wgmma_descriptors import allocations, decode
from tlcheck.execute.stops import NotModelled
from tlcheck.snapshot.ir import Expr

GROUP = 128  # threads of a warpgroup


@dataclass(frozen=True)
class MatrixOperand:
    """An operand: reading it later gives (worlds, groups, rows, K). row: where a group's row of it lies.

    tiles: where it is, if that is shared memory.
    """

    read: Callable[[], Array]
    row: Callable[[int, int, int], list[Cell]] | None = None
    tiles: _SharedTiles | None = None


Operand = Callable[[Frame], MatrixOperand]


def side_by_side(operands: list[MatrixOperand]) -> Array:
    """Operands as one: their columns one after the other."""
    first, *others = operands
    if not others:
        return first.read()
    if first.tiles is not None:
        joined = first.tiles.joined([o.tiles for o in others])
        if joined is not None:
            return joined.read()
    return np.concatenate([o.read() for o in operands], axis=-1)


@dataclass(frozen=True, eq=False)
class SharedOperand:
    """An operand in shared memory. word: its descriptor; further: how many 16 bytes on; shape: rows and columns.

    tiles: what was named before, by the bytes of words and of readers.
    """

    word: BufferElement
    further: Code
    shape: tuple[int, int]
    kind: Kind
    by_k: bool
    program: KernelProgram
    tiles: dict[tuple[bytes, bytes], _SharedTiles] = field(default_factory=dict)

    def __call__(self, frame: Frame) -> MatrixOperand:
        words, readers = self.words(frame)
        named, origin = self._named(frame, words, readers), self.program.state.origin(frame)
        mine = self.at(named, readers)
        mine.seen(origin)

        def row(world: int, group: int, number: int) -> list[Cell]:
            matrix = decode(int(named[world, group]))
            cells = allocations(self.program)[matrix.allocation].memory
            assert isinstance(cells, Cells)
            octets = matrix.octets(*self.shape, self.kind.bits // 8, self.by_k)[number]
            return [(cells, cells.at(o * 8) + world) for o in octets.tolist()]

        return MatrixOperand(lambda: mine.read(origin), row, mine)

    def words(self, frame: Frame) -> tuple[Array, Array]:
        """The descriptor of each group, and the thread that reads it: (worlds, groups)."""
        readers = _readers(frame)
        return _of_readers(self.word.load(frame), readers, frame), readers

    def _named(self, frame: Frame, words: Array, readers: Array) -> Array:
        """The descriptors of the matrices themselves, 0 for groups that are not active."""
        further = _of_readers(self.further.run(frame), readers, frame)
        return np.where(readers >= 0, words + further.astype(np.uint64), np.uint64(0))

    def at(self, named: Array, readers: Array) -> _SharedTiles:
        """The matrices that descriptors name."""
        key = named.tobytes(), readers.tobytes()
        if key not in self.tiles:
            found = list(_tiles(named, readers, self.shape, self.kind, self.by_k, self.program))
            self.tiles[key] = _SharedTiles(found, readers.shape, self.shape, self.kind, self.program)
        return self.tiles[key]

    def steps(self, frame: Frame, words: Array, readers: Array, uid: int, values: range) -> list[_SharedTiles]:
        """The matrices of each step of a loop."""
        found = []
        for value in values:
            frame.variables[uid] = value
            found.append(self.at(self._named(frame, words, readers), readers))
        return found


@dataclass(frozen=True, eq=False)
class OperandOfSteps:
    """The operands of all steps of a loop, column after column. kept: what was named before, by the first words."""

    operand: SharedOperand
    uid: int
    values: range
    kept: dict[tuple[bytes, bytes], tuple[list[_SharedTiles], _SharedTiles | None]] = field(default_factory=dict)

    def __call__(self, frame: Frame) -> MatrixOperand:
        words, readers = self.operand.words(frame)
        key = words.tobytes(), readers.tobytes()
        if key not in self.kept:
            first, *others = every = self.operand.steps(frame, words, readers, self.uid, self.values)
            self.kept[key] = every, first.joined([*others]) if others else first
        every, joined = self.kept[key]
        origin = self.operand.program.state.origin(frame)
        for tiles in every if joined is None else [joined]:
            tiles.seen(origin)
        if joined is None:
            return MatrixOperand(lambda: np.concatenate([tiles.read(origin) for tiles in every], axis=-1))
        return MatrixOperand(lambda: joined.read(origin), None, joined)


def in_shared(
    e: Expr, at: int, shape: tuple[int, int], kind: Kind, by_k: bool, program: KernelProgram
) -> SharedOperand:
    """A matrix in shared memory, of arguments `at`, its descriptor, and the next one, its offset."""
    return SharedOperand(program.pointer(e.args[at]), program.code(e.args[at + 1]), shape, kind, by_k, program)


def _readers(frame: Frame) -> Array:
    """Return the first active thread of each warpgroup, -1 where none is: (worlds, groups), read-only.

    Warps of one group may come one after the other, after a barrier that some of them had to themselves.
    """
    return _first_of_groups(frame.mask().tobytes(), frame.worlds, frame.lanes)


@lru_cache(maxsize=256)  # a kernel has a few masks, and thousands of instructions
def _first_of_groups(mask: bytes, worlds: int, lanes: int) -> Array:
    active = np.frombuffer(mask, np.bool_).reshape(worlds, lanes)
    grouped = np.pad(active, ((0, 0), (0, -lanes % GROUP))).reshape(worlds, -1, GROUP)
    first = grouped.argmax(axis=-1) + np.arange(grouped.shape[1]) * GROUP
    found = np.where(grouped.any(axis=-1), first, -1)
    found.flags.writeable = False
    return found


def _of_readers(value: Value, readers: Array, frame: Frame) -> Array:
    """The value of each of these threads; of a group without one, any."""
    given = np.asarray(value)
    if given.size == 1:
        return np.full(readers.shape, given.reshape(()))
    every = stretched(given, (frame.worlds, frame.lanes))
    return every[np.arange(frame.worlds)[:, None], np.maximum(readers, 0)]


@dataclass(frozen=True, slots=True, eq=False)
class _SharedTile:
    """A matrix in shared memory, and who reads it. position: (readers, rows, columns), in the memory of `place`.

    worlds, groups: of the readers. cells, mask: the same elements, and a thread of each reader, for observers.
    """

    place: BufferElement
    position: Array
    worlds: Array
    groups: Array
    cells: Array
    mask: Mask


def _tiles(
    words: Array, readers: Array, shape: tuple[int, int], kind: Kind, by_k: bool, program: KernelProgram
) -> Iterator[_SharedTile]:
    """The different matrices that the descriptors of all active groups name; words, readers: (worlds, groups)."""
    places, active = allocations(program), readers >= 0
    for word in dict.fromkeys(words[active].tolist()):
        matrix = decode(word)
        if matrix.allocation >= len(places):
            raise NotModelled("wgmma descriptor that was not initialized here")
        place = places[matrix.allocation]
        memory = place.memory
        assert isinstance(memory, Cells)
        octets = matrix.octets(*shape, kind.bits // 8, by_k)
        worlds, groups = np.nonzero(active & (words == word))
        refuse_outside(place, octets, kind, "wgmma reads", (int(worlds[0]), int(readers[worlds[0], groups[0]])))
        cell = memory.at(octets * 8)
        mask = np.zeros((len(program.state.worlds), program.state.threads), np.bool_)
        mask[worlds, readers[worlds, groups]] = True
        cells = cell.reshape(-1, 1, 1) + np.arange(len(mask)).reshape(1, -1, 1)
        yield _SharedTile(place, cell + worlds.reshape(-1, 1, 1), worlds, groups, cells, mask)


@dataclass(frozen=True, eq=False)
class _SharedTiles:
    """The matrices in shared memory that the active groups of an instruction read, of one shape."""

    tiles: list[_SharedTile]
    groups: tuple[int, ...]
    shape: tuple[int, int]
    kind: Kind
    program: KernelProgram
    kept: dict[tuple[int, ...], tuple[object, _SharedTiles | None]] = field(default_factory=dict)

    def seen(self, origin: Origin) -> None:
        """Publish that the matrices are read: when the instruction is issued, and again as late as it may be."""
        for tile in self.tiles:
            self.program.observers.read(tile.place, tile.cells, tile.mask, origin, "async")

    def read(self, origin: Origin = NOWHERE) -> Array:
        """The matrices of all groups, those of a group that is not active made up. The first active thread of a
        warpgroup reads for all of it.
        """
        self.seen(origin)
        if self._together is not None:
            memory, position = self._together
            return memory.take(position, self.kind)
        found = np.zeros((*self.groups, *self.shape), self.kind.array)
        for tile in self.tiles:
            found[tile.worlds, tile.groups] = tile.place.memory.take(tile.position, self.kind)
        return found

    @cached_property
    def _together(self) -> tuple[Cells, Array] | None:
        """All matrices as one position in one allocation; None where they lie in several."""
        memories = {id(tile.place.memory): tile.place.memory for tile in self.tiles}
        memory = next(iter(memories.values()), None)
        if len(memories) != 1 or not isinstance(memory, Cells) or self.program.observers.hear(Observer.product):
            return None
        position = np.empty((*self.groups, *self.shape), np.intp)
        position[...] = self.tiles[0].position[0]
        for tile in self.tiles:
            position[tile.worlds, tile.groups] = tile.position
        return memory, position

    def joined(self, others: list[_SharedTiles | None]) -> _SharedTiles | None:
        """Join these and others that the same groups read, column after column; None where others read them."""
        key = tuple([id(other) for other in others])
        if key not in self.kept:
            self.kept[key] = others, self._join([o for o in others if o is not None])  # `others` keeps their numbers
        return self.kept[key][1]

    def _join(self, others: list[_SharedTiles]) -> _SharedTiles | None:
        every = [self, *others]
        if len({len(each.tiles) for each in every}) > 1:
            return None
        made = []
        for first, *more in zip(*[each.tiles for each in every], strict=True):
            for tile in more:
                if tile.place is not first.place or not np.array_equal(tile.mask, first.mask):
                    return None
            position = np.concatenate([tile.position for tile in (first, *more)], axis=-1)
            cells = np.concatenate([tile.cells for tile in (first, *more)])
            made.append(_SharedTile(first.place, position, first.worlds, first.groups, cells, first.mask))
        return _SharedTiles(made, self.groups, (self.shape[0], self.shape[1] * len(every)), self.kind, self.program)
