"""The origin of a wrong output: the first access, in execution order, in which lowered differs from source.

One block runs once more at both levels. Of the source the values are kept that each buffer held. In the lowered kernel
the first access of a value that its buffer never held is the origin; without one, the elements that are never written,
or have the value of another element.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import Literal

import numpy as np

from tlcheck.execute.compare import outcome as comparison
from tlcheck.execute.compare.outcome import Difference
from tlcheck.execute.compare.writers import Writer
from tlcheck.execute.machine import Machine
from tlcheck.execute.memory.plain import evaluated, index_of
from tlcheck.execute.memory.state import Origin
from tlcheck.execute.memory.values import Array, is_poison
from tlcheck.execute.observe.held_values import HeldValues, ValueRecorder
from tlcheck.execute.observe.strays import StrayAccess, StrayObserver, WriteRecord
from tlcheck.execute.reasons import Illegal, Stopped
from tlcheck.execute.request import Request
from tlcheck.execute.schedule.launches import kernels
from tlcheck.execute.worlds.courses import levels_of
from tlcheck.execute.worlds.levels import Invocations
from tlcheck.snapshot.ir import Alloc, Snapshot, Stmt
from tlcheck.snapshot.walk import statements

OriginKind = Literal["overwritten", "early", "unwritten", "other-index", "repeated", "other-value"]
_MANY = 8  # elements that have the value of another one: by chance it is not
_MOST_TIMES = 64


@dataclass(frozen=True, slots=True)
class OriginAccess:
    """An access of an element of a buffer.

    stmt: of the lowered kernel, None where it has none. source: the statement of the source that does the same, where
    that is known. index: in the source's shape; empty where a layout hides it. octet: of the element, in its buffer.
    thread: -1 where no thread does it. span: the first and the last byte of the buffer in memory that it shares.
    """

    buffer: str
    index: tuple[int, ...] = ()
    stmt: Stmt | None = None
    source: Stmt | None = None
    octet: int = 0
    thread: int = -1
    span: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class ValueOrigin:
    """The first access that differs from the source. writes: whether it is a write.

    value: what the access reads or stores; expected: what it ought to, empty where that is not known. other: the write
    that made it wrong, or the element that has the value. count: elements, or times.
    """

    kind: OriginKind
    access: OriginAccess
    writes: bool
    value: str
    expected: str = ""
    other: OriginAccess | None = None
    count: int = 0


def origin_of(snapshot: Snapshot, request: Request, name: str, found: Difference) -> ValueOrigin | None:
    """The origin of a difference in an output; None where it is not known for certain.

    request: of the block and the seed in which the output is wrong.
    """
    if found.rounded or len(kernels(snapshot.checkpoints[request.checkpoint])) > 1:
        return None
    try:
        levels = levels_of(snapshot, replace(request, blocks=found.blocks[:1] or request.blocks, seeds=(found.seed,)))
        return _Search(levels.invocations(early=found.early), name, found).origin()
    except Stopped:
        return None


class _Search:
    """Both levels of one block."""

    def __init__(self, made: Invocations, name: str, found: Difference) -> None:
        self._made, self._name, self._found = made, name, found

    def origin(self) -> ValueOrigin | None:
        source = self._made.source()
        recorders: list[ValueRecorder] = []

        def recording(machine: Machine) -> Sequence[ValueRecorder]:
            recorders.append(ValueRecorder(machine))
            return recorders[-1:]

        source.run(recording)
        held = recorders[-1].held
        self._shapes = dict(self._made.shapes)
        shared = set()
        for stmt in statements(source.kernel.body):
            if isinstance(stmt, Alloc) and all(e.op == "int" for e in stmt.buffer.shape):
                self._shapes[stmt.buffer.name] = tuple(int(evaluated(e, {})) for e in stmt.buffer.shape)
                if stmt.buffer.scope.startswith("shared"):
                    shared.add(stmt.buffer.name)
        lowered = self._made.lowered()
        observers: list[StrayObserver] = []

        def observing(machine: Machine) -> Sequence[StrayObserver]:
            observers.append(StrayObserver(machine, held, frozenset(shared)))
            return observers[-1:]

        with suppress(Illegal):  # a stray access may come before it
            lowered.run(observing)
        seed = self._found.seed
        self._before = source.left[self._name].outcome(seed)
        self._after = comparison.left_of(lowered.left, self._name, seed)
        stray = observers[-1].found
        return self._of_output() if stray is None else self._of_stray(stray, held, observers[-1].machine)

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
        found = ValueOrigin("other-value", access, stray.kind == "write", value)
        poisoned = bool(is_poison(np.array([stray.value])).any())
        if stray.kind == "write":
            return self._of_write(found, stray, own)
        writer = stray.writer
        if writer is None:
            return replace(found, kind="unwritten", other=self._source_writer(stray.name, own)) if poisoned else None
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
