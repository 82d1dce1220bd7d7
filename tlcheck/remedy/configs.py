"""Find which of the pass configurations that a kernel sets makes the difference: each of them the other way round,
alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tlcheck.gate.bisect import BisectRow, Point, state_of
from tlcheck.gate.verdict_outcomes import all_claims
from tlcheck.lower.runs import Run
from tlcheck.lower.selection import Selection
from tlcheck.remedy.kernel_changes import KernelChange, flipped
from tlcheck.verdicts.checking import Checks
from tlcheck.verdicts.claim import AGREED
from tlcheck.verdicts.results import Result

AS_IT_IS = "as it is"


def judged_configs(checks: Checks, chosen: Sequence[Selection]) -> tuple[list[BisectRow], list[Result]]:
    """Check kernels as they are, then with each configuration of theirs flipped.

    Return a row for each kernel, whose first point is `as it is`, and the results of all. Raises UsageError.
    """
    own = sorted((result for _, result in checks.results(chosen)), key=lambda result: result.run.position)
    wanted = [(place, change) for place, result in enumerate(own) for change in flipped(result.pass_configs or {})]
    selections = [selection_of(own[place].run, change) for place, change in wanted]
    done = {result.run.position[0]: result for _, result in checks.results(selections)}
    points = [[_point(AS_IT_IS, result)] for result in own]
    for number, (place, change) in enumerate(wanted):
        if number in done:  # else the user has ended it
            points[place].append(_point(change.words, done[number]))
    rows = [BisectRow(r.run.case, r.run.target, tuple(p), r.run.release) for r, p in zip(own, points, strict=True)]
    return rows, [*own, *done.values()]


def selection_of(run: Run, change: KernelChange) -> Selection:
    """Select one kernel for its target, with a change."""
    only = frozenset([(run.name, run.target)])
    return Selection(Path(run.file), run.name, change.release or run.toolchain, only=only, variation=change.variation)


def _point(at: str, result: Result) -> Point:
    agreed = any(claim.verdict == AGREED for claim in all_claims(result.claims))
    return Point(at, state_of(result), result, agreed=agreed)
