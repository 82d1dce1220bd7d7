"""Negative indices of the source that TileLang counts from the end of a tensor, and the source does not for certain.

A plain read there is 0, as TileLang guards it. TileLang counts an index from the end instead if it can prove that it is
negative, from the branch around it for example. An output that agrees only with these indices counted so is the
author's: they are out of bounds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from tlcheck import reasons
from tlcheck.execute.compare.faults import Fault, Faults
from tlcheck.execute.compare.output_outcome import OutputOutcome
from tlcheck.execute.compare.output_verdicts import OutputVerdicts
from tlcheck.execute.compare.source_exits import SourceExits
from tlcheck.execute.observe.tensor_exits import TensorExit, TensorExitsOfRun
from tlcheck.execute.stops import Stopped
from tlcheck.execute.worlds import inputs
from tlcheck.execute.worlds.invocation import Invocation
from tlcheck.execute.worlds.levels import BothLevels
from tlcheck.program.negatives import counted_from_end, may_be_negative
from tlcheck.reasons import Reason
from tlcheck.snapshot.ir import Function, Stmt, Store
from tlcheck.snapshot.walk import expressions, postorder, statements
from tlcheck.witness import indexed

_NEGATIVE = ", which is out of bounds: TileLang counts it from the end"


@dataclass(frozen=True)
class IndicesFromEnd:
    """These indices on one draw, looked for where an output is refuted. lowered: the lowered kernel, which has run."""

    levels: BothLevels
    draw: inputs.Draw
    exits: SourceExits
    lowered: Invocation

    def of_refuted(self, outcome: OutputOutcome) -> OutputOutcome:
        """An output that agrees with negative indices counted from the end is not refuted."""
        if outcome.verdict != "refuted" or not self.levels.plain or self._counted is None:
            return outcome
        source, levels, found = self._counted
        if OutputVerdicts(levels, self.draw).of(outcome.name, source, self.lowered).verdict != "agreed":
            return outcome
        return OutputOutcome(outcome.name, "undecided", _reason(found[0]))

    def faults(self, of: Faults, outputs: Sequence[OutputOutcome]) -> Iterator[Fault]:
        """The faults that outputs are undecided for."""
        open_ = {outcome.reason for outcome in outputs if outcome.reason.endswith(_NEGATIVE)}
        for left in self._counted[2] if open_ and self._counted is not None else ():
            yield of.of_negative(left, _reason(left))

    @cached_property
    def _counted(self) -> tuple[Invocation, BothLevels, Sequence[TensorExit]] | None:
        """The source with such indices counted from the end, which has run, and their exits; None where there are none.

        An index that is not always negative leaves the tensor at its end then: it is no such index.
        """
        source = self.levels.source
        if not any(map(_has_negative, statements(source.body))):
            return None
        found = [left for left in (*self.exits.of_accesses, *self.exits.of_regions) if min(left.index) < 0]
        while found:
            levels = self.levels.with_source(_with_counted(source, found))
            invocation, leaving = levels.source_invocation(self.draw), TensorExitsOfRun()
            try:
                invocation.run(leaving)
            except Stopped:
                return None
            beyond = {(left.stmt.line, left.buffer) for left in (*leaving.found, *leaving.regions)}
            kept = [left for left in found if (left.stmt.line, left.buffer) not in beyond]
            if len(kept) == len(found):
                return invocation, levels, found
            found = kept
        return None


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


def _reason(left: TensorExit) -> Reason:
    act = "stores to" if left.stores else "reads"
    return Reason(reasons.UNSET, f"as written, a statement {act} {indexed(left.buffer, left.index)}{_NEGATIVE}")
