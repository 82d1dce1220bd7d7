"""Find which pass breaks a kernel: each claim that is refuted at the end is looked for after each pass.

Atomics are proved from LowerTileOp on: before it they are still tile operators, for which there is nothing to compare.
Outputs and accesses are executed from the first pass on (`pass_execution`).
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tlcheck.errors import UsageError
from tlcheck.execute.request import Request
from tlcheck.gate.bisect import FAILS, RIGHT, UNDECIDED, WRONG, BisectRow, Point
from tlcheck.gate.pass_execution import ExecutedPasses, PassOnset
from tlcheck.gate.pipeline import Pipeline
from tlcheck.lower.runs import Run
from tlcheck.program.atomics import Site
from tlcheck.prove.subject import subject
from tlcheck.snapshot.ir import Snapshot
from tlcheck.snapshot.text import render
from tlcheck.verdicts.claim import Claim, PassRole
from tlcheck.verdicts.judging import judged
from tlcheck.verdicts.results import Result
from tlcheck.verdicts.source_lines import with_lines

_ABOVE, _BELOW = 4, 1  # lines of TIR around an atomic
_SHOWN = 4  # places of one atomic
_OF_THE_LIBRARY = ("TLA013", "TLA014")  # rules about what the device library does with a call


@dataclass(frozen=True)
class Guilty:
    """The first pass after which a claim is wrong. number: its place in the pipeline, 0 for one that did not run and
    should have. Without a name it is the code generator, after the last one.

    difference: lines of TIR, before and after the pass, as a diff. buffers: whose lines matter in it. notes: what else
    there is to say of the pass, such as which before it could not be executed. role: as in `FindingHistory`.
    """

    pass_name: str
    number: int
    claim: Claim
    difference: tuple[str, ...]
    notes: tuple[str, ...] = ()
    buffers: tuple[str, ...] = ()
    role: PassRole = "breaks"


@dataclass(frozen=True)
class Passes:
    """The passes of one kernel, each judged."""

    row: BisectRow
    guilty: tuple[Guilty, ...]


def judge_passes(
    run: Run, snapshot: Snapshot, request: Request | None = None, known: Sequence[Claim] | None = None
) -> Passes:
    """Judge a kernel after each of its passes; without a request its atomics alone.

    known: what is refuted at the end, where that is known: only that is looked for. Raises UsageError for a snapshot
    that does not hold every pass.
    """
    pipeline = Pipeline(snapshot)
    if not pipeline.is_known:
        raise UsageError(f"{run.case}: no pass tl.LowerTileOp: nothing to judge passes by")
    proved = _ProvedPasses(run, pipeline)
    has_atomics = known is None or any(claim.kind == "atomic" for claim in known)
    guilty = [_of_atomic(pipeline, number, claim) for number, claim in (proved.onsets() if has_atomics else ())]
    executed = None
    if request is not None:
        executed = ExecutedPasses(
            pipeline, request, None if known is None else [claim for claim in known if claim.basis == "execution"]
        )
    found = _explained(with_lines(executed.refuted), [g.claim for g in guilty]) if executed is not None else []
    onsets = _with_waits([(claim, executed.onset(claim)) for claim in found]) if executed is not None else []
    guilty += [_executed(pipeline, claim, onset) for claim, onset in onsets]
    numbers = range(1 if onsets else pipeline.tiles, len(pipeline.keys))
    points = tuple(
        Point(
            pipeline.called(n),
            _state(pipeline, executed, onsets, n, proved.near(n)),
            proved.results.get(n),
            agreed=executed is not None and (bool(onsets) or not proved.has_claims),
        )
        for n in numbers
    )
    row = BisectRow(run.case, run.target, points, run.tilelang)
    return Passes(row, tuple(sorted(guilty, key=lambda g: g.number)))


def _with_waits(onsets: Sequence[tuple[Claim, PassOnset]]) -> list[tuple[Claim, PassOnset]]:
    """A wait that is missing is the fault of the pass that leaves an output unwritten, where there is one: orders are
    watched late.
    """
    outputs = [onset for claim, onset in onsets if claim.kind == "output"]
    if not outputs:
        return list(onsets)
    first = min(outputs, key=lambda onset: onset.number)
    return [(c, first if c.kind == "order" and not o.orders and first.number < o.number else o) for c, o in onsets]


def _explained(claims: Sequence[Claim], atomics: Sequence[Claim]) -> list[Claim]:
    """The claims that no wrong atomic of their buffer explains."""
    wrong = {claim.buffer for claim in atomics}
    return [claim for claim in claims if claim.buffer not in wrong]


def _state(
    pipeline: Pipeline,
    executed: ExecutedPasses | None,
    onsets: Sequence[tuple[Claim, PassOnset]],
    number: int,
    proved: Result | None,
) -> str:
    """The worst that is known after a pass. That the snapshot ends there says nothing against it."""
    states = [_since(pipeline, executed, claim, onset, number) for claim, onset in onsets if executed is not None]
    if proved is not None and (proved.claims or proved.failure is not None):
        states.append(_of_atomics(proved))
    for worst in (FAILS, WRONG, UNDECIDED):
        if worst in states:
            return worst
    return RIGHT


def _since(pipeline: Pipeline, executed: ExecutedPasses, claim: Claim, onset: PassOnset, number: int) -> str:
    """Return how a claim fares after a pass, from where it begins to be wrong."""
    if number == pipeline.last or (onset.number and number >= onset.number):
        return WRONG
    if not onset.number:
        return executed.state(claim, number).state
    return UNDECIDED if number in onset.between else RIGHT


def _of_atomics(result: Result) -> str:
    if result.failure is not None:
        return FAILS
    if any(claim.finding is not None for claim in result.claims):
        return WRONG
    last = [claim.stages[-1].status if claim.stages else "undecided" for claim in result.claims]
    return RIGHT if all(status == "same" for status in last) else UNDECIDED


class _ProvedPasses:
    """The proofs of a kernel's atomics after the passes from LowerTileOp on, as far as they are asked for."""

    def __init__(self, run: Run, pipeline: Pipeline) -> None:
        self._run, self._pipeline = run, pipeline
        self.results: dict[int, Result] = {}

    def onsets(self) -> Iterator[tuple[int, Claim]]:
        """Each atomic that is wrong at the end, with the first pass after which it is and stays so."""
        seen: set[tuple[str, int, str]] = set()
        for claim in self._after(self._pipeline.last).claims:
            if claim.finding is not None and _identity(claim) not in seen:
                seen.add(_identity(claim))
                yield self._first(claim)

    @property
    def has_claims(self) -> bool:
        """Whether anything was proved, as far as was asked."""
        return any(result.claims for result in self.results.values())

    def near(self, number: int) -> Result | None:
        """The proofs after a pass; of one that was not asked for, those after the nearest before it, else after it."""
        if not self.results:  # without atomics
            return None
        before = [n for n in self.results if n <= number]
        later = min(self.results) if number >= self._pipeline.tiles else None
        place = max(before) if before else later
        return self.results[place] if place is not None else None

    def _first(self, claim: Claim) -> tuple[int, Claim]:
        right, wrong, found = self._pipeline.tiles - 1, self._pipeline.last, claim
        while right + 1 < wrong:
            middle = (right + wrong) // 2
            own = [c for c in self._after(middle).claims if c.finding is not None and _identity(c) == _identity(claim)]
            right, wrong, found = (right, middle, own[0]) if own else (middle, wrong, found)
        return wrong, found

    def _after(self, number: int) -> Result:
        if number not in self.results:
            self.results[number] = judged(self._run, self._pipeline.after(number))
        return self.results[number]


