"""Down from a wrong element to the first access that differs: both trees of writes are followed side by side.

A pair of steps, one of each level, is the same element with different values. Where one operand of each differs, that
pair is next. Where the writes, the inputs or the operation differ, it is the origin.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from tlcheck.execute.compare.counterparts import Counterparts
from tlcheck.execute.compare.equal_steps import buffer_of, equal, loops_of, stmt_of, unlike
from tlcheck.execute.compare.provenance import TracedStep
from tlcheck.snapshot.ir import If, Stmt, Store
from tlcheck.snapshot.operators import BINARY

PartingKind = Literal[
    "unwritten",
    "early",
    "late",
    "unordered",
    "overwritten",
    "unguarded",
    "other-index",
    "other-operand",
    "other-value",
    "computed",
]


@dataclass(frozen=True)
class Parting:
    """A record of where both trees part. lowered, source: the two steps; reader: the lowered step that reads the first
    one, None where it is the output itself; source_reader: of the source.

    guard: the condition that keeps the lowered kernel from the source's write. again: a step of a loop in which the
    lowered kernel makes once more a write that the source makes before the loop. stmt: the statement of the source that
    the lowered write does, where that is another one.
    """

    kind: PartingKind
    lowered: TracedStep
    source: TracedStep
    reader: TracedStep | None = None
    source_reader: TracedStep | None = None
    guard: If | None = None
    again: tuple[str, int] | None = None
    stmt: Stmt | None = None


class Descent:
    """Follows two trees of one kernel.

    copied: of each buffer, where elements of tensors are copied to. writes_last: says of a lowered step which statement
    writes its cell last of all. racing: the ids of lowered statements of which nothing orders two. elsewhere: says of a
    step of the source and a lowered one which other element of the buffer the lowered one is; empty where it is none.
    """

    def __init__(
        self,
        counterparts: Counterparts,
        copied: Mapping[str, Mapping[tuple[str, str], str]],
        writes_last: Callable[[TracedStep], Stmt | None],
        racing: Collection[tuple[int, int]] = (),
        elsewhere: Callable[[TracedStep, TracedStep], str] = lambda source, lowered: "",
    ) -> None:
        self._counterparts, self._copied, self._writes_last = counterparts, copied, writes_last
        self._racing, self._elsewhere = racing, elsewhere

    def parting(
        self,
        source: TracedStep,
        lowered: TracedStep,
        reader: TracedStep | None = None,
        source_reader: TracedStep | None = None,
    ) -> Parting | None:
        """Return where two steps that differ part; None where that cannot be told."""
        *_, (source, source_reader) = self._hops(source, source_reader, self._counterparts.lowered_names)
        hops = list(self._hops(lowered, reader, self._counterparts.names))
        left = next((hop for hop in hops if self._is_left_over(source, source_reader, *hop)), None)
        if left is not None:
            return Parting("overwritten", left[0], source, left[1], source_reader)
        lowered, reader = hops[-1]
        by = reader, source_reader
        if lowered.origin is None:
            return self._unmade(source, lowered, *by)
        if reader is not None and self._is_racing(reader, lowered) and not self._is_own(source, lowered):
            return Parting("unordered", lowered, source, *by)
        if source.origin is None:
            return self._by_a_store(source, lowered, *by) if source.input else None
        if (
            reader is not None
            and not lowered.is_poison
            and self._name(source) in self._counterparts.reducers
            and self._name(reader) != self._name(source)
        ):
            return Parting("computed", lowered, source, *by)
        again = self._again(source, lowered)
        if again is not None:
            step, own, loop = again
            return Parting("overwritten", step, own, lowered, source, again=loop)
        other, called = self._other_than(source, lowered), self._name(lowered)
        is_in_place = called not in self._counterparts.names or called == self._name(source)
        if is_in_place and other is not None and source.origin.stmt is not None:
            return self._by_other_statements(source, lowered, other, *by)
        return self._of_operands(source, lowered)

    def _hops(
        self, step: TracedStep, reader: TracedStep | None, known: frozenset[str]
    ) -> Iterator[tuple[TracedStep, TracedStep | None]]:
        """Yield a step and those behind copies through buffers that the other level does not have, each with the copy
        that reads it.
        """
        yield step, reader
        while step.origin is not None and not self._is_known(step, known) and not _computes(step.origin.stmt):
            same = [source for source in step.sources if _is_copied(source, step) and not source.input]
            if len(same) != 1:
                break
            step, reader = same[0], step
            yield step, reader

    def _is_left_over(
        self, source: TracedStep, source_reader: TracedStep | None, lowered: TracedStep, reader: TracedStep | None
    ) -> bool:
        """Whether a shared buffer is read where merged memory holds what a statement left there for another buffer.

        A reader of both buffers has what it reads of the other one beside it.
        """
        if source_reader is None or reader is None or buffer_of(lowered) not in self._counterparts.merged:
            return False
        own, stmts = self._name(source), self._counterparts
        left = stmts.in_shared_memory(stmt_of(lowered))
        if own not in stmts.accessed(stmt_of(reader)).reads & stmts.shared or not left or own in left:
            return False
        if left & stmts.added(stmt_of(reader)):
            return False
        known = [step for step in reader.sources if step is not lowered]
        others = [step for step in source_reader.sources if self._name(step) in left]
        return all(any(equal(step.value, other.value) for step in known) for other in others)

    def _is_own(self, source: TracedStep, lowered: TracedStep) -> bool:
        """Whether a lowered write is that which the source reads there: its value is wrong, whatever the order."""
        return self._is_of_same(source, lowered) and loops_of(source) == tuple(
            loop for loop in loops_of(lowered) if loop[0] in dict(loops_of(source))
        )

    def _is_known(self, step: TracedStep, known: frozenset[str]) -> bool:
        """Whether the other level has what a step writes, also where the step has the name of all shared memory."""
        stmt = stmt_of(step)
        return self._name(step) in known or bool(self._counterparts.accessed(stmt).writes & known)

    def _is_racing(self, reader: TracedStep, lowered: TracedStep) -> bool:
        """Whether nothing orders a read and the write that it sees."""
        if reader.origin is None or lowered.origin is None:
            return False
        pair = id(reader.origin.stmt), id(lowered.origin.stmt)
        return pair in self._racing or pair[::-1] in self._racing

    def _name(self, step: TracedStep) -> str:
        return self._counterparts.name(buffer_of(step))

    def _unmade(
        self, source: TracedStep, lowered: TracedStep, reader: TracedStep | None, source_reader: TracedStep | None
    ) -> Parting | None:
        """An element that the lowered kernel never writes."""
        if source.origin is not None:
            stmt = source.origin.stmt
            guard = None if stmt is None else self._counterparts.guard(stmt)
            return Parting("unwritten", lowered, source, reader, source_reader, guard)
        if source.input and lowered.input and reader is not None:
            if source.element == lowered.element:
                return None  # an earlier kernel wrote it
            same = self._name(source) == self._name(lowered)
            return Parting("other-index" if same else "other-operand", lowered, source, reader, source_reader)
        return None

    def _by_a_store(
        self, source: TracedStep, lowered: TracedStep, reader: TracedStep | None, source_reader: TracedStep | None
    ) -> Parting | None:
        """Tell what a store has left where the source has an element of a tensor: it stored there, or in its place."""
        stmt = stmt_of(lowered)
        is_own = isinstance(stmt, Store) and str(stmt.buffer.name) == buffer_of(lowered)
        if reader is not None and source_reader is not None and is_own and self._name(source) != self._name(lowered):
            return Parting("computed", reader, source_reader)
        return Parting("overwritten", lowered, source, reader, source_reader)

    def _again(self, source: TracedStep, lowered: TracedStep) -> tuple[TracedStep, TracedStep, tuple[str, int]] | None:
        """A write among the operands that comes again in a later step of a loop of the source."""
        known = {name for name, _ in loops_of(source)}
        for step in lowered.sources:
            for own in source.sources:
                outer = {name for name, _ in loops_of(own)}
                loop = next((one for one in loops_of(step) if one[0] in known - outer and one[1]), None)
                if loop is not None and equal(own.value, step.value) and self._is_of_same(own, step):
                    return step, own, loop
        return None

    def _is_of_same(self, source: TracedStep, lowered: TracedStep) -> bool:
        """Whether a lowered write is that of the source's statement; one that is not known, of its buffer."""
        if source.origin is None or lowered.origin is None:
            return False
        other = self._counterparts.only(lowered.origin.stmt)
        return other is source.origin.stmt if other is not None else self._name(lowered) == self._name(source)

    def _by_other_statements(
        self,
        source: TracedStep,
        lowered: TracedStep,
        other: Stmt,
        reader: TracedStep | None,
        source_reader: TracedStep | None,
    ) -> Parting | None:
        """The lowered write that stands is that of another statement of the source than in the source."""
        assert source.origin is not None
        assert source.origin.stmt is not None
        own, by = source.origin.stmt, (reader, source_reader)
        is_later = self._comes_later(source_reader, lowered, other)
        if reader is not None and not is_later and (there := self._elsewhere(source, lowered)):
            read = replace(lowered, element=f"{buffer_of(source)}[{there}]")
            return Parting("other-index", read, source, *by)
        if self._counterparts.is_before(other, own):
            is_late = own in self._counterparts.of(self._writes_last(lowered))
            guard = None if is_late else self._counterparts.guard(own)
            return Parting("early" if is_late else "unwritten", lowered, source, *by, guard)
        if is_later:
            return Parting("late", lowered, source, *by)
        is_done = source_reader is not None and source_reader.origin is not None and source_reader.origin.stmt is other
        is_guarded = self._counterparts.is_guarded(other) and not is_done  # the source does it, so its condition holds
        kind: PartingKind = "unguarded" if is_guarded else "other-index"
        return Parting(kind, lowered, source, None, None, stmt=other)

    def _other_than(self, source: TracedStep, lowered: TracedStep) -> Stmt | None:
        """The statement of the source whose write a lowered one is, where that is not the one of a step of the source.

        The last one of several that it may be stands for all of them, if all come before that of the step.
        """
        found, own = self._counterparts.of(stmt_of(lowered)), stmt_of(source)
        if not found or own is None or own in found:
            return None
        is_known = len(found) == 1 or all(self._counterparts.is_before(stmt, own) for stmt in found)
        return found[-1] if is_known else None

    def _comes_later(self, reader: TracedStep | None, lowered: TracedStep, writes: Stmt) -> bool:
        """Whether a read of the source stands before the statement whose write the lowered kernel reads.

        A loop around both is in the same step for both, or in a later one for the write.
        """
        if reader is None or reader.origin is None or reader.origin.stmt is None or reader.origin.stmt is writes:
            return False
        steps = dict(loops_of(reader))
        apart = [number - steps[name] for name, number in loops_of(lowered) if name in steps and number != steps[name]]
        return apart[0] > 0 if apart else self._counterparts.is_before(reader.origin.stmt, writes)

    def _of_operands(self, source: TracedStep, lowered: TracedStep) -> Parting | None:
        lowered = self._made(lowered)
        ours, theirs = unlike(lowered, source), unlike(source, lowered)
        if lowered.products and source.products:
            return self._of_products(source, lowered)
        pairs = list(_by_name(theirs, ours))
        chosen = next((pair for pair in pairs if not pair[1].input), None) or next(iter(pairs), None)
        if chosen is None and len(ours) == len(theirs) == 1:
            chosen = theirs[0], ours[0]
        is_certain = len(ours) == len(theirs) or (chosen is not None and chosen[0].input and chosen[1].input)
        if chosen is None or not is_certain:
            return Parting("computed" if ours or theirs else "other-value", lowered, source)
        own, step = self._of_one_buffer(chosen, source)
        is_other = not self._is_known(step, frozenset((self._name(own),)))
        if is_other and _is_partial(step, lowered) and not _is_partial(own, source):
            return Parting("computed", lowered, source)
        *_, (stored, _) = self._hops(step, None, self._counterparts.names)
        moved = self._moved(own, stored)
        other = self._counterparts.only(stmt_of(step))
        is_later = other is not None and self._comes_later(source, step, other)
        if moved is None and not is_later and (there := self._elsewhere(own, stored)):
            moved = replace(step, element=f"{buffer_of(own)}[{there}]")
        if moved is not None:
            return Parting("other-index", moved, own, lowered, source)
        return self.parting(own, step, lowered, source)

    def _made(self, lowered: TracedStep) -> TracedStep:
        """The step that computes a value: a store may copy registers that only the lowered kernel has."""
        while len(lowered.sources) == 1 and not _computes(stmt_of(lowered)):
            (step,) = lowered.sources
            if (
                step.origin is None
                or not equal(step.value, lowered.value)
                or self._is_known(step, self._counterparts.names)
            ):
                break
            lowered = step
        return lowered

    def _of_one_buffer(
        self, chosen: tuple[TracedStep, TracedStep], source: TracedStep
    ) -> tuple[TracedStep, TracedStep]:
        """The two operands, the source's one of the buffer to which the lowered one was stored, if it has one such.

        Shared memory hides the buffer of a lowered operand. By its value alone it may be any of those that are equal.
        """
        own, step = chosen
        stmt = stmt_of(step)
        if not isinstance(stmt, Store) or str(stmt.buffer.name) in (buffer_of(step), buffer_of(own)):
            return chosen
        alike = [operand for operand in source.sources if equal(operand.value, own.value)]
        same = [operand for operand in alike if buffer_of(operand) == str(stmt.buffer.name)]
        return (same[0], step) if len(same) == 1 else chosen

    def _moved(self, source: TracedStep, lowered: TracedStep) -> TracedStep | None:
        """The element that a lowered operand is, if it is another one of the buffer: what was copied to that."""
        name = self._name(source)
        leaf = next((s for s in lowered.sources if s.input and equal(s.value, lowered.value)), None)
        if leaf is None or not (self._name(lowered) == name or self._is_of_same(source, lowered)):
            return None
        there = self._copied.get(name, {}).get((buffer_of(leaf), index_in(leaf)))
        if there is None or there == index_in(source):
            return None
        return TracedStep(f"{name}[{there}]", lowered.value, lowered.origin, lowered.lane)

    def _of_products(self, source: TracedStep, lowered: TracedStep) -> Parting | None:
        """Sums of products of rows and columns: the rows and columns are told by one term of each."""
        own = {buffer_of(leaf): leaf for leaf in leaves(source) if leaf.input}
        got = {buffer_of(leaf): leaf for leaf in leaves(lowered) if leaf.input}
        changes = {name: list(_changes(own[name], got[name])) for name in own.keys() & got.keys()}
        for name, changed in changes.items():
            others = [pair for other, pairs in changes.items() if other != name for _, pair in pairs]
            moved = [axis for axis, pair in changed if pair not in others]  # what both have is the term's
            if moved:
                indices = index_in(own[name]).split(", ")
                for axis in moved:
                    indices[axis] = index_in(got[name]).split(", ")[axis]
                step = replace(got[name], element=f"{name}[{', '.join(indices)}]")
                return Parting("other-index", step, own[name], lowered, source)
        return Parting("computed", lowered, source)


