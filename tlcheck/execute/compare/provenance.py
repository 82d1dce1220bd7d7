"""Find where an element of a tensor comes from: a tree of writes, in the source and as lowered.

Each level of the tree is one more run of the block that writes the element, watched for the cells that the level
before asks for (`tracer`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

import numpy as np

from tlcheck.execute.compare.output_outcome import said
from tlcheck.execute.machine import Machine
from tlcheck.execute.memory.cells import Cells
from tlcheck.execute.memory.frame import Frame
from tlcheck.execute.memory.pages import Pages
from tlcheck.execute.memory.plain import evaluated, index_of
from tlcheck.execute.memory.state import Origin
from tlcheck.execute.memory.values import is_poison
from tlcheck.execute.observe.tracer import END, FoundWrite, Query, TracedCell, Tracer, Tracing
from tlcheck.execute.stops import Illegal, NotModelled
from tlcheck.execute.worlds.invocation import Invocation
from tlcheck.snapshot.dtypes import dtype_of
from tlcheck.snapshot.ir import Alloc, Buffer, Stmt, Store
from tlcheck.snapshot.walk import statements

_WIDTH = 48  # cells that one level asks for


@dataclass(frozen=True)
class TracedStep:
    """An element and who wrote it. element: `a[3, 17]`; value: a number, or why it is poison.

    origin: of the write, None for what no statement wrote; then `input` says whether the kernel was given it.
    lane: a thread, or an iteration of T.Parallel in the source. sources: what it was made of; of a sum of products the
    terms `products` of them are not shown. times: how many equal ones this is of what a write was made of. cut: what
    it was made of was not followed to its end. cell: where it is. place: the element that it is of the buffer to which
    its statement stores, -1 where that is not known.
    """

    element: str
    value: str
    origin: Origin | None = None
    lane: int | None = None
    input: bool = False
    sources: tuple[TracedStep, ...] = ()
    products: int = 0
    times: int = 1
    cut: bool = False
    cell: TracedCell | None = field(default=None, compare=False)
    place: int = field(default=-1, compare=False)

    @property
    def is_poison(self) -> bool:
        return self.value.startswith("poison")


_Described = tuple[FoundWrite | None, str, str, int]  # a write, its element, its value, its place


class Provenance:
    """The ways of one kernel's elements. make: an invocation that has not run yet, each time the same worlds: one.

    shapes: of the parameters, by name.
    """

    def __init__(self, make: Callable[[], Invocation], shapes: Mapping[str, tuple[int, ...]]) -> None:
        self._make, self._shapes = make, shapes

    def of(self, name: str, element: int, depth: int) -> TracedStep:
        """The tree of an element of a tensor, `depth` writes deep. Raises UnknownTensor."""
        found: dict[Query, _Described] = {}
        asked: list[Query] = []
        for level in range(depth):
            invocation = self._make()
            tracing = Tracing(invocation.kernel, name, invocation.worlds[0].seed, element, asked)
            with suppress(Illegal):  # the element is what it was until then
                invocation.run(tracing)
            asked = asked if level else [tracing.last]
            for query in asked:
                found[query] = self._described(invocation.machine, query, tracing.tracer)
            further = [q for query in asked if (write := found[query][0]) is not None for q in write.sources]
            asked = [q for q in dict.fromkeys(further) if q not in found][:_WIDTH]
            if not asked:
                break
        return self._step(tracing.last, found)

    def last_write(self, name: str, element: int, cell: TracedCell) -> Origin | None:
        """The last write of any cell; None if there is none. name, element: of any tensor."""
        invocation, query = self._make(), Query(cell)
        tracing = Tracing(invocation.kernel, name, invocation.worlds[0].seed, element, [query])
        with suppress(Illegal):
            invocation.run(tracing)
        found = tracing.tracer.found.get(query)
        return None if found is None else found.origin

    def _described(self, machine: Machine, query: Query, tracer: Tracer) -> _Described:
        write = tracer.found.get(query)
        memory = machine.state.memory.get(query.cell.root)
        name = "?" if memory is None else _named(machine, query.cell, memory, self._shapes)
        if write is not None:
            place = _place(machine, query.cell, memory, write.origin.stmt)
            if query.before == END and memory is not None:  # an atomic's own value is not what it leaves
                return write, name, in_words(memory.flat[query.cell.position], machine), place
            value = tracer.values.get(query, write.value) if write.combines else write.value
            return write, name, in_words(value, machine), place
        if isinstance(memory, Pages):
            seed = machine.worlds[0].seed
            element = np.array([memory.element_at(query.cell.position)])
            if memory.contents(seed, element) is not None:
                return None, name, in_words(memory.initial(seed, element)[0], machine), -1
        return None, name, "poison: never written", -1

    def _step(self, query: Query, found: Mapping[Query, _Described]) -> TracedStep:
        write, name, value, place = found[query]
        if write is None:
            return TracedStep(name, value, input=not value.startswith("poison"), cell=query.cell)
        sources = _merged([self._step(q, found) for q in write.sources if q in found])
        cut = any(q not in found for q in write.sources)
        return TracedStep(
            name,
            value,
            write.origin,
            write.lane,
            sources=sources,
            products=write.terms,
            cut=cut,
            cell=query.cell,
            place=place,
        )


def _merged(steps: Sequence[TracedStep]) -> tuple[TracedStep, ...]:
    """Each step once, as a statement reads an element in several places, or for several of its operands."""
    merged: list[TracedStep] = []
    for step in steps:
        if step not in merged:
            merged.append(step)
    return tuple([replace(step, times=steps.count(step)) for step in merged])


def in_words(value: object, machine: Machine) -> str:
    """A number of a machine, or why it is poison."""
    plain = value.item() if isinstance(value, np.generic) else value
    if isinstance(plain, float) and is_poison(np.array([plain])).any():
        return said(plain, machine.state.reasons)
    return repr(plain)


def _named(machine: Machine, cell: TracedCell, memory: Cells | Pages, shapes: Mapping[str, tuple[int, ...]]) -> str:
    """`a[3, 17]`: a cell by the buffer that it is in, and the index there."""
    if isinstance(memory, Pages):
        name = next(name for uid, name in machine.pointers.free if uid == cell.root)
        return _indexed(name, memory.element_at(cell.position), shapes.get(name, ()))
    octet = memory.octet(cell.position)
    for start, buffer, size in _buffers(machine, cell.root):
        if start <= octet < start + size:
            shape = tuple(int(evaluated(e, {})) for e in buffer.shape)
            width = size // max(1, int(np.prod(shape)))
            return _indexed(buffer.name, (octet - start) // max(1, width), shape)
    return f"memory[{octet}]"


def _place(machine: Machine, cell: TracedCell, memory: Cells | Pages | None, stmt: Stmt | None) -> int:
    """The element of the buffer to which a statement stores, where that begins at a known byte; else -1."""
    if not isinstance(memory, Cells) or not isinstance(stmt, Store):
        return -1
    with suppress(NotModelled):
        start = machine.program().addresses.start(stmt.buffer.data.uid)
        if start.uniform and not start.needs:
            first, width = int(start.run(Frame({}, 1, 1))), dtype_of(stmt.buffer.dtype).bytes
            return int((memory.octet(cell.position) - first) // width)
    return -1


def _buffers(machine: Machine, root: int) -> list[tuple[int, Buffer, int]]:
    """The buffers of an allocation: first byte, buffer, bytes."""
    found = []
    for stmt in statements(machine.function.body):
        if isinstance(stmt, Alloc) and machine.pointers.root(stmt.buffer.data.uid) == root:
            try:
                start = machine.program().addresses.start(stmt.buffer.data.uid)
                first = int(start.run(Frame({}, 1, 1))) if start.uniform and not start.needs else 0
                found.append((first, stmt.buffer, machine.pointers.size(stmt.buffer)))
            except NotModelled:
                continue
    return found


def _indexed(name: str, element: int, shape: Sequence[int]) -> str:
    index = index_of(element, shape) if shape and element < np.prod(shape) else (element,)
    return f"{name}[{', '.join(str(i) for i in index)}]"