def _identity(claim: Claim) -> tuple[str, int, str]:
    return claim.buffer, claim.source.line, claim.call


def _executed(pipeline: Pipeline, claim: Claim, onset: PassOnset) -> Guilty:
    if onset.generated:
        return Guilty("", onset.number, claim, ())
    if not onset.number:
        return Guilty(onset.orders, 0, claim, ())
    is_layout = pipeline.unheld is not None and onset.number == pipeline.layouts
    text = pipeline.whole if is_layout else pipeline.text
    before, after = text(onset.number - 1), text(onset.number)
    name = pipeline.called(onset.number)
    number = pipeline.number(onset.number)
    origin = claim.finding.origin if claim.finding is not None else None
    buffers = tuple(dict.fromkeys([*(origin.buffers if origin is not None else ()), claim.buffer]))
    difference = tuple(list(difflib.unified_diff(before, after, n=1, lineterm=""))[2:])
    notes, role = tuple(_notes(pipeline, claim, onset)), _role(pipeline, claim, onset)
    return Guilty(name, number, claim, difference, notes, buffers, role)


def _role(pipeline: Pipeline, claim: Claim, onset: PassOnset) -> PassRole:
    """Say what a pass after which something is wrong has to do with it."""
    if onset.between or any(_unsaved(pipeline, onset.number)) or _is_unwatched(pipeline, claim, onset):
        return "may-break"
    return "orders" if onset.orders == pipeline.names[onset.number] else "breaks"