def index_in(step: TracedStep) -> str:
    """`3, 17`: the index of a step."""
    return step.element.partition("[")[2].rstrip("]")


def leaves(step: TracedStep) -> Iterator[TracedStep]:
    """Yield what a step is made of in the end."""
    if not step.sources:
        yield step
    for source in step.sources:
        yield from leaves(source)


def _is_copied(source: TracedStep, step: TracedStep) -> bool:
    """Whether a step has the value of what it is made of. An integer that nobody wrote has any."""
    return equal(source.value, step.value) or (source.is_poison and len(step.sources) == 1)


def _computes(stmt: Stmt | None) -> bool:
    """Whether a statement stores what it makes of several values: one that is the same as before is no copy of one."""
    if not isinstance(stmt, Store):
        return False
    value = stmt.value
    while value.op == "cast":
        value = value.args[0]
    return value.op in BINARY


def _by_name(source: list[TracedStep], lowered: list[TracedStep]) -> Iterator[tuple[TracedStep, TracedStep]]:
    """Operands of one buffer, if each level has one of it."""
    for own in source:
        same = [step for step in lowered if buffer_of(step) == buffer_of(own)]
        if len(same) == 1 and sum(buffer_of(step) == buffer_of(own) for step in source) == 1:
            yield own, same[0]


def _is_partial(step: TracedStep, reader: TracedStep) -> bool:
    """Whether a step is a partial result of its reader: of one buffer, or written and read by one statement."""
    is_one = step.origin is not None and reader.origin is not None and step.origin.stmt is reader.origin.stmt
    return is_one or buffer_of(step) == buffer_of(reader)


def _changes(source: TracedStep, lowered: TracedStep) -> Iterator[tuple[int, tuple[str, str]]]:
    """The axes in which two elements differ, with both indices."""
    own, got = index_in(source).split(", "), index_in(lowered).split(", ")
    yield from ((axis, pair) for axis, pair in enumerate(zip(own, got, strict=False)) if pair[0] != pair[1])
