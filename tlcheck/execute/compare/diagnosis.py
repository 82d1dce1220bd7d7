"""The diagnosis of an execution: where each thing that is wrong begins, and the steps to each wrong element.

A wrong output or access runs again: at earlier checkpoints, as TIR, and traced. A clean execution costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from tlcheck.execute.compare.derived import with_causes
from tlcheck.execute.compare.equal_steps import equal
from tlcheck.execute.compare.execution import Execution
from tlcheck.execute.compare.onset import Levels, Onset
from tlcheck.execute.compare.origin import ValueOrigin, origin_of
from tlcheck.execute.compare.output_outcome import Difference, OutputOutcome
from tlcheck.execute.compare.sum_terms import UnequalTerm, unequal_terms
from tlcheck.execute.compare.trace import Traced, trace
from tlcheck.execute.compare.wrapping import wrapping_operation
from tlcheck.execute.compare.wrong_output import WrongOutput
from tlcheck.execute.observe.races import Race
from tlcheck.execute.request import LOWERED, SOURCE, Request
from tlcheck.execute.stops import Illegal, Stopped
from tlcheck.program.flow import Flow
from tlcheck.program.generated import Departure, departures
from tlcheck.program.release import Release
from tlcheck.snapshot.checkpoint import Checkpoint
from tlcheck.snapshot.ir import Snapshot
from tlcheck.snapshot.walk import statements
from tlcheck.targets.lookup import TARGETS

_STEPS = 2  # writes deep that an element is traced


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """An execution, the outputs that are wrong by parameter, and the onset of the access that stopped it."""

    execution: Execution
    outputs: Mapping[str, WrongOutput]
    stop: Onset | None


def diagnose(
    snapshot: Snapshot,
    request: Request,
    execution: Execution,
    *,
    steps: bool = True,
    explained: Collection[str] = (),
) -> Diagnosis:
    """Find the onsets of whatever is wrong in the execution of a request, and unless not wanted the steps to it.

    explained: outputs whose cause is known: they are not executed again. Nothing is where the request is brief.
    """
    levels = Levels(snapshot, request)
    stop = None
    if execution.illegal is not None and not request.brief:
        stop = _stop(levels, execution, execution.illegal)
    outputs = {
        outcome.name: WrongOutput(outcome.difference)
        if request.brief or outcome.name in explained
        else _wrong_output(snapshot, levels, outcome, execution.races, steps)
        for outcome in execution.outputs
        if outcome.difference is not None
    }
    source = snapshot.checkpoints.get(SOURCE)
    return Diagnosis(execution, outputs if source is None else with_causes(source, outputs), stop)


def _stop(levels: Levels, execution: Execution, illegal: Illegal) -> Onset | None:
    def is_stopped(other: Execution) -> bool | str:
        """Whether the same kind of illegal access stops it; the reason where something else does."""
        if other.illegal is not None:
            return type(other.illegal) is type(illegal)
        return False if other.left else next((o.reason for o in other.outputs), "not executed")

    block = illegal.block if illegal.block in execution.blocks else execution.blocks[0]  # of an earlier kernel
    return levels.onset((block,), illegal.seed, is_stopped)


def _wrong_output(
    snapshot: Snapshot, levels: Levels, outcome: OutputOutcome, races: Sequence[Race], steps: bool
) -> WrongOutput:
    name, found = outcome.name, outcome.difference
    assert found is not None

    def is_wrong(execution: Execution) -> bool | str:
        """Whether the output is; the reason where that is undecided."""
        outcome = _outcome(execution, name)
        return outcome.reason if outcome.verdict == "undecided" else outcome.verdict == "refuted"

    onset = levels.onset(found.blocks, found.seed, is_wrong, rounded=found.rounded or found.special)
    is_shared = onset is None or onset.checkpoint == LOWERED
    origin = origin_of(snapshot, levels.showing(found.blocks, found.seed), name, found, races, shared=is_shared)
    if onset is not None:
        found = _at_onset(levels, name, found, onset)
    traced = _traced(snapshot, levels.showing(found.blocks, found.seed), name, found) if steps else None
    terms = _terms(snapshot, levels, name, found, onset) if steps else ()
    departure = _departure(snapshot, levels, name, found, onset, origin, is_wrong)
    wraps = ""
    if departure is None and origin is not None and origin.kind == "other-value":
        own = levels.showing(found.blocks, found.seed)
        wraps = wrapping_operation(snapshot, own, name, found, origin.access.source)
    return WrongOutput(found, onset, departure, traced, origin, terms, wraps)


def _terms(
    snapshot: Snapshot, levels: Levels, name: str, found: Difference, onset: Onset | None
) -> tuple[UnequalTerm, ...]:
    """The terms added too often or not at all, in the blocks and at the checkpoint that show the element wrong."""
    if onset is None:
        return unequal_terms(snapshot, levels.showing((), found.seed), name, found)
    own = replace(levels.showing(found.blocks, found.seed), checkpoint=Checkpoint(onset.checkpoint))
    return unequal_terms(snapshot, own, name, found)


def _at_onset(levels: Levels, name: str, found: Difference, onset: Onset) -> Difference:
    """The first element that differs at the onset, and who writes it there."""
    own = replace(levels.showing(found.blocks, found.seed), checkpoint=Checkpoint(onset.checkpoint))
    brief = _outcome(levels.execution(replace(own, brief=not (found.rounded or found.special))), name).difference
    if onset.checkpoint == LOWERED and brief is not None and _is_same(brief, found):
        return found
    first = _outcome(levels.execution(own), name).difference or found
    return replace(first, count=found.count, early=found.early)


def _is_same(one: Difference, other: Difference) -> bool:
    """Whether two differences are of one element and of equal values."""
    return (one.element, one.seed, one.expected, one.got) == (other.element, other.seed, other.expected, other.got)


def _outcome(execution: Execution, name: str) -> OutputOutcome:
    return next(outcome for outcome in execution.outputs if outcome.name == name)


def _departure(
    snapshot: Snapshot,
    levels: Levels,
    name: str,
    found: Difference,
    onset: Onset | None,
    origin: ValueOrigin | None,
    is_wrong: Callable[[Execution], bool | str],
) -> Departure | None:
    """The first difference between CUDA and TIR, if the TIR is right: at the element's last write if there is one, else
    where the first access differs from the source, else at what the output is made of.
    """
    if onset is None or onset.checkpoint != LOWERED:
        return None
    function = snapshot.checkpoints[LOWERED]
    last = None if found.writer is None else found.writer.origin.stmt
    known = [last, *(access.stmt for access in (origin and origin.access, origin and origin.other) if access)]
    stmts = (*(stmt for stmt in known if stmt), *Flow(function, name, steered=True).writers, *statements(function.body))
    release, target = Release.among(snapshot.toolchain), TARGETS.get(snapshot.target)
    first = next((departure for stmt in stmts for departure in departures(stmt, release, target)), None)
    if first is None or levels.is_wrong_as_tir(found.blocks, found.seed, is_wrong):
        return None
    return first


def _traced(snapshot: Snapshot, request: Request, name: str, found: Difference) -> Traced | None:
    if found.special:
        return None
    try:
        traced = trace(snapshot, request, name, found.index, found.element, _STEPS, early=found.early)
    except Stopped:
        return None
    is_found = traced.lowered.is_poison or equal(traced.lowered.value, found.got)
    return traced if is_found and not traced.agree else None
