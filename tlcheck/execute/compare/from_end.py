"""Negative indices of the source that TileLang may count from the end of a tensor, or guard as it does others.

TileLang counts an index from the end if it can prove that it is negative: from the branch around it, for example, but
not from the size of a tensor that is only known when the kernel runs. Else a read there is 0, and a store is dropped.
The source counts those from the end that are negative by the ranges of their variables. An output that is right only
with the other reading of such indices is the author's: they are out of bounds.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from tlcheck import reasons
from tlcheck.execute.compare.faults import Fault, Faults
from tlcheck.execute.compare.output_outcome import OutputOutcome
from tlcheck.execute.compare.output_verdicts import OutputVerdicts
from tlcheck.execute.compare.source_exits import SourceExits
from tlcheck.execute.observe.tensor_exits import TensorExit, TensorExitsOfRun
from tlcheck.execute.stops import LeavesAxis, Stopped
from tlcheck.execute.worlds import inputs
from tlcheck.execute.worlds.invocation import Invocation
from tlcheck.execute.worlds.levels import BothLevels
from tlcheck.program.negatives import counted_from_end, may_be_negative
from tlcheck.reasons import Reason
from tlcheck.snapshot.ir import Function, Stmt, Store
from tlcheck.snapshot.walk import expressions, postorder, statements
from tlcheck.witness import indexed

_COUNTED = ", which is out of bounds: TileLang counts it from the end"
_GUARDED = ", which is out of bounds: TileLang does not count it from the end"


@dataclass(frozen=True)
class _OtherReading:
    """A run of the source that reads negative indices another way. found: where they leave a tensor."""

    source: Invocation
    levels: BothLevels
    found: Sequence[TensorExit]
    words: str

    def reason(self, left: TensorExit) -> Reason:
        """Why outputs that depend on such an index are undecided."""
        act = "stores to" if left.stores else "reads"
        return Reason(reasons.UNSET, f"as written, a statement {act} {indexed(left.buffer, left.index)}{self.words}")


@dataclass(frozen=True)
class IndicesFromEnd:
    """These indices on one draw, looked for where an output is refuted. lowered: the lowered kernel, which has run."""

    levels: BothLevels
    draw: inputs.Draw
    exits: SourceExits
    lowered: Invocation

    def of_refuted(self, outcome: OutputOutcome) -> OutputOutcome:
        """An output that another reading of negative indices does not refute is not refuted."""
        if outcome.verdict != "refuted" or not self.levels.plain:
            return outcome
        for reading in self._readings():
            verdicts = OutputVerdicts(reading.levels, self.draw)
            if verdicts.of(outcome.name, reading.source, self.lowered).verdict != "refuted":
                return OutputOutcome(outcome.name, "undecided", reading.reason(reading.found[0]))
        if self._stop is not None and self._stop.buffer == outcome.name:
            return OutputOutcome(outcome.name, "undecided", self._stop.reason)
        return outcome

    def faults(self, of: Faults, open_: Collection[Reason]) -> Iterator[Fault]:
        """The faults that outputs are undecided for."""
        negative = any(reason.endswith((_COUNTED, _GUARDED)) for reason in open_)
        for reading in self._readings() if negative else ():
            if reading.reason(reading.found[0]) in open_:
                for left in reading.found:
                    yield of.of_negative(left, reading.reason(left), counted=reading.words == _COUNTED)

    def _readings(self) -> Iterator[_OtherReading]:
        """The other readings that there are."""
        if any(map(_has_negative, statements(self.levels.source.body))):
            yield from (reading for reading in (self._counted, self._guarded) if reading is not None)

    @cached_property
    def _stop(self) -> LeavesAxis | None:
        """The stop of the source, where no negative index but a constant counts from the end."""
        if any(map(_has_negative, statements(self.levels.source.body))):
            try:
                self.levels.guarding_negatives().source_invocation(self.draw).run()
            except LeavesAxis as stop:
                return stop
            except Stopped:
                pass
        return None

    @cached_property
    def _counted(self) -> _OtherReading | None:
        """More of them counted from the end.

        An index that is not always negative leaves the tensor at its end then: it is no such index.
        """
        source = self.levels.source
        found = [left for left in self.exits.of_all if min(left.index) < 0]
        while found:
            levels = self.levels.with_source(_with_counted(source, found))
            invocation, leaving = levels.source_invocation(self.draw), TensorExitsOfRun()
            try:
                invocation.run(leaving)
            except Stopped:
                return None
            left_by = (*leaving.found, *leaving.regions, *leaving.atomics)
            beyond = {(left.stmt.line, left.buffer) for left in left_by}
            kept = [left for left in found if (left.stmt.line, left.buffer) not in beyond]
            if len(kept) == len(found):
                return _OtherReading(invocation, levels, found, _COUNTED)
            found = kept
        return None

    @cached_property
    def _guarded(self) -> _OtherReading | None:
        """None of them counted from the end but constants."""
        found = [left for left in self.exits.of_guarded if min(left.index) < 0]
        if not found:
            return None
        levels = self.levels.guarding_negatives()
        invocation = levels.source_invocation(self.draw)
        try:
            invocation.run()
        except Stopped:
            return None
        return _OtherReading(invocation, levels, found, _GUARDED)


def _with_counted(source: Function, found: Sequence[TensorExit]) -> Function:
    where: dict[Stmt, set[tuple[str, int]]] = {}
    for left in found:
        axes = [axis for axis, index in enumerate(left.index) if index < 0]
        where.setdefault(left.stmt, set()).update((left.buffer, axis) for axis in axes)
    return counted_from_end(source, where)


def _has_negative(stmt: Stmt) -> bool:
    """Whether an index of a statement may be negative."""
    indices = [index for e in postorder(expressions(stmt)) if e.op == "load" for index in e.args]
    return any(map(may_be_negative, (*indices, *(stmt.indices if isinstance(stmt, Store) else ()))))