def _is_unwatched(pipeline: Pipeline, claim: Claim, onset: PassOnset) -> bool:
    """Whether orders may be wrong since before they were watched."""
    return claim.kind == "order" and not onset.orders and onset.number > pipeline.vectors


def _notes(pipeline: Pipeline, claim: Claim, onset: PassOnset) -> Iterator[str]:
    if onset.between:
        names = [pipeline.called(n) for n in (onset.between[0], onset.between[-1])]
        passes = names[0] if len(onset.between) == 1 else f"{names[0]} to {names[1]}"
        yield f"or an earlier one: after {passes} it is not decided ({onset.reason})"
    yield from _unsaved(pipeline, onset.number)
    if _is_unwatched(pipeline, claim, onset):
        yield "or an earlier one: orders are watched from tl.VectorizeLoop on"
    elif onset.orders == pipeline.names[onset.number]:
        yield f"{onset.orders} should have ordered them"
    unheld = pipeline.unheld
    if unheld is not None and onset.number == pipeline.layouts:
        yield unheld.words
    elif onset.number == pipeline.tiles:
        yield "with the layouts that tl.LayoutInference chose"


def _unsaved(pipeline: Pipeline, place: int) -> Iterator[str]:
    """Yield what there is to say of passes right before one whose TIR is not there."""
    numbers = range(pipeline.number(place - 1) + 1, pipeline.number(place))
    if numbers:
        passes = f"pass {numbers[0]}" + (f" to pass {numbers[-1]}" if len(numbers) > 1 else "")
        yield f"or an earlier one: after {passes} the TIR could not be saved"


def _of_atomic(pipeline: Pipeline, number: int, claim: Claim) -> Guilty:
    if number == pipeline.tiles and is_of_the_library(claim, pipeline.text(number - 1)):
        return Guilty("", pipeline.number(pipeline.last), claim, ())
    before, after = (_around(pipeline, n, claim) for n in (number - 1, number))
    lines = difflib.unified_diff(before, after, n=_ABOVE, lineterm="")
    notes = tuple(_unsaved(pipeline, number))
    role: PassRole = "may-break" if notes else "breaks"
    without_names = tuple(lines)[2:]  # of two files
    return Guilty(pipeline.called(number), pipeline.number(number), claim, without_names, notes, (claim.buffer,), role)


def is_of_the_library(claim: Claim, before: Sequence[str]) -> bool:
    """Whether the device library is to blame for an atomic that is wrong as soon as it is looked at.

    before: the TIR before that, which calls the same function where its author has chosen it.
    """
    name, rule = claim.call.partition("(")[0], claim.finding.rule if claim.finding is not None else ""
    return rule in _OF_THE_LIBRARY and any(f"T.{name}(" in line for line in before)


def _around(pipeline: Pipeline, number: int, claim: Claim) -> list[str]:
    """The lines around the places of an atomic after a pass."""
    stage = pipeline.stage(number)
    of = subject(pipeline.after(number))
    text = render(of.snapshot.checkpoints[stage])
    sites = [s for s in of.found[stage].sites if s.target.root == claim.buffer]
    marked = [line for site in _own(sites, claim)[:_SHOWN] if (line := text.line_of(site.placed.stmt))]
    shown = {n for line in marked for n in range(line - _ABOVE, line + _BELOW + 1)}
    return [line for n, line in enumerate(text.lines, 1) if n in shown]


def _own(sites: Sequence[Site], claim: Claim) -> Sequence[Site]:
    """Return the claims on the atomic's line, where lines are known; else all on its buffer."""
    own = [s for s in sites if claim.source.exact and s.placed.stmt.line == claim.source.line]
    return own or sites
