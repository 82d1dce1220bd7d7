"""One kernel's source and lowered code executed, on the same blocks and inputs, and its outputs compared."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from itertools import chain
from math import prod

import numpy as np

from tlcheck import reasons
from tlcheck.errors import UsageError, fault
from tlcheck.execute.compare import apart
from tlcheck.execute.compare import outcome as comparison
from tlcheck.execute.compare.counting import Counted, counted
from tlcheck.execute.compare.equality import formulas_of
from tlcheck.execute.compare.execution import Execution
from tlcheck.execute.compare.faults import UNCOMMITTED, Fault, Faults, merged
from tlcheck.execute.compare.missed import said_of, where_endless, without_own
from tlcheck.execute.compare.outcome import Difference, OutputOutcome
from tlcheck.execute.compare.roundings import cancels, coarser, finer, rounds
from tlcheck.execute.compare.specials import are_asked_for, differences
from tlcheck.execute.compare.unset import UnsetMemory
from tlcheck.execute.compare.warnings import REPAIRED, exits_of, idle_waits_of, suspicious, unwritten_of
from tlcheck.execute.compare.writers import Writer
from tlcheck.execute.compile.pointers import pointers_of
from tlcheck.execute.memory.pages import Stored
from tlcheck.execute.memory.plain import index_of
from tlcheck.execute.observe.authors import EARLY, Attributed, Author, attributed, open_to_order
from tlcheck.execute.observe.exits import TensorExitsOfRun
from tlcheck.execute.observe.races import RACING, Contest, Race
from tlcheck.execute.observe.suspects import Suspected, Suspects
from tlcheck.execute.observe.tracer import Tracing, UnknownTensor
from tlcheck.execute.observe.watching import Watching
from tlcheck.execute.reasons import MEMORY, Deadlock, Entangled, Illegal, Overrun, SourceIllegal, Stopped
from tlcheck.execute.request import LOWERED, SOURCE, Request
from tlcheck.execute.schedule.launches import kernels, threads_of
from tlcheck.execute.worlds import inputs
from tlcheck.execute.worlds.courses import levels_of
from tlcheck.execute.worlds.invocation import Invocation
from tlcheck.execute.worlds.levels import BothLevels, is_of_barrier, pointers
from tlcheck.execute.worlds.traits import has_copies
from tlcheck.program.roles import independent, roles
from tlcheck.program.tickets import ticketed
from tlcheck.reasons import UNSAID, Reason
from tlcheck.snapshot.ir import Alloc, Snapshot
from tlcheck.snapshot.walk import statements

UNSET_MEMORY = "depends on memory that nothing wrote"
_ALL_NAN = Reason(reasons.ALL_NAN, "as written, all of it is NaN")
_OVERFLOW = Reason(reasons.OVERFLOW, "as written, numbers become larger than float64 holds")
_TIE = Reason(reasons.TIE, "tie: rounding decides what is chosen")
_UNGUARDED = "tl.disable_safe_memory_legalize"  # with it TileLang guards no access of a tensor
_IN_ORDER = Reason(reasons.ATOMICS_RETURN, "it depends on the order of atomics")
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


def _rounded(
    name: str, seed: int, exact: Invocation, source: Invocation, lowered: Invocation, *, meant: bool
) -> Difference | None:
    """Return how an output of the kernel as lowered loses more than in the source; None where it does not.

    meant: how it lacks a rounding that the source has.
    """
    tensor = exact.left[name]
    sides = [comparison.left_of(each.left, name, seed) for each in (exact, source, lowered)]
    wrong = (finer if meant else coarser)(sides[0], sides[1], sides[2], tensor.kind)
    if wrong is None:
        return None
    initial = tensor.initial(seed, sides[0].elements)
    compared = comparison.compare(sides[1] if meant else sides[0], sides[2], initial, sides[0].elements)
    found = comparison.first(compared, wrong, seed, lowered.machine.state.reasons)
    return replace(found, rounded=True, finer=meant)


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
        try:
            lowered = self._levels.lowered_invocation(draw)
            watching = Watching(lowered.kernel, self._stored(), every=bool(source.steered), suspects=self._suspects)
            ordered = self._levels.checkpoint == LOWERED and not self._levels.tiled  # before that there are no barriers
            self._levels.run(lowered, partial(self._levels.lowered_invocation, draw), watching if ordered else None)
            self._note(watching)
        except Illegal as illegal:
            return self._where_stopped(illegal, source, draw)
        outputs = [self._output(name, source, lowered, draw) for name in self._levels.outputs]
        settled = watching.is_settled and not self._levels.roles.returning
        early = None if settled else self._early(draw)
        early_spent = 0 if early is None else early.invocation.spent
        if early is not None:
            outputs = [self._with_early_copies(outcome, early, source, draw) for outcome in outputs]
        stop = (None if early is None else early.illegal) or self._hang(watching, draw)
        rounded = None
        few = not self._levels.request.brief and source.spent + lowered.spent <= _ROUNDED
        if stop is None and few and (rounds(self._levels.lowered) or cancels(self._levels.source)):
            rounded = self._with_own_types(outputs, draw)
        outputs = outputs if rounded is None else rounded
        if stop is None and few and not self._levels.request.is_own and are_asked_for(self._levels):
            outputs = self._with_special_numbers(outputs, draw)
        authors = partial(cache(self._authors), draw, self._contestable(watching, outputs))
        outputs = [self._where_ordered(outcome, authors) for outcome in outputs]
        whose = without_own(attributed(watching.watches, authors), self._levels.lowered, self._levels.diverged)
        outputs = [self._whatever_the_order(outcome, whose) for outcome in outputs]
        report = self._report(tuple(outputs), source.spent, lowered.spent + early_spent)
        lawful = tuple(sorted(lowered.looked_at)) if watching.watches and stop is None else ()
        races = tuple([replace(race, index=self._index_of(race)) for race in whose.races])
        contested = tuple([(replace(race, index=self._index_of(race)), own) for race, own in whose.contested])
        report = replace(report, illegal=stop, lawful=lawful, rounded=rounded is not None, left=self._left_by(source))
        digest = self._digest(source, draw)
        same = all(self._writes_the_same(name, source, lowered) for name in self._levels.outputs)
        report = replace(report, ordered=whose.ordered, races=races, contested=contested, digest=digest)
        report = replace(report, same_elements=same)
        return replace(report, faults=self._faults(outputs, whose.contested, whose.ordered.values(), authors, draw))

    def _where_stopped(self, illegal: Illegal, source: Invocation, draw: inputs.Draw) -> Execution:
        """The report where the lowered kernel stops: for a fault of the source, or else illegally."""
        unwaited = self._left_unwaited(draw) if isinstance(illegal, Overrun) else None
        own, found = self._missed(illegal), None
        if unwaited is not None:
            own, found = unwaited[1].words(unwaited[0]), self._source.of_race(*unwaited)
        elif own:
            found = self._barrier(own)
        elif (stray := self._stray(illegal, draw) or self._source.of_unaligned(illegal)) is not None:
            own = Reason(reasons.SOURCE_STOPS, f"the author's: as written, {stray.what}")
            found = replace(stray, reasons=frozenset((own,)))
        reason = own or Reason(reasons.LOWERED_STOPS, f"as lowered: {illegal}")
        outputs = tuple([OutputOutcome(n, "undecided", reason) for n in self._levels.outputs])
        report = self._report(outputs, source.spent, 0)
        report = replace(report, illegal=None if own else illegal, left=self._left_by(source))
        return replace(report, faults=() if found is None else (found,), digest=self._digest(source, draw))

    def _stray(self, illegal: Illegal, draw: inputs.Draw) -> Fault | None:
        """Return how drawn inputs lead the source out of the tensor that the lowered kernel leaves, or how it leaves it
        where the author wants no guards; None where neither does.
        """
        levels, guarded = self._levels, not self._levels.snapshot.is_on(_UNGUARDED)
        if (levels.request.is_own and guarded) or not levels.source_run[0].strayed:
            return None
        leaving = TensorExitsOfRun()
        with suppress(Stopped):
            levels.plainly().source_invocation(draw).run(leaving)
        return self._source.of_stray(illegal, leaving.found, guarded=guarded)

    @cached_property
    def _source(self) -> Faults:
        levels = self._levels
        threads = prod(threads_of(kernels(levels.source)[-1]))
        return Faults(levels.source, levels.sizes, threads, levels.request.is_own)

    def _missed(self, illegal: Illegal) -> Reason:
        """Return why the lowered kernel stops, where threads of the source miss a barrier that TileLang has left as it
        is.
        """
        return said_of(self._levels.diverged) if is_of_barrier(illegal) else UNSAID

    def _barrier(self, reason: Reason) -> Fault | None:
        """The barrier that threads of the source miss."""
        missed = self._levels.diverged
        assert missed is not None
        return self._source.of_illegal(missed, missed.block, reason)

    def _faults(
        self,
        outputs: Sequence[OutputOutcome],
        contested: Sequence[tuple[Race, Contest]],
        ordered: Collection[Reason],
        authors: Callable[[], Sequence[Author]],
        draw: inputs.Draw,
    ) -> tuple[Fault, ...]:
        """The faults of the source that this execution shows. ordered: why the order of buffers is not known."""
        races = [(race.parameter or race.buffer, contest) for race, contest in contested]
        open_ = {outcome.reason for outcome in outputs if outcome.reason.endswith(RACING)}
        told = {contest.words(name) for name, contest in races}
        if open_ - told:
            everything = chain.from_iterable(author.contests for author in authors())
            races += [(name, contest) for name, contest in everything if contest.words(name) in open_ - told]
        found = [self._source.of_race(name, contest) for name, contest in races]
        unset = {o.name: o.reason for o in outputs if o.verdict == "undecided" and o.reason.endswith(UNSET_MEMORY)}
        early = [f if f is None or f.problem != UNCOMMITTED else self._source.with_outputs(f, unset) for f in found]
        found = [*early, *self._unset(outputs, draw), *self._warnings(draw, ordered)]
        return merged([fault for fault in found if fault is not None])

    def _warnings(self, draw: inputs.Draw, open_: Collection[Reason]) -> Iterator[Fault]:
        """The warnings about the source. open_: why orders are not known."""
        if self._levels.checkpoint != LOWERED:
            return
        levels, given = self._levels, self._levels.request.is_own
        if suspicious(levels.source_run[0].strayed):
            leaving = TensorExitsOfRun()
            with suppress(Stopped):
                levels.plainly().source_invocation(draw).run(leaving)
                yield from exits_of(levels.source, leaving.found, levels.sizes, given)
        yield from idle_waits_of(levels.source)
        missed = None if levels.diverged is None else self._barrier(said_of(levels.diverged))
        if missed is not None and missed.reasons.intersection(open_):
            yield missed
        elif missed is not None and not missed.open:
            yield replace(missed, reasons=frozenset(), warning=REPAIRED)
        if given or not levels.sizes:
            with suppress(Stopped):
                yield from unwritten_of(levels.source, levels.sizes)

    def _unset(self, outputs: Sequence[OutputOutcome], draw: inputs.Draw) -> Iterator[Fault | None]:
        """The outputs that depend on memory of a block that nothing set, with the first read of such memory."""
        unset = [o for o in outputs if o.unset and o.verdict != "refuted"]
        if not unset or self._levels.in_each_iteration is not None:
            return
        memory = UnsetMemory(self._levels.plainly(), draw)
        with suppress(Stopped):
            for outcome in unset:
                reads = memory.reads(outcome.name, most=outcome.verdict == "undecided")
                if reads:
                    reason = outcome.reason if outcome.verdict == "undecided" else ""
                    yield self._source.of_unset(outcome.name, reads, reason, memory.share(outcome.name))

    def _note(self, watching: Watching) -> None:
        """Keep what a quick run that has ended suspects. Raises Suspected if that is something."""
        if self._levels.plain:
            return
        self._suspects = watching.suspects
        self._are_ordered = not self._suspects.tensors
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

    def _stored(self) -> frozenset[str]:
        """The parameters that the kernel writes, on either side."""
        return frozenset((*self._levels.outputs, *pointers(roles(self._levels.lowered).outputs)))

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
        self, outcome: OutputOutcome, early: _EarlyRun, source: Invocation, draw: inputs.Draw
    ) -> OutputOutcome:
        """An output that agreed and does not now is refuted."""
        if outcome.verdict != "agreed":
            return outcome
        if early.illegal is not None:
            reason = Reason(reasons.EARLY_COPIES, f"with copies as early as they may be: {early.illegal}")
            return OutputOutcome(outcome.name, "undecided", reason)
        return self._output(outcome.name, source, early.invocation, draw)

    def _with_own_types(self, outputs: Sequence[OutputOutcome], draw: inputs.Draw) -> list[OutputOutcome] | None:
        """The outputs after one block has run on the last inputs with floats in their own types: what agreed and loses
        more is refuted. None where that is not possible.
        """
        world, meant = self._levels.worlds[-1], not rounds(self._levels.lowered)
        exact = self._levels.source_invocation(draw, worlds=[world])
        source = self._levels.source_invocation(draw, worlds=[world], exact=False, costly=not meant)
        lowered = self._levels.lowered_invocation(draw, worlds=[world], exact=False)
        try:
            for invocation in (exact, source, lowered):
                invocation.run()
                invocation.machine.rest()
        except Stopped:
            return None
        found = []
        for outcome in outputs:
            difference = None
            if outcome.verdict == "agreed" and not self._levels.roles.returning:
                difference = _rounded(outcome.name, world.seed, exact, source, lowered, meant=meant)
            found.append(outcome if difference is None else self._refuted(outcome.name, difference, lowered, draw))
        return found

    def _with_special_numbers(self, outputs: Sequence[OutputOutcome], draw: inputs.Draw) -> list[OutputOutcome]:
        """The outputs after one block has run with NaN and infinities: what agreed and differs is refuted."""
        if self._levels.roles.returning:
            return list(outputs)
        wrong = dict(differences(self._levels, draw))
        return [
            OutputOutcome(
                o.name, "refuted", difference=replace(wrong[o.name], index=self._place(o.name, wrong[o.name]))
            )
            if o.verdict == "agreed" and o.name in wrong
            else o
            for o in outputs
        ]

    def _writes_the_same(self, name: str, source: Invocation, lowered: Invocation) -> bool:
        """Whether both levels wrote the same elements of an output."""
        seeds = dict.fromkeys(world.seed for world in self._levels.worlds)
        sides = ((source.left[name].outcome(s), comparison.left_of(lowered.left, name, s)) for s in seeds)
        return all(np.array_equal(one.elements, other.elements) for one, other in sides)

    def _place(self, name: str, difference: Difference) -> tuple[int, ...]:
        """The logical index of an element that differs; its number where the tensor has strides."""
        buffer = next(b for b in self._levels.source.buffers if b.data.value == name)
        index = index_of(difference.element, inputs.extent(buffer, self._levels.sizes)) if not buffer.strides else ()
        return index or (difference.element,)

    def _where_ordered(self, outcome: OutputOutcome, authors: Callable[[], Sequence[Author]]) -> OutputOutcome:
        """An output whose value hangs on an order that the kernel does not say is not refuted for it."""
        if outcome.verdict != "refuted" or not self._levels.plain or not self._levels.request.contested:
            return outcome
        return self._open_to(chain.from_iterable(author.contests for author in authors()), outcome)

    def _left_unwaited(self, draw: inputs.Draw) -> tuple[str, Contest] | None:
        """The buffer of a copy that the author uses and has not waited for, so that a phase that needs it may still be
        open when the threads arrive for the next one; None where there is none."""
        found = [(name, clash) for author in self._authors(draw, None) for name, clash in author.early.items()]
        return (found[0][0], Contest(EARLY, found[0][1].line, clash=found[0][1])) if found else None

    def _whatever_the_order(self, outcome: OutputOutcome, whose: Attributed) -> OutputOutcome:
        """An output that agrees in the order that was executed, where the author's own race may give it another value,
        does not agree."""
        if outcome.verdict != "agreed":
            return outcome
        return self._open_to(((race.parameter or race.buffer, contest) for race, contest in whose.contested), outcome)

    def _open_to(self, contests: Iterable[tuple[str, Contest]], outcome: OutputOutcome) -> OutputOutcome:
        """The outcome, undecided where the output's value hangs on what races in the source."""
        alone = independent(self._levels.source)
        last = frozenset(str(b.data.value) for b in self._levels.roles.outputs if b.data.uid in alone)
        reason = open_to_order(contests, outcome.name, last)
        return OutputOutcome(outcome.name, "undecided", reason) if reason else outcome

    def _contestable(self, watching: Watching, outputs: Sequence[OutputOutcome]) -> frozenset[str] | None:
        """Buffers whose races in the source may matter; None for any: a wrong output may depend on it."""
        if any(outcome.verdict == "refuted" for outcome in outputs):
            return None
        races = [race for watch in watching.watches for race in watch.races.values()]
        return frozenset(race.parameter or race.buffer for race in races)

    def _authors(self, draw: inputs.Draw, about: frozenset[str] | None) -> list[Author]:
        """Return who watched the source, once more, for races of its own. about: buffers, None for all."""
        invocation = self._levels.source_invocation(draw)
        allocated = [stmt.buffer for stmt in statements(self._levels.source.body) if isinstance(stmt, Alloc)]
        shared = [b.name for b in allocated if b.scope.startswith(("shared", "local.fragment"))]
        every = frozenset((*shared, *pointers(self._levels.source.buffers)))
        if about is not None and not set(map(pointers_of(invocation.kernel).owner, about)) & every:
            return []
        watching = Watching(invocation.kernel, every, partial(Author, about=about), every=True)
        invocation.run(watching)
        return [watch for watch in watching.watches if isinstance(watch, Author)]

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

    def _report(self, outputs: tuple[OutputOutcome, ...], source: int, lowered: int) -> Execution:
        return Execution(
            outputs,
            tuple(dict.fromkeys(w.block for w in self._levels.worlds)),
            prod(self._levels.extents),
            tuple(dict.fromkeys(w.seed for w in self._levels.worlds)),
            tuple(self._levels.sizes.items()),
            (source, lowered),
            unreached=tuple(sorted(self._levels.source_run[0].untried.values())),
        )

    def _output(self, name: str, source: Invocation, lowered: Invocation, draw: inputs.Draw) -> OutputOutcome:
        """The verdict on one output, over all seeds."""
        unknown = numberless = compared_elements = 0
        try:
            by_chance = self._levels.by_chance(draw)
        except Illegal as illegal:
            reason = Reason(reasons.UNSET, f"as written, with other numbers where nothing wrote: {illegal}")
            return OutputOutcome(name, "undecided", reason)
        for seed in dict.fromkeys(w.seed for w in self._levels.worlds):
            expected, got = source.left[name].outcome(seed), comparison.left_of(lowered.left, name, seed)
            other = by_chance[name].outcome(seed) if name in by_chance else None
            elements, initial = expected.elements, expected.values
            for side in (got, other):
                if side is not None and not np.array_equal(elements, side.elements):
                    elements = comparison.union(elements, side.elements)
                    initial = source.left[name].initial(seed, elements)
            compared = comparison.compare(expected, got, initial, elements, other)
            unknown += compared.unsettled
            numberless += comparison.numberless(compared)
            compared_elements += len(elements)
            if compared.differs.any():
                found = self._judged(name, compared, seed, lowered, draw)
                if found.verdict != "agreed":
                    return found
        if not compared_elements:
            return OutputOutcome(name, "undecided", apart.UNWRITTEN)
        if 2 * unknown >= compared_elements:
            part = "all" if unknown == compared_elements else f"{unknown / compared_elements:.0%}"
            unclear = self._levels.in_each_iteration is not None
            what = ", or on whether T.alloc_var sets a variable in each iteration" if unclear else ""
            reason = Reason(reasons.UNSET, f"as written, {part} of it {UNSET_MEMORY}{what}")
            return OutputOutcome(name, "undecided", reason, unset=unknown)
        if unknown + numberless == compared_elements:
            return OutputOutcome(name, "undecided", _ALL_NAN)
        return OutputOutcome(name, "agreed", unset=unknown)

    def _judged(
        self, name: str, compared: comparison.Compared, seed: int, lowered: Invocation, draw: inputs.Draw
    ) -> OutputOutcome:
        """The verdict where elements differ by more than the first bound."""
        if self._levels.roles.returning and name in ticketed(self._levels.source):
            return self._in_any_order(name, compared, seed, lowered, draw)
        differs = compared.differs
        moved, overflowed = self._levels.jittered(name, seed, draw, compared.elements, compared.expected)
        rounding, ties = comparison.explained(compared, moved)
        endless = comparison.endless(compared) if overflowed or lowered.overflowed else np.zeros_like(differs)
        wrong = differs & ~rounding & ~ties & ~endless
        if wrong.any():
            return self._refuted(
                name, comparison.first(compared, wrong, seed, lowered.machine.state.reasons), lowered, draw
            )
        if (differs & endless).any():
            return OutputOutcome(name, "undecided", _OVERFLOW)
        if (differs & ties).any():
            return OutputOutcome(name, "undecided", _TIE)
        return OutputOutcome(name, "agreed")

    def _in_any_order(
        self, name: str, compared: comparison.Compared, seed: int, lowered: Invocation, draw: inputs.Draw
    ) -> OutputOutcome:
        """The verdict where atomics return what was there: other threads may have come first than in the source.

        Other orders in the source tell what hangs on them. Values that are the same ones in each, at the same elements
        in whichever order, have to be so as lowered.
        """
        strays, lone = comparison.strays(compared.expected, compared.got), compared.by_source ^ compared.by_lowered
        if strays is None and not lone.any():
            return OutputOutcome(name, "agreed")
        strays = lone if strays is None else strays
        for order in (1, 2):
            invocation = self._levels.source_invocation(draw, order=order)
            invocation.run()
            left, values = invocation.left[name].outcome(seed), compared.initial.copy()
            elsewhere = not np.array_equal(left.elements, compared.elements[compared.by_source])
            values[compared.by_source] = values[compared.by_source] if elsewhere else left.values
            if elsewhere or comparison.strays(compared.expected, values) is not None:
                return OutputOutcome(name, "undecided", _IN_ORDER)
        return self._refuted(
            name, comparison.first(compared, strays, seed, lowered.machine.state.reasons), lowered, draw
        )

    def _refuted(self, name: str, difference: Difference, lowered: Invocation, draw: inputs.Draw) -> OutputOutcome:
        if not self._levels.plain:
            return OutputOutcome(name, "refuted", difference=difference)
        late = lowered.options.late
        writer = author = None
        if not self._levels.request.brief:
            writer = self._last_write(name, difference, self._levels.lowered_invocation(draw, late=late))
            author = self._last_write(name, difference, self._levels.source_invocation(draw))
        index = self._place(name, difference)
        found = replace(difference, writer=writer, author=author, index=index, early=not late)
        return OutputOutcome(name, "refuted", difference=found)

    def _last_write(self, name: str, difference: Difference, invocation: Invocation) -> Writer | None:
        """Return who writes an element last, in a run of its own; None also where the level has no such parameter."""
        tracing = Tracing(invocation.kernel, name, difference.seed, difference.element)
        try:
            invocation.run(tracing)
        except UnknownTensor:
            return None
        last = tracing.found
        if last is None:
            return None
        block = invocation.worlds[last.world or 0].block
        return Writer(block, -1 if last.lane is None else last.lane, last.origin)
