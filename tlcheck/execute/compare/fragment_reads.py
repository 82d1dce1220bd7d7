"""Elements of fragments that one thread of the source stores and others read: they are in its registers alone."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property

from tlcheck import reasons
from tlcheck.execute.compare.faults import Fault, Faults
from tlcheck.execute.compare.output_outcome import OutputOutcome
from tlcheck.execute.observe.foreign_reads import ForeignRead, ForeignReadsOfRun
from tlcheck.execute.stops import Stopped
from tlcheck.execute.worlds import inputs
from tlcheck.execute.worlds.levels import BothLevels
from tlcheck.program.divergence import fragments_of_threads
from tlcheck.program.flow import Flow
from tlcheck.reasons import Reason


@dataclass(frozen=True)
class FragmentReads:
    """These reads on one draw.

    A plain read is the author's fault in any case. Which threads execute T.Parallel or a tile operator for an element
    is TileLang's choice: such a read is a fault where an output that depends on it is wrong.
    """

    levels: BothLevels
    draw: inputs.Draw

    @cached_property
    def found(self) -> Sequence[ForeignRead]:
        """Return these reads, seen in a run of the source."""
        if not fragments_of_threads(self.levels.source):
            return ()
        reading = ForeignReadsOfRun()
        with suppress(Stopped):
            self.levels.plainly().source_invocation(self.draw).run(reading)
        return reading.found

    def of_refuted(self, outcome: OutputOutcome) -> OutputOutcome:
        """An output that depends on such a read is not refuted for it."""
        if outcome.verdict != "refuted" or not self.levels.plain or not self.found:
            return outcome
        flow = Flow(self.levels.source, outcome.name)
        read = next((read for read in self.found if read.uid in flow.buffers), None)
        return outcome if read is None else OutputOutcome(outcome.name, "undecided", _reason(read))

    def faults(self, of: Faults, open_: Collection[Reason]) -> Iterator[Fault]:
        """The faults, those that outputs are undecided for among them."""
        for read in self.found:
            reason = _reason(read)
            if read.lane >= 0 or reason in open_:
                yield of.of_fragment(read, reason)


def _reason(read: ForeignRead) -> Reason:
    return Reason(reasons.UNSET, f"as written, it depends on {read.buffer}, a fragment that single threads store")
