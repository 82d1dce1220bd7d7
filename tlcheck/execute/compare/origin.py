"""The origin of a wrong output: the first access, in execution order, in which lowered differs from source.

One block runs once more at both levels. Of the source the values are kept that each buffer held. In the lowered kernel
the first read of a value that its buffer never held is the origin. Without one the wrong element is followed down at
both levels, write by write, to the first that differs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import Literal

import numpy as np

from tlcheck.execute.compare import output_outcome as comparison
from tlcheck.execute.compare.counterparts import Counterparts
from tlcheck.execute.compare.descent import Descent, Parting, index_in
from tlcheck.execute.compare.equal_steps import buffer_of, equal, stmt_of
from tlcheck.execute.compare.narrowing import narrowing
from tlcheck.execute.compare.output_outcome import Difference
from tlcheck.execute.compare.provenance import Provenance, TracedStep
from tlcheck.execute.compare.writers import Writer
from tlcheck.execute.machine import Machine
from tlcheck.execute.memory.plain import evaluated, index_of
from tlcheck.execute.memory.state import Origin
from tlcheck.execute.memory.values import Array, is_poison
from tlcheck.execute.observe.held_values import HeldValues, ValueRecorder
from tlcheck.execute.observe.races import Race
from tlcheck.execute.observe.strays import StrayAccess, StrayObserver, WriteRecord
from tlcheck.execute.observe.tracer import UnknownTensor
from tlcheck.execute.request import SOURCE, Request
from tlcheck.execute.schedule.launches import kernels
from tlcheck.execute.stops import Illegal, Stopped
from tlcheck.execute.worlds import inputs
from tlcheck.execute.worlds.courses import levels_of
from tlcheck.execute.worlds.invocation import Invocation
from tlcheck.program.flow import Flow
from tlcheck.snapshot.checkpoint import Checkpoint
from tlcheck.snapshot.dtypes import dtype_of
from tlcheck.snapshot.ir import Alloc, Block, Buffer, Function, If, Snapshot, Stmt, Store
from tlcheck.snapshot.walk import allocated, statements
from tlcheck.targets.lookup import target
from tlcheck.witness import indexed

OriginKind = Literal[
    "overwritten",
    "early",
    "late",
    "unordered",
    "unwritten",
    "unguarded",
    "other-index",
    "other-operand",
    "repeated",
    "incomplete",
    "rounded",
    "other-value",
]
_MANY = 8  # elements that have the value of another one: by chance it is not
_MOST_TIMES = 64
_DEEP = 6  # writes that an element is followed down
_MOST_SPENT = 2_000_000  # statements of both levels that this may take


@dataclass(frozen=True, slots=True)
class OriginAccess:
    """An access of an element of a buffer.

    stmt: of the lowered kernel, None where it has none. source: the statement of the source that does the same, where
    that is known. index: in the source's shape; empty where a layout hides it. octet: of the element, in its buffer;
    None where that is not known either.
    thread: -1 where no thread does it. span: the first and the last byte of the buffer in memory that it shares.
    """

    buffer: str
    index: tuple[int, ...] = ()
    stmt: Stmt | None = None
    source: Stmt | None = None
    octet: int | None = 0
    thread: int = -1
    span: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class ValueOrigin:
    """The first access that differs from the source. writes: whether it is a write.

    value: what the access reads or stores; expected: what it ought to, empty where that is not known. other: the write
    that made it wrong, or the element that has the value. count: elements, or times. guard: a condition of the lowered
    kernel around the write that is missing. again: a loop and its step, in which a write comes once more.
    total: the terms that the source adds up, where the lowered kernel adds `count`.
    """

    kind: OriginKind
    access: OriginAccess
    writes: bool
    value: str
    expected: str = ""
    other: OriginAccess | None = None
    count: int = 0
    guard: If | None = None
    again: tuple[str, int] | None = None
    total: int = 0


def origin_of(
    snapshot: Snapshot,
    request: Request,
    name: str,
    found: Difference,
    races: Sequence[Race] = (),
    *,
    shared: bool = True,
) -> ValueOrigin | None:
    """The origin of a difference in an output; None where it is not known for certain.

    request: of the block and the seed in which the output is wrong. races: of the lowered kernel. shared: whether the
    output may be wrong because two buffers share memory; not where it is wrong before they do.
    """
    if found.rounded:
        return _rounding(snapshot, request)
    if found.special:
        return None
    try:
        own = replace(request, blocks=found.blocks[:1] or request.blocks, seeds=(found.seed,))
        return _Search(snapshot, own, name, found, races, shared).origin()
    except Stopped:
        return None
    except (IndexError, KeyError, TypeError, ValueError):  # a snapshot that no compiler makes: the refutation stands
        return None


def _rounding(snapshot: Snapshot, request: Request) -> ValueOrigin | None:
    """The origin of a value that is rounded by more than in the source: a cast to a type that the source lacks."""
    source, lowered = snapshot.checkpoints[SOURCE], snapshot.checkpoints[request.checkpoint]
    found = narrowing(source, lowered)
    if found is None:
        return None
    stmt, dtype = found
    counterparts = Counterparts(source, lowered)
    names = sorted(counterparts.accessed(stmt).writes)
    name = stmt.buffer.name if isinstance(stmt, Store) else names[0] if names else "?"
    return ValueOrigin("rounded", OriginAccess(name, (), stmt, counterparts.only(stmt)), True, dtype)


class _Search:
    """Both levels of one block."""

    def __init__(
        self, snapshot: Snapshot, request: Request, name: str, found: Difference, races: Sequence[Race], shared: bool
    ) -> None:
        self._is_shared = shared
        self._races = frozenset((id(race.first.origin.stmt), id(race.second.origin.stmt)) for race in races)
        self._snapshot, self._request, self._name, self._found = snapshot, request, name, found
        self._made = levels_of(snapshot, request).invocations(early=found.early)

    def origin(self) -> ValueOrigin | None:
        source = self._made.source()
        self._held_by = self._held(source)
        held = self._held_by.get(len(self._kernels(SOURCE)) - 1, {})
        lowered = self._made.lowered()
        self._counterparts = Counterparts(source.kernel, lowered.kernel)
        for observer, number in self._strays(lowered):
            if observer.found is not None and number < len(self._kernels(self._request.checkpoint)) - 1:
                return self._of_stray(observer.found, self._held_by[number], observer.machine)
            stray, machine = observer.found, observer.machine
        seed = self._found.seed
        self._before = source.left[self._name].outcome(seed)
        self._after = comparison.left_of(lowered.left, self._name, seed)
        known = None if stray is None else self._of_stray(stray, held, machine)
        if known is not None and known.kind in ("overwritten", "early"):
            return known
        is_short = 2 * _DEEP * (source.spent + lowered.spent) <= _MOST_SPENT
        followed = self._followed(held) if is_short else None
        if known is not None and not known.writes and (followed is None or not _is_same(followed, known)):
            return known  # it knows the buffer for certain
        return followed or known or self._of_output()

    def _kernels(self, checkpoint: Checkpoint) -> Sequence[Function]:
        return kernels(self._snapshot.checkpoints[checkpoint])

    def _held(self, source: Invocation) -> Mapping[int, Mapping[str, HeldValues]]:
        """Return what the buffers of each kernel of the source hold, by its number; nothing of one in parts."""
        made: dict[int, list[ValueRecorder]] = {}
        self._shapes, self._shared = dict(self._made.shapes), set[str]()
        own = self._kernels(SOURCE)

        def recording(machine: Machine) -> Sequence[ValueRecorder]:
            recorders = made.setdefault(own.index(machine.function), [])
            recorders.append(ValueRecorder(machine))
            return recorders[-1:]

        source.run(recording)
        for stmt in (stmt for kernel in own for stmt in statements(kernel.body)):
            if isinstance(stmt, Alloc) and all(e.op == "int" for e in stmt.buffer.shape):
                self._shapes[stmt.buffer.name] = tuple(int(evaluated(e, {})) for e in stmt.buffer.shape)
                self._shared |= {stmt.buffer.name} if stmt.buffer.scope.startswith("shared") else set()
        return {number: found[0].held if len(found) == 1 else {} for number, found in sorted(made.items())}

    def _strays(self, lowered: Invocation) -> Sequence[tuple[StrayObserver, int]]:
        """Return who watched each kernel as lowered, with its number, in the order in which they ran. Runs it."""
        watching: list[tuple[StrayObserver, int]] = []
        own = self._kernels(self._request.checkpoint)
        is_paired = len(own) == len(self._kernels(SOURCE))

        def observing(machine: Machine) -> Sequence[StrayObserver]:
            number = own.index(machine.function)
            last = len(self._kernels(SOURCE)) - 1
            at = number if is_paired else last if number == len(own) - 1 else -1
            held = {name: each for name, each in self._held_by.get(at, {}).items() if name in self._behind}
            watching.append((StrayObserver(machine, held, frozenset(self._shared)), number))
            return [watching[-1][0]]

        with suppress(Illegal):  # a stray access may come before it
            lowered.run(observing)
        return watching

    @cached_property
    def _behind(self) -> frozenset[str]:
        """The buffers of the source that the output may depend on: others may be wrong by themselves."""
        source = self._snapshot.checkpoints[SOURCE]
        flow = Flow(source, self._name, steered=True)
        buffers = [*source.buffers, *allocated(source.body)]
        some = [buffer for buffer in buffers if buffer.data.uid in flow.buffers]
        names = {name for buffer in some for name in (buffer.name, str(buffer.data.value))}
        return frozenset(names) - (self._counterparts.names - self._counterparts.behind(self._name))

    def _followed(self, held: Mapping[str, HeldValues]) -> ValueOrigin | None:
        """The origin that the element's writes show at both levels."""
        name, element = self._name, self._found.element
        called = indexed(name, self._found.index)
        source = replace(Provenance(self._made.source, self._made.shapes).of(name, element, _DEEP), element=called)
        ways = Provenance(self._made.lowered, self._made.shapes)
        try:
            lowered = ways.of(name, element, _DEEP)
        except UnknownTensor:
            return None
        if equal(source.value, lowered.value):
            return None
        copied = {
            buffer: {
                (tensor, self._words(tensor, one)): self._words(buffer, other)
                for (tensor, one), other in values.copied.items()
            }
            for buffer, values in held.items()
        }

        def writes_last(step: TracedStep) -> Stmt | None:
            last = None if step.cell is None else ways.last_write(name, element, step.cell)
            return None if last is None else last.stmt

        def elsewhere(own: TracedStep, step: TracedStep) -> str:
            values = held.get(buffer_of(own)) if self._is_plain(buffer_of(own)) else None
            return "" if values is None else self._other_element(values, own, step)

        descent = Descent(self._counterparts, copied, writes_last, self._races, elsewhere)
        parting = descent.parting(source, replace(lowered, element=called))
        return None if parting is None else self._of_parting(parting)

    def _is_plain(self, name: str) -> bool:
        """Whether elements of a shared buffer lie in the order of their indices, as far as a layout says."""
        bodies = (checkpoint.body for checkpoint in self._snapshot.checkpoints.values())
        blocks = (stmt for body in bodies for stmt in statements(body) if isinstance(stmt, Block))
        laid = {str(data.value) for block in blocks for data, _ in block.layouts}
        return name in self._shared and name not in laid

    def _other_element(self, values: HeldValues, own: TracedStep, step: TracedStep) -> str:
        """The element that a lowered step is, if the source has its value there and never where its own step is."""
        name, stmt = buffer_of(own), stmt_of(step)
        if step.place < 0 or step.is_poison or not isinstance(stmt, Store) or str(stmt.buffer.name) != name:
            return ""
        there = self._words(name, step.place)
        held = {self._words(name, int(e)) for e in values.elements[values.values == float(step.value)]}
        return there if there in held and index_in(own) not in held else ""

    def _words(self, name: str, element: int) -> str:
        return ", ".join(map(str, self._index(name, element)))

    def _of_parting(self, parting: Parting) -> ValueOrigin:
        """Return what a parting is as an access of the lowered kernel."""
        own, step = parting.source, parting.lowered
        made = self._made_by(own, step, parting)
        read = self._read_by(own, parting)
        expected = own.value
        if parting.kind in ("unwritten", "early"):
            if parting.reader is None:
                missing = np.setdiff1d(self._before.elements, self._after.elements)
                return ValueOrigin("unwritten", made, True, step.value, expected, None, len(missing), parting.guard)
            stored = OriginAccess(buffer_of(own), _index_of(own), None, stmt_of(own))
            return ValueOrigin(parting.kind, read, False, step.value, expected, stored, 0, parting.guard)
        if parting.kind in ("unordered", "late") or (parting.kind == "overwritten" and parting.again is None):
            writes = self._counterparts.only(stmt_of(step))
            by = own if parting.kind == "late" else step  # shared memory hides the name of a lowered one
            name, index = buffer_of(by), _index_of(own)
            elsewhere = self._counterparts.other_written(stmt_of(step), buffer_of(own))
            if parting.kind == "overwritten" and elsewhere and not self._is_shared:
                stored = OriginAccess(buffer_of(own), _index_of(own), None, stmt_of(own))
                return ValueOrigin("unwritten", read, False, step.value, expected, stored)
            if parting.kind == "overwritten" and elsewhere:
                name, index = elsewhere, ()
            stored = OriginAccess(name, index, stmt_of(step), writes, 0 if index else None, _thread(step))
            return ValueOrigin(parting.kind, read, False, step.value, expected, stored)
        if parting.kind in ("other-index", "other-operand") and parting.reader is not None:
            access = self._read_by(step, parting)
            right = OriginAccess(buffer_of(own), _index_of(own), None, stmt_of(parting.source_reader))
            return ValueOrigin(parting.kind, access, False, step.value, expected, right)
        if parting.kind == "computed":
            return self._computed(parting, made)
        last = OriginAccess(buffer_of(own), _index_of(own), None, stmt_of(own))
        other = last if parting.kind in ("unguarded", "other-index") else None
        return ValueOrigin(parting.kind, made, True, step.value, expected, other, again=parting.again)

    def _made_by(self, own: TracedStep, step: TracedStep, parting: Parting) -> OriginAccess:
        """The lowered write of the element of a step of the source.

        That step may lie behind a copy into the buffer that is written: where both have one shape, this one is named.
        """
        source, name = parting.stmt or stmt_of(own), buffer_of(own)
        if isinstance(source, Store) and source is parting.stmt and self._shape(name) == _shape(source.buffer):
            name = str(source.buffer.data.value)
        return OriginAccess(name, _index_of(own), stmt_of(step), source, 0, _thread(step))

    def _shape(self, name: str) -> tuple[object, ...]:
        """The shape of a buffer of the source."""
        body = self._snapshot.checkpoints[SOURCE].body
        return next((_shape(buffer) for buffer in allocated(body) if str(buffer.data.value) == name), ())

    def _read_by(self, step: TracedStep, parting: Parting) -> OriginAccess:
        """The lowered read of the element of a step. It has the source's statement only if it may do that."""
        reader, source = parting.reader, stmt_of(parting.source_reader)
        own = self._counterparts.of(stmt_of(reader))
        if own and source not in own:
            source = None
        return OriginAccess(buffer_of(step), _index_of(step), stmt_of(reader), source, 0, _thread(reader))

    def _computed(self, parting: Parting, made: OriginAccess) -> ValueOrigin:
        """A value that is made of other operands than in the source: how many of them there are tells how."""
        own, step = parting.source, parting.lowered
        reducer = self._counterparts.reducers.get(buffer_of(own))
        counts = self._terms()
        if counts is None or counts[0] == counts[1]:
            return ValueOrigin("other-value", made, True, step.value, own.value)
        right, got = counts
        kind: OriginKind = "repeated" if got > right else "incomplete"
        if reducer is None or parting.reader is None:
            return ValueOrigin(kind, made, True, step.value, own.value, None, got, total=right)
        added = OriginAccess(buffer_of(own), _index_of(own), None, reducer)
        return ValueOrigin(kind, self._read_by(own, parting), False, "", "", added, got, total=right)

    def _terms(self) -> tuple[int, int] | None:
        """Return how many terms the source and the lowered kernel add up: what both leave of inputs that are all 1.

        None where these are no whole numbers, where inputs are not floats, or the target takes 1 for another number.
        """
        source = self._snapshot.checkpoints[SOURCE]
        formats = target(self._snapshot.target).formats
        if any(dtype_of(buffer.dtype).name in formats for buffer in source.buffers):
            return None
        if self._request.given is not None or inputs.symbols(source) or inputs.integers(source):
            return None
        ones = {
            name: np.ones(shape, np.float32) if name != self._name else np.zeros(shape, np.float32)
            for name, shape in self._made.shapes.items()
        }
        request = replace(self._request, given={self._found.seed: ones}, drawn={}, course=None)
        made = levels_of(self._snapshot, request).invocations(early=self._found.early)
        left = []
        for invocation in (made.source(), made.lowered()):
            invocation.run()
            pages = invocation.left[self._name]
            value = float(pages.flat[pages.position_of(self._found.seed, self._found.element)])
            if not value.is_integer() or value < 0:
                return None
            left.append(int(value))
        return (left[0], left[1]) if left[0] > 1 else None

    def _of_stray(self, stray: StrayAccess, held: Mapping[str, HeldValues], machine: Machine) -> ValueOrigin | None:
        """The origin that the first stray access shows."""
        value = comparison.said(stray.value, machine.state.reasons)
        own = held[stray.name]
        element, _ = own.where(stray.own) if stray.own is not None else (None, None)
        if element is None and stray.copied is not None:
            element = own.copied.get(stray.copied)
        if stray.element is not None:
            element = stray.element
        access = self._access(machine, stray.name, element, stray.origin, stray.lane, stray.octet - stray.begin)
        access = replace(access, source=self._counterparts.only(stray.origin.stmt))
        found = ValueOrigin("other-value", access, stray.kind == "write", value)
        poisoned = bool(is_poison(np.array([stray.value])).any())
        if stray.kind == "write":
            return self._of_write(found, stray, own)
        writer = stray.writer
        if writer is None:
            return replace(found, kind="unwritten", other=self._source_writer(stray.name, own)) if poisoned else None
        if writer.name != stray.name and stray.untouched:
            return replace(found, kind="unwritten", other=self._source_writer(stray.name, own))
        if writer.name != stray.name:
            return replace(found, kind="overwritten", other=self._overwriter(machine, stray, writer, held))
        if poisoned and writer.copy:
            other = self._access(machine, writer.name, element, writer.origin, -1, stray.octet - writer.begin)
            return replace(found, kind="early", other=other)
        return None

    def _of_write(self, found: ValueOrigin, stray: StrayAccess, own: HeldValues) -> ValueOrigin | None:
        """The origin at a write of a value that the buffer never holds in the source."""
        if stray.element is None:
            return found
        places = np.flatnonzero(own.elements == stray.element)
        expected = {float(value) for value in own.values[places]}
        if len(expected) != 1:
            return found
        (right,) = expected
        times = stray.value / right if right else 0.0
        found = replace(found, expected=repr(right))
        if 2 <= times <= _MOST_TIMES and times == int(times) and self._is_repeated(int(times)):
            return replace(found, kind="repeated", count=int(times))
        return found

    def _is_repeated(self, times: int) -> bool:
        """Whether all elements that differ are so many times what they ought to be."""
        expected, got = self._values
        known = (expected != 0) & (expected == expected)
        return int(known.sum()) >= _MANY and bool((got[known] == times * expected[known]).all())

    def _of_output(self) -> ValueOrigin | None:
        """Elements of the output that are never written, or that have the value of others."""
        missing = np.setdiff1d(self._before.elements, self._after.elements)
        found = self._found
        if found.element in missing and found.author is not None:
            source = found.author.origin.stmt
            access = OriginAccess(self._name, found.index, None, source)
            return ValueOrigin("unwritten", access, True, found.got, found.expected, None, len(missing))
        expected, got = self._values
        differs = np.flatnonzero(~((expected == got) | ((expected != expected) & (got != got))))
        if len(differs) < _MANY or found.writer is None:
            return None
        ordered = np.argsort(expected, kind="stable")
        ranked = expected[ordered]
        left, right = np.searchsorted(ranked, got[differs]), np.searchsorted(ranked, got[differs], "right")
        if not (right - left == 1).all():
            return None
        place = int(np.searchsorted(self._elements[differs], found.element))
        if place >= len(differs) or self._elements[differs[place]] != found.element:
            return None
        other = int(self._elements[ordered[left[place]]])
        access = OriginAccess(
            self._name, found.index, found.writer.origin.stmt, _stmt_of(found.author), 0, found.writer.thread
        )
        elsewhere = OriginAccess(self._name, self._index(self._name, other))
        return ValueOrigin("other-index", access, True, found.got, found.expected, elsewhere, len(differs))

    @cached_property
    def _values(self) -> tuple[Array, Array]:
        """The output's elements that both levels wrote: expected and got."""
        self._elements, first, second = np.intersect1d(
            self._before.elements, self._after.elements, assume_unique=True, return_indices=True
        )
        return self._before.values[first].astype(np.float64), self._after.values[second].astype(np.float64)

    def _overwriter(
        self, machine: Machine, stray: StrayAccess, writer: WriteRecord, held: Mapping[str, HeldValues]
    ) -> OriginAccess:
        """The write through another buffer's name whose value was read."""
        known = held.get(writer.name)
        element, stmt = known.where(stray.value) if known is not None else (None, None)
        if element is None and known is not None and stray.others is not None:
            element = known.copied.get(stray.others)
        found = self._access(machine, writer.name, element, writer.origin, -1, stray.octet - writer.begin)
        return replace(found, source=stmt)

    def _source_writer(self, name: str, own: HeldValues) -> OriginAccess:
        """The only statement of the source that writes a buffer."""
        stmts = [stmt for stmt in own.stmts if stmt is not None]
        return OriginAccess(name, source=stmts[0] if len(stmts) == 1 else None)

    def _access(
        self, machine: Machine, name: str, element: int | None, origin: Origin, thread: int, octet: int
    ) -> OriginAccess:
        index = () if element is None else self._index(name, element)
        return OriginAccess(name, index, origin.stmt, None, octet, thread, _span(machine, name))

    def _index(self, name: str, element: int) -> tuple[int, ...]:
        shape = self._shapes.get(name, ())
        return tuple(map(int, index_of(element, shape))) if shape and element < prod(shape) else (element,)


def _is_same(one: ValueOrigin, other: ValueOrigin) -> bool:
    return (one.kind, one.access.buffer) == (other.kind, other.access.buffer)


def _thread(step: TracedStep | None) -> int:
    return -1 if step is None or step.lane is None else step.lane


def _shape(buffer: Buffer) -> tuple[object, ...]:
    return tuple(dim.value for dim in buffer.shape)


def _index_of(step: TracedStep) -> tuple[int, ...]:
    return tuple(int(part) for part in index_in(step).split(",") if part.strip())


def _stmt_of(writer: Writer | None) -> Stmt | None:
    return None if writer is None else writer.origin.stmt


def _span(machine: Machine, name: str) -> tuple[int, int] | None:
    """The first and the last byte of a buffer in memory that it shares with others."""
    places = {str(pointer.value): place for pointer, place in machine.function.places}
    for stmt in statements(machine.function.body):
        if isinstance(stmt, Alloc) and stmt.buffer.name == name and str(stmt.buffer.data.value) in places:
            first = places[str(stmt.buffer.data.value)]
            return first, first + machine.pointers.size(stmt.buffer) - 1
    return None
