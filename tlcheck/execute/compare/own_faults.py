"""Tell what is the author's own: the faults of the source that an execution of both levels shows."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod

from tlcheck import reasons
from tlcheck.execute.compare.faults import STRAY, UNCOMMITTED, Fault, Faults, merged
from tlcheck.execute.compare.fragment_reads import FragmentReads
from tlcheck.execute.compare.from_end import IndicesFromEnd
from tlcheck.execute.compare.leaving import LeavingAtomics
from tlcheck.execute.compare.missed import said_of
from tlcheck.execute.compare.output_outcome import OutputOutcome
from tlcheck.execute.compare.output_verdicts import UNSET_MEMORY
from tlcheck.execute.compare.own_order import OwnOrder
from tlcheck.execute.compare.partial_tiles import PartialTiles, reason_of
from tlcheck.execute.compare.source_exits import SourceExits
from tlcheck.execute.compare.unset import UnsetMemory
from tlcheck.execute.compare.warnings import REPAIRED, exits_of, idle_waits_of, suspicious, unwritten_of
from tlcheck.execute.observe.attribution import Attributed
from tlcheck.execute.observe.races import RACING
from tlcheck.execute.observe.tile_threads import OperatorsReached, Participation
from tlcheck.execute.request import LOWERED
from tlcheck.execute.schedule.launches import kernels, threads_of
from tlcheck.execute.stops import Illegal, Overrun, Stopped
from tlcheck.execute.worlds import inputs
from tlcheck.execute.worlds.levels import BothLevels, is_of_barrier
from tlcheck.program.parted_tiles import is_tile_call
from tlcheck.reasons import UNSAID, Reason
from tlcheck.snapshot.ir import Stmt
from tlcheck.snapshot.walk import shared_names

OwnReads = LeavingAtomics | IndicesFromEnd | FragmentReads | PartialTiles
_UNGUARDED = "tl.disable_safe_memory_legalize"  # with it TileLang guards no access of a tensor


@dataclass(frozen=True)
class OwnFaults:
    """The source on one draw, and what is wrong with it."""

    levels: BothLevels
    draw: inputs.Draw
    exits: SourceExits

    def of_stop(self, illegal: Illegal) -> tuple[Reason, Fault | None]:
        """Why the lowered kernel stops where the source is to blame, and that fault; empty where it is not."""
        unwaited = OwnOrder(self.levels, self.draw).unwaited if isinstance(illegal, Overrun) else None
        if unwaited is not None:
            return unwaited[1].words(unwaited[0]), self._source.of_race(*unwaited)
        missed = said_of(self.levels.diverged) if is_of_barrier(illegal) else UNSAID
        if missed:  # TileLang has left the barrier as it is
            return missed, self._barrier(missed)
        stray = self._stray(illegal) or self._source.of_unaligned(illegal) or self._source.of_absent(illegal)
        stray = stray or self._source.of_layout(illegal)
        stray = stray or self._source.of_never(illegal, self.exits.of_guarded, self._runs)
        part = PartialTiles(self.levels, self.draw).of_stop(illegal) if stray is None else None
        if part is not None:
            fault = self._source.of_part(part, reason_of(part))
            return reason_of(part), fault if part.participation == Participation.BROKEN else None
        if stray is None:
            return UNSAID, None
        own = Reason(reasons.SOURCE_STOPS, f"the author's: as written, {stray.what}")
        return own, replace(stray, reasons=frozenset((own,)))

    @property
    def races(self) -> tuple[Fault, ...]:
        """The races of the source, where the lowered kernel stops at a barrier: one of them may be why it waits."""
        if not self.levels.puts_barriers:
            return ()
        shared = shared_names(self.levels.source.body)
        with suppress(Stopped):
            contests = OwnOrder(self.levels, self.draw).contests
            found = [self._source.of_race(name, contest) for name, contest in contests if name in shared]
            return merged([fault for fault in found if fault is not None])
        return ()

    def of_run(
        self,
        outputs: Sequence[OutputOutcome],
        whose: Attributed,
        order: OwnOrder,
        reads: Sequence[OwnReads],
    ) -> tuple[Fault, ...]:
        """The faults that a run to the end shows. whose: whose the races are that were seen as lowered.

        reads: those of the source that nobody says the value of.
        """
        races = [*((race.name, contest) for race, contest in whose.contested), *order.mixed]
        open_ = {outcome.reason for outcome in outputs if outcome.reason.endswith(RACING)}
        untold = open_ - {contest.words(name) for name, contest in races}
        if untold:
            races += [(name, contest) for name, contest in order.contests if contest.words(name) in untold]
        found = [self._source.of_race(name, contest) for name, contest in races]
        unset = {o.name: o.reason for o in outputs if o.verdict == "undecided" and o.reason.endswith(UNSET_MEMORY)}
        early = [f if f is None or f.problem != UNCOMMITTED else self._source.with_outputs(f, unset) for f in found]
        told_of = {*(outcome.reason for outcome in outputs), *whose.ordered.values()}
        own = [fault for each in reads for fault in each.faults(self._source, told_of)]
        told = {(fault.buffer, fault.line) for fault in own}
        found = [
            *early,
            *own,
            *self._unset(outputs),
            *[
                w
                for w in self._warnings(whose.ordered.values())
                if w.problem != STRAY or (w.buffer, w.line) not in told
            ],
        ]
        return merged([fault for fault in found if fault is not None])

    def _stray(self, illegal: Illegal) -> Fault | None:
        """Return how drawn inputs lead the source out of the tensor that the lowered kernel leaves, or how it leaves it
        where the author wants no guards; None where neither does.
        """
        levels, guarded = self.levels, not self.levels.snapshot.is_on(_UNGUARDED)
        if guarded and (levels.request.is_own or not levels.source_run[0].strayed):
            return None
        exits = self.exits.of_accesses if guarded else self.exits.of_all
        return self._source.of_stray(illegal, exits, guarded=guarded)

    def _runs(self, stmt: Stmt) -> bool:
        """Whether the source runs a statement, if it is a tile operator; of others nobody knows."""
        return not is_tile_call(stmt) or stmt in self._tiles_run

    @cached_property
    def _tiles_run(self) -> set[Stmt]:
        """The tile operators that the source runs."""
        reaching = OperatorsReached()
        with suppress(Stopped):
            self.levels.plainly().source_invocation(self.draw).run(lambda machine: [reaching])
        return reaching.found

    @cached_property
    def _source(self) -> Faults:
        levels = self.levels
        threads = prod(threads_of(kernels(levels.source)[-1]))
        return Faults(levels.source, levels.sizes, threads, levels.request.is_own)

    def _barrier(self, reason: Reason) -> Fault | None:
        """The barrier that threads of the source miss."""
        missed = self.levels.diverged
        assert missed is not None
        return self._source.of_illegal(missed, missed.block, reason)

    def _warnings(self, open_: Collection[Reason]) -> Iterator[Fault]:
        """The warnings about the source. open_: why orders are not known."""
        if self.levels.checkpoint != LOWERED:
            return
        levels, given = self.levels, self.levels.request.is_own
        if suspicious(levels.source_run[0].strayed):
            with suppress(Stopped):
                yield from exits_of(levels.source, self.exits.of_accesses, levels.sizes, given)
        yield from idle_waits_of(levels.source)
        missed = None if levels.diverged is None else self._barrier(said_of(levels.diverged))
        if missed is not None and missed.reasons.intersection(open_):
            yield missed
        elif missed is not None and not missed.open:
            yield replace(missed, reasons=frozenset(), warning=REPAIRED)
        if given or not levels.sizes:
            with suppress(Stopped):
                yield from unwritten_of(levels.source, levels.sizes, levels.request.poisoned if given else None)

    def _unset(self, outputs: Sequence[OutputOutcome]) -> Iterator[Fault | None]:
        """The outputs that depend on memory of a block that nothing set, with the first read of such memory."""
        unset = [o for o in outputs if o.unset]
        if not unset or self.levels.in_each_iteration is not None:
            return
        memory = UnsetMemory(self.levels.plainly(), self.draw)
        with suppress(Stopped):
            for outcome in unset:
                reads = memory.reads(outcome.name, most=outcome.verdict == "undecided")
                if reads:
                    reason = outcome.reason if outcome.verdict == "undecided" else ""
                    yield self._source.of_unset(outcome.name, reads, reason, memory.share(outcome.name))
