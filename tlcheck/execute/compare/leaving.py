"""Atomics of the source whose operand is out of a tensor's bounds: TileLang leaves the whole atomic out there.

A plain statement reads 0 there. What an atomic comes to nobody says, so that an output that differs is the author's.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cached_property

from tlcheck import reasons
from tlcheck.execute.compare.faults import Fault, Faults
from tlcheck.execute.compare.output_outcome import OutputOutcome
from tlcheck.execute.compare.source_exits import SourceExits
from tlcheck.execute.observe.tensor_exits import TensorExit
from tlcheck.execute.worlds.levels import BothLevels
from tlcheck.program.mixing import changed_by, is_unharmed, operation_of
from tlcheck.program.roles import independent
from tlcheck.reasons import Reason
from tlcheck.witness import indexed

_OUTSIDE = ", which is out of bounds"


@dataclass(frozen=True)
class LeavingAtomics:
    """These atomics on one draw, looked for where an output is refuted."""

    levels: BothLevels
    exits: SourceExits

    @cached_property
    def found(self) -> tuple[TensorExit, ...]:
        """Return where they leave which tensors, in a run of the source."""
        strayed = self.levels.source_run[0].strayed
        if not any(operation_of(stmt) for stmt in strayed):
            return ()
        left_by = self.exits.of_accesses
        atomic = [left for left in left_by if operation_of(left.stmt) and not left.stores and left.mixed]
        return tuple(left for left in atomic if not is_unharmed(left.stmt, left.buffer))

    def of_refuted(self, outcome: OutputOutcome) -> OutputOutcome:
        """An output that may depend on such an atomic is not refuted for it."""
        if outcome.verdict != "refuted" or not self.levels.plain:
            return outcome
        alone = independent(self.levels.source)
        last = {str(b.data.value) for b in self.levels.roles.outputs if b.data.uid in alone}
        for left in self.found:
            changed = changed_by(left.stmt)
            if outcome.name in changed or not changed <= last:
                return OutputOutcome(outcome.name, "undecided", _reason(left))
        return outcome

    def faults(self, of: Faults, open_: Collection[Reason]) -> Iterator[Fault]:
        """The faults that outputs are undecided for."""
        for left in self.found if any(reason.endswith(_OUTSIDE) for reason in open_) else ():
            if _reason(left) in open_:
                yield of.of_atomic(left, _reason(left))


def _reason(left: TensorExit) -> Reason:
    element = indexed(left.buffer, left.index)
    return Reason(reasons.UNSET, f"as written, an atomic reads {element}{_OUTSIDE}")
