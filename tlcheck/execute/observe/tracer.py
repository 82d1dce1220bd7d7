"""Find who wrote what, and from what: memory is watched while a kernel runs again, for a few cells that are asked for.

Every access to memory has a number; a run of the same worlds has the same numbers. A *query* is a cell and a number:
the last write of the cell before it is sought. What that write was made of are the cells that its statement read
since the write before it, in the same lane; for a product of matrices a row and a column, for a reduction a line,
which their handlers tell.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tlcheck.execute.events import Observer, Operands
from tlcheck.execute.machine import Machine
from tlcheck.execute.memory.cells import Cells, Position
from tlcheck.execute.memory.frame import Frame, Mask
from tlcheck.execute.memory.pages import Pages
from tlcheck.execute.memory.state import Origin
from tlcheck.execute.memory.values import Array, Value, is_poison
from tlcheck.program.roles import WRITE, accesses
from tlcheck.snapshot.ir import Function, Stmt, Store, While
from tlcheck.snapshot.walk import expressions

END = 1 << 62
_MANY_READS = 256  # of one statement, of which each takes time
_SEVERAL = 4  # sources of a write that cannot be told apart, at most


@dataclass(frozen=True, slots=True)
class TracedCell:
    """A place in an allocation: an index into its flat data."""

    root: int
    position: int


@dataclass(frozen=True, slots=True)
class Query:
    """The last write of a cell before an access of this number.

    past: the identity of a statement that adds to the cell, again and again: what was there before it is sought. Where
    it set the cell instead, that was zero.
    """

    cell: TracedCell
    before: int = END
    past: int = 0


@dataclass(frozen=True, slots=True)
class FoundWrite:
    """A write that was sought. value: as stored; lane: a thread, or an iteration of T.Parallel, None where a block
    writes as one; world: None where it is not known, as of atomics. operands: the cells that it was made of, of each
    group one: `terms` of them are summed over. combines: it is an atomic, whose value is not what it leaves.
    """

    number: int
    value: Value
    lane: int | None
    world: int | None
    origin: Origin
    sources: tuple[Query, ...]
    terms: int = 0
    combines: bool = False


@dataclass(frozen=True, slots=True)
class _Read:
    memory: Cells | Pages
    position: Position
    number: int
    at: object
    outside: Mask | None = None


@dataclass(frozen=True, slots=True)
class _Explained:
    """A record of what a handler tells of its next write. keeps: it adds to what is there; line: of a reduction, not a
    product.
    """

    operands: Operands
    keeps: bool
    line: bool = False


class UnknownTensor(KeyError):  # noqa: N818
    """A kernel has no tensor of this name."""


def last_write(machine: Machine, name: str, seed: int, element: int) -> Query:
    """The last write of an element of a tensor. The element has a place in memory from now on: the same in all runs.

    Raises UnknownTensor.
    """
    try:
        pages = machine.pages(name)
    except KeyError:
        raise UnknownTensor(name) from None
    root = next(uid for uid, found in machine.state.memory.items() if found is pages)
    return Query(TracedCell(root, pages.position_of(seed, element)))


class Tracing:
    """Makes a tracer for the last machine of an invocation. tracer: that one.

    kernel: the invocation's last one. asked: queries; none for the last write of the element.
    """

    def __init__(self, kernel: Function, name: str, seed: int, element: int, asked: Sequence[Query] = ()) -> None:
        self._kernel, self._of, self._asked = kernel, (name, seed, element), asked

    def __call__(self, machine: Machine) -> Sequence[Tracer]:
        """Raises UnknownTensor."""
        if machine.function is not self._kernel:
            return []
        self.last = last_write(machine, *self._of)
        self.tracer = Tracer(machine, self._asked or [self.last])
        return [self.tracer]

    @property
    def found(self) -> FoundWrite | None:
        """The last write of the element."""
        return self.tracer.found.get(self.last)


class Tracer(Observer):
    """Watches all memory of a machine for queries. found: the latest answer to each; values: what the reads found."""

    def __init__(self, machine: Machine, queries: Sequence[Query]) -> None:
        self._machine = machine
        self._queries: dict[int, list[Query]] = {}
        for query in queries:
            self._queries.setdefault(query.cell.root, []).append(query)
        self.found: dict[Query, FoundWrite] = {}
        self.values: dict[Query, Value] = {}
        self.worlds: set[int] = set()  # that wrote a cell which is sought, where it is known
        self._frame: Frame | None = None
        self._behalf: Origin | None = None
        self._roots: dict[int, int] = {}
        self._number = 0
        self._reads: list[_Read] = []
        self._left: dict[tuple[int, int], tuple[Any, list[_Read], Origin]] = {}  # by memory and position
        self._explained: _Explained | None = None
        self._combined: tuple[Position, Mask | None] | None = None
        self._combines = False  # the write that is looked at

    def allocated(self, root: int, memory: Cells | Pages) -> None:
        """Watch an allocation."""
        memory.hook = self
        self._roots[id(memory)] = root

    def product(self, operands: Operands, keeps: bool = True) -> None:
        """Each element of the next write is the product of a row and a column."""
        self._explained = _Explained(operands, keeps)

    def reduction(self, operands: Operands, keeps: bool) -> None:
        """Each element of the next write is the reduction of a line."""
        self._explained = _Explained(operands, keeps, line=True)

    def acting(self, frame: Frame) -> None:
        """The next access to memory is in this frame."""
        self._frame = frame

    def landing(self, origin: Origin) -> None:
        """The next write is that of a statement that ran before."""
        self._behalf = origin

    def combined(self, frame: Frame, position: Position, mask: Mask | None) -> None:
        """The next write is an atomic and lists those that take part; here is where all lanes are."""
        self._frame, self._combined = frame, (position, mask)

    def cell(self, memory: Cells | Pages, position: int) -> TracedCell:
        """A place as queries name it."""
        return TracedCell(self._roots[id(memory)], int(position))

    def taken(self, memory: Cells | Pages, position: Position) -> None:
        """Note a read, and what it finds where a query asks."""
        self._number += 1
        for query in self._queries.get(self._roots[id(memory)], ()):
            if query.before == self._number:
                self.values[query] = memory.flat[query.cell.position]
        self._reads.append(_Read(memory, position, self._number, self._machine.state.at))

    def strayed(self, outside: Mask | None) -> None:
        """The read before took nothing there, since the region leaves its buffer."""
        if outside is not None:
            self._reads[-1] = replace(self._reads[-1], outside=outside)

    def put(self, memory: Cells | Pages, position: Position, value: Value, mask: Mask | None) -> None:
        """Note a write, and answer the queries of its cells."""
        self._number += 1
        self._combines = False
        if self._combined is not None:
            position, mask = self._combined
            self._combined, value = None, 0
            self._combines = True
        # whether a loop goes on says nothing of what is written behind it
        reads = [read for read in self._reads if not isinstance(read.at, While)]
        explained, self._reads, self._explained = self._explained, [], None
        if len(reads) > _MANY_READS:
            self._machine.state.spend(len(reads))  # else time is looked at after so many statements only
        origin = self._origin()
        place = self._roots[id(memory)], id(position)
        left = self._left.get(place)
        if not isinstance(position, np.ndarray) and (self._combines or isinstance(origin.stmt, Store)):
            left = None  # a number is the same object wherever it stands: only what waits may be where a copy arrives
        if left is not None and left[2].stmt is not origin.stmt:
            if self._writes_itself(origin.stmt, place[0]):
                left = None
            else:  # a copy arrives where another statement waits for it
                origin = left[2]
        if left is not None and not reads:
            reads = left[1]
        self._left[place] = (position, reads, origin)
        self._behalf = None
        for query in self._queries.get(self._roots[id(memory)], ()):
            if self._number < query.before:
                self._answer(query, memory, position, value, mask, reads, explained, origin)

    def _writes_itself(self, stmt: Stmt | None, root: int) -> bool:
        """Whether a statement names an allocation as what it writes."""
        if isinstance(stmt, Store):
            return True
        named = (access for e in expressions(stmt) for access in accesses(e)) if stmt is not None else ()
        return any(data.uid == root and mode & WRITE for data, mode in named)

    def _origin(self) -> Origin:
        if self._behalf is not None:
            return self._behalf
        return (
            self._machine.state.origin(self._frame) if self._frame is not None else Origin(self._machine.state.at, ())
        )

    def _answer(
        self,
        query: Query,
        memory: Cells | Pages,
        position: Position,
        value: Value,
        mask: Mask | None,
        reads: Sequence[_Read],
        explained: _Explained | None,
        origin: Origin,
    ) -> None:
        where = np.asarray(memory.flat_position(position))
        shape = np.broadcast_shapes(where.shape, np.shape(value), () if mask is None else mask.shape)
        hit = np.broadcast_to(where == query.cell.position, shape)
        if mask is not None:
            hit = hit & np.broadcast_to(mask, shape)
        if not hit.any():
            return
        all_hit = np.argwhere(hit)
        index = tuple(int(i) for i in all_hit[-1])
        written = np.broadcast_to(value, shape)[index] if isinstance(value, np.ndarray) else value
        lane = index[-1] if shape and shape[-1] > 1 else None
        worlds = len(self._machine.worlds)
        world = 0 if worlds == 1 else index[-2] if len(shape) > 1 and shape[-2] == worlds else None
        self.worlds |= set() if world is None else {0} if worlds == 1 else set(all_hit[:, -2].tolist())
        groups = (
            [] if explained is None else [[self.cell(*one) for one in group] for group in explained.operands(index)]
        )
        terms = len(groups[0]) if groups else 0
        if explained is not None and explained.line:
            sources = self._members(groups, reads, written)
        else:
            sources = self._term(groups, reads) if terms else self._sources(reads, index, shape)
        before = self.found.get(query)
        if before is not None and _is_poison(before.value) and _is_poison(written):
            keeps = explained.keeps if explained is not None else self._combines
            if keeps or any(source.cell == query.cell for source in sources):
                return  # what is added to poison is poison: the first write that made it so tells why
        if query.past == id(origin.stmt):
            if explained is None or explained.keeps:
                return
            written, sources = 0.0, []
        elif terms and explained is not None and explained.keeps and not explained.line:
            sources.append(Query(query.cell, self._number, id(origin.stmt)))
        self.found[query] = FoundWrite(
            self._number,
            written,
            lane,
            world,
            origin,
            tuple(sources),
            0 if explained is not None and explained.line else terms,
            self._combines,
        )

    def _term(self, groups: Sequence[Sequence[TracedCell]], reads: Sequence[_Read]) -> list[Query]:
        """One product of a sum: the first that is poison, else the last that is not zero."""
        since = min((read.number for read in reads), default=self._number)
        values = [[self._value(cell) for cell in group] for group in groups]
        poisoned = [k for k in range(len(groups[0])) if any(_is_poison(own[k]) for own in values)]
        counting = [k for k in range(len(groups[0])) if all(own[k] != 0 for own in values)]
        chosen = poisoned[0] if poisoned else counting[-1] if counting else -1
        return [Query(group[chosen], since) for group in groups]

    def _members(self, groups: Sequence[Sequence[TracedCell]], reads: Sequence[_Read], written: Value) -> list[Query]:
        """Return the first poisoned term of a reduction; else the one equal to the result; else ends and largest.

        Then what was there before.
        """
        since = min((read.number for read in reads), default=self._number)
        line, *before = groups
        values: list[Any] = [self._value(cell) for cell in line]
        poisoned = [k for k, value in enumerate(values) if _is_poison(value)]
        sizes = [abs(value) for value in values]
        is_it = [k for k, size in enumerate(sizes) if size == abs(written)]
        largest = max(range(len(line)), key=lambda k: sizes[k])
        chosen = poisoned[:1] or is_it[:1] or [0, largest, len(line) - 1]
        cells = [line[k] for k in dict.fromkeys(chosen)] + [cell for group in before for cell in group]
        return [Query(cell, since) for cell in cells]

    def _value(self, cell: TracedCell) -> Value:
        memory = self._machine.state.memory[cell.root]
        found: Value = memory.flat[cell.position]
        return found

    def _sources(self, reads: Sequence[_Read], index: tuple[int, ...], shape: tuple[int, ...]) -> list[Query]:
        """Return what the same lane read for it."""
        found: dict[Query, None] = {}
        for read in reads:
            where = np.asarray(read.memory.flat_position(read.position))
            outside = np.zeros(1, bool) if read.outside is None else np.asarray(read.outside)
            where, outside = np.broadcast_arrays(where, outside)
            gone = _matching(outside, index, shape)
            for position, is_gone in zip(_matching(where, index, shape), gone, strict=True):
                if not is_gone:
                    found[Query(self.cell(read.memory, position), read.number)] = None
        return list(found)


def _is_poison(value: Value) -> bool:
    return isinstance(value, (float, np.floating)) and bool(is_poison(np.array([value])).any())


def _matching(where: Array, index: tuple[int, ...], shape: tuple[int, ...]) -> list[int]:
    """The positions of a read that belong to an element of a write: those at its index, as arrays broadcast; where
    the two have no common form, some of its lane.
    """
    rank = max(len(shape), where.ndim)
    own = (0,) * (rank - len(index)) + index
    sizes = (1,) * (rank - where.ndim) + where.shape
    full = (1,) * (rank - len(shape)) + shape
    if all(size in (1, extent) for size, extent in zip(sizes, full, strict=True)):
        picked = tuple(0 if size == 1 else i for size, i in zip(sizes, own, strict=True))
        return [int(where.reshape(sizes)[picked])]
    if where.size == int(np.prod(shape)):
        return [int(where.reshape(-1)[np.ravel_multi_index(index, shape)])]
    lane = where[..., index[-1]] if where.shape[-1:] == shape[-1:] else where
    return [int(position) for position in lane.reshape(-1)[:_SEVERAL]]
