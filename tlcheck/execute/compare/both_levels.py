"""One kernel's source and lowered code executed, on the same blocks and inputs, and its outputs compared."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from math import prod

import numpy as np

from tlcheck import reasons
from tlcheck.errors import UsageError, fault
from tlcheck.execute.compare import apart
from tlcheck.execute.compare import output_outcome as comparison
from tlcheck.execute.compare.counting import Counted, counted
from tlcheck.execute.compare.execution import Execution
from tlcheck.execute.compare.faults import Faults
from tlcheck.execute.compare.formula_equality import formulas_of
from tlcheck.execute.compare.fragment_reads import FragmentReads
from tlcheck.execute.compare.from_end import IndicesFromEnd
from tlcheck.execute.compare.leaving import LeavingAtomics
from tlcheck.execute.compare.missed import where_endless, without_own
from tlcheck.execute.compare.output_outcome import OutputOutcome
from tlcheck.execute.compare.output_verdicts import OutputVerdicts
from tlcheck.execute.compare.overflows import Overflows
from tlcheck.execute.compare.own_faults import OwnFaults, OwnReads
from tlcheck.execute.compare.own_order import OwnOrder
from tlcheck.execute.compare.partial_tiles import PartialTiles
from tlcheck.execute.compare.roundings import cancels, rounds
from tlcheck.execute.compare.source_exits import SourceExits
from tlcheck.execute.compare.specials import are_asked_for
from tlcheck.execute.compare.unset import without_unset
from tlcheck.execute.memory.pages import Stored
from tlcheck.execute.memory.plain import index_of
from tlcheck.execute.observe.attribution import attributed
from tlcheck.execute.observe.races import Race
from tlcheck.execute.observe.suspects import Suspected, Suspects
from tlcheck.execute.observe.watching import Watching
from tlcheck.execute.request import LOWERED, SOURCE, Request
from tlcheck.execute.stops import MEMORY, Deadlock, Entangled, Illegal, SourceIllegal, Stopped
from tlcheck.execute.worlds import inputs
from tlcheck.execute.worlds.courses import levels_of
from tlcheck.execute.worlds.invocation import Invocation
from tlcheck.execute.worlds.kernel_traits import has_copies
from tlcheck.execute.worlds.levels import BothLevels, is_of_barrier, pointers
from tlcheck.program.mixing import mixed
from tlcheck.program.roles import roles
from tlcheck.reasons import Reason
from tlcheck.snapshot.ir import Snapshot

_ROUNDED = 20_000  # statements of both levels, up to which a kernel runs again with floats of its own types


def execute(snapshot: Snapshot, request: Request | None = None) -> Execution:
    """Run a kernel on both levels and compare. What cannot be judged is undecided with its reason.

    Raises UsageError for blocks that are not in the grid, and nothing else.
    """
    try:
        levels = levels_of(snapshot, request or Request())
        done = where_endless(_Judge(levels).execution(), levels)
        counting = levels.request.cost and levels.checkpoint == LOWERED
        return replace(done, counts=_counts(levels)) if counting else done
    except UsageError:
        raise
    except SourceIllegal as stopped:
        return _stopped(snapshot, request or Request(), stopped)
    except Stopped as stopped:
        return _undecided(snapshot, stopped.reason)
    except RecursionError:
        return _undecided(snapshot, Reason(reasons.NESTED, "nested too deeply"))
    except MemoryError:
        return _undecided(snapshot, MEMORY)
    except Exception as error:  # a fault of ours, or a snapshot that no compiler makes
        return _undecided(snapshot, Reason(reasons.INTERNAL, fault(error)))


def _counts(levels: BothLevels) -> Counted | None:
    """Return what the lowered kernel costs; None where it does not come to its end."""
    try:
        return counted(levels)
    except Stopped:
        return None


def _stopped(snapshot: Snapshot, request: Request, stopped: SourceIllegal) -> Execution:
    """The source itself cannot run to its end."""
    function, reason = snapshot.checkpoints[SOURCE], stopped.reason
    faults = Faults(function, {}, 0, request.is_own)
    fault = faults.of_illegal(stopped.illegal, stopped.block, reason, hangs=stopped.hangs)
    return replace(_undecided(snapshot, reason), faults=() if fault is None else (fault,))


def _undecided(snapshot: Snapshot, reason: Reason) -> Execution:
    function = snapshot.checkpoints.get(SOURCE)
    names = () if function is None else pointers(roles(function).outputs)
    return Execution(tuple([OutputOutcome(name, "undecided", reason) for name in names]))


@dataclass(frozen=True)
class _EarlyRun:
    """A run with asynchronous copies as early as they may be, and what stopped it."""

    invocation: Invocation
    illegal: Illegal | None = None


class _Judge:
    """Compares what both levels of a kernel leave."""

    def __init__(self, levels: BothLevels) -> None:
        self._levels = levels
        self._suspects: Suspects | None = None  # of a quick run that came to its end; None: all may be out of order
        self._are_ordered = False  # blocks: a quick run came to its end and suspects no tensor

    def execution(self) -> Execution:
        """The verdicts on all blocks together; where they cannot run so, on each by itself."""
        try:
            return self._with_formulas(self._together())
        except Entangled:
            requests = apart.requests(self._levels)
            if not requests:
                raise
        parts: list[Execution] = []
        for request in requests:
            parts.append(execute(self._levels.snapshot, request))
            if not parts[-1].is_clean:
                break
        source, draw = self._levels.source_run
        found = apart.joined(self._levels, parts, self._are_ordered)
        return replace(found, left=self._left_by(source), digest=self._digest(source, draw))

    def _with_formulas(self, found: Execution) -> Execution:
        """The outcome, with the outputs that are the same formulas at both levels; where no witness is needed."""
        levels = self._levels
        if levels.checkpoint != LOWERED or levels.request.brief or not found.is_settled:
            return found
        return replace(found, formulas=formulas_of(levels, levels.source_run[1]))

    def _together(self) -> Execution:
        """Run both sides and compare every output. What is found in a quick run is looked at in a plain one.

        What is wrong but for the order of accesses might come of a block that did not run.
        """
        if not self._levels.plain:
            with suppress(Suspected):
                if (found := self._compared(*self._levels.source_run)).is_clean:
                    return found
            self._levels = self._levels.plainly()
            found = self._compared(*self._levels.source_run)
            if self._levels.has_all_before or replace(found, races=()).is_clean:
                return found
            self._suspects = None
            self._levels = self._levels.with_all_before()
        return self._compared(*self._levels.source_run)

    def _compared(self, source: Invocation, draw: inputs.Draw) -> Execution:
        """The verdicts where the source has run, once the lowered kernel has run too."""
        levels = self._levels
        try:
            lowered = levels.lowered_invocation(draw)
            written = frozenset((*levels.outputs, *pointers(roles(levels.lowered).outputs)))  # on either side
            watching = Watching(lowered.kernel, written, suspects=self._suspects)
            ordered = levels.checkpoint == LOWERED and not levels.tiled  # before that there are no barriers
            levels.run(lowered, partial(levels.lowered_invocation, draw), watching if ordered else None)
            self._note(watching)
        except Illegal as illegal:
            return self._where_stopped(illegal, source, draw)
        verdicts = OutputVerdicts(levels, draw)
        outputs = [verdicts.of(name, source, lowered) for name in levels.outputs]
        early = None if watching.is_settled and not levels.roles.returning else self._early(draw)
        if early is not None:
            outputs = [self._with_early_copies(outcome, early, source, verdicts) for outcome in outputs]
        stop = (None if early is None else early.illegal) or self._hang(watching, draw)
        rounded = None
        few = not levels.request.brief and source.spent + lowered.spent <= _ROUNDED
        if stop is None and few and (rounds(levels.lowered) or cancels(levels.source)):
            rounded = verdicts.with_own_types(outputs)
        outputs = outputs if rounded is None else rounded
        if stop is None and few and not levels.request.is_own and are_asked_for(levels):
            outputs = verdicts.with_special_numbers(outputs)
        order = OwnOrder(levels, draw, self._contestable(watching, outputs))
        exits = SourceExits(levels, draw)
        outputs = list(map(order.of_refuted, outputs))
        outputs = list(map(Overflows(levels, draw, source, lowered).of_refuted, outputs))
        reads: list[OwnReads] = [LeavingAtomics(levels, exits), FragmentReads(levels, draw)]
        tiles = PartialTiles(levels, draw)
        reads += [IndicesFromEnd(levels, draw, exits, lowered), tiles]
        for own in reads:
            outputs = list(map(own.of_refuted, outputs))
        whose = without_own(attributed(watching.watches, lambda: order.authors), levels.lowered, levels.diverged)
        whose = without_unset(tiles.without_own(whose), levels, draw)
        outputs = [order.of_agreed(outcome, whose) for outcome in outputs]
        spent = lowered.spent + (0 if early is None else early.invocation.spent)
        return replace(
            self._report(tuple(outputs), source, spent, draw),
            illegal=stop,
            lawful=tuple(sorted(lowered.looked_at)) if watching.watches and stop is None else (),
            rounded=rounded is not None,
            ordered=whose.ordered,
            races=tuple([replace(race, index=self._index_of(race)) for race in whose.races]),
            contested=tuple([(replace(race, index=self._index_of(race)), own) for race, own in whose.contested]),
            same_elements=all(self._writes_the_same(name, source, lowered) for name in levels.outputs),
            faults=OwnFaults(levels, draw, exits).of_run(outputs, whose, order, reads),
        )

    def _where_stopped(self, illegal: Illegal, source: Invocation, draw: inputs.Draw) -> Execution:
        """The report where the lowered kernel stops: for a fault of the source, or else illegally."""
        whose = OwnFaults(self._levels, draw, SourceExits(self._levels, draw))
        own, fault = whose.of_stop(illegal)
        reason = own or Reason(reasons.LOWERED_STOPS, f"as lowered: {illegal}")
        outputs = tuple([OutputOutcome(n, "undecided", reason) for n in self._levels.outputs])
        beside = whose.races if self._levels.plain and not own and is_of_barrier(illegal) else ()
        faults = beside if fault is None else (fault,)
        return replace(self._report(outputs, source, 0, draw), illegal=None if own else illegal, faults=faults)

    def _note(self, watching: Watching) -> None:
        """Keep what a quick run that has ended suspects. Raises Suspected if that is something."""
        if self._levels.plain:
            return
        self._suspects = watching.suspects
        self._are_ordered = not self._suspects.tensors
        if any(map(mixed, (self._levels.source, self._levels.lowered))):
            self._suspects = None  # a glance does not look at the operations of atomics
            raise Suspected
        if self._suspects:
            raise Suspected

    def _hang(self, watching: Watching, draw: inputs.Draw) -> Deadlock | None:
        """A deadlock that takes another order of branches: of each that may be overtaken, one in which it is."""
        for warp in sorted({warp for watch in watching.watches for warp in watch.overtaken}):
            try:
                self._levels.lowered_invocation(draw, behind=warp).run()
            except Deadlock as deadlock:
                return replace(deadlock, what=f"{deadlock.what}, where the branch of warp {warp} comes last")
            except Stopped:
                continue
        return None

    def _index_of(self, race: Race) -> tuple[int, ...]:
        """The logical index of the element that a race is about."""
        tensor = next((b for b in self._levels.source.buffers if str(b.data.value) == race.parameter), None)
        return race.index if tensor is None else index_of(race.index[0], inputs.extent(tensor, self._levels.sizes))

    def _early(self, draw: inputs.Draw) -> _EarlyRun | None:
        """A kernel with asynchronous copies run once more, with these as early as they may be; None for another one.

        Races are seen in either schedule: nobody watches.
        """
        if self._levels.checkpoint != LOWERED or not has_copies(self._levels.lowered):
            return None
        invocation = self._levels.lowered_invocation(draw, late=False)
        try:
            invocation.run()
        except Illegal as illegal:
            return _EarlyRun(invocation, illegal)
        return _EarlyRun(invocation)

    def _with_early_copies(
        self, outcome: OutputOutcome, early: _EarlyRun, source: Invocation, verdicts: OutputVerdicts
    ) -> OutputOutcome:
        """An output that agreed and does not now is refuted."""
        if outcome.verdict != "agreed":
            return outcome
        if early.illegal is not None:
            reason = Reason(reasons.EARLY_COPIES, f"with copies as early as they may be: {early.illegal}")
            return OutputOutcome(outcome.name, "undecided", reason)
        return verdicts.of(outcome.name, source, early.invocation)

    def _writes_the_same(self, name: str, source: Invocation, lowered: Invocation) -> bool:
        """Whether both levels wrote the same elements of an output."""
        seeds = dict.fromkeys(world.seed for world in self._levels.worlds)
        sides = ((source.left[name].outcome(s), comparison.left_of(lowered.left, name, s)) for s in seeds)
        return all(np.array_equal(one.elements, other.elements) for one, other in sides)

    def _contestable(self, watching: Watching, outputs: Sequence[OutputOutcome]) -> frozenset[str] | None:
        """Buffers whose races in the source may matter; None for any: a wrong output may depend on it."""
        if any(outcome.verdict == "refuted" for outcome in outputs):
            return None
        races = [race for watch in watching.watches for race in watch.races.values()]
        return frozenset(race.name for race in races) | mixed(self._levels.source)

    def _left_by(self, source: Invocation) -> dict[str, Stored]:
        seed = self._levels.worlds[0].seed
        return {name: source.left[name].outcome(seed) for name in self._levels.outputs}

    def _digest(self, source: Invocation, draw: inputs.Draw) -> str:
        """Equal for two kernels only if their sources leave the same, in the same blocks and on the same draw."""
        levels = self._levels
        asked = levels.extents, tuple(levels.sizes.items()), draw, [(w.block, w.seed) for w in levels.worlds]
        found = hashlib.sha256(repr(asked).encode())
        for name in levels.outputs:
            for seed in dict.fromkeys(w.seed for w in levels.worlds):
                left = source.left[name].outcome(seed)
                for array in (left.elements, left.values):
                    found.update(f"{array.dtype} {array.shape}".encode() + array.tobytes())
        return found.hexdigest()

    def _report(
        self, outputs: tuple[OutputOutcome, ...], source: Invocation, lowered: int, draw: inputs.Draw
    ) -> Execution:
        """The outcomes, and on what. lowered: statements that ran as lowered."""
        return Execution(
            outputs,
            tuple(dict.fromkeys(w.block for w in self._levels.worlds)),
            prod(self._levels.extents),
            tuple(dict.fromkeys(w.seed for w in self._levels.worlds)),
            tuple(self._levels.sizes.items()),
            (source.spent, lowered),
            left=self._left_by(source),
            digest=self._digest(source, draw),
            unreached=tuple(sorted(self._levels.source_run[0].untried.values())),
        )
