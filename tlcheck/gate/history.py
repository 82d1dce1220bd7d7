"""Since when a kernel is wrong, and by which pass: its neighbours among the installed releases, and its passes.

Releases are tried outward from the kernel's own, older and newer, up to the first that has it right. A claim is right
in a release where it is proved or agrees, and nothing else of the kernel is refuted.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import mkdtemp
from threading import Timer

from tlcheck.errors import UsageError
from tlcheck.execute.request import SOURCE
from tlcheck.execute.worlds.source_runs import SourceRuns
from tlcheck.gate.bisect import RIGHT, WRONG, case_key, state_of
from tlcheck.gate.bisect_passes import Guilty, judge_passes
from tlcheck.gate.verdict_outcomes import all_claims
from tlcheck.lower.runs import Lowered, Run
from tlcheck.lower.selection import Selection
from tlcheck.lower.session import Session, Settings
from tlcheck.program.release import Release
from tlcheck.snapshot.ir import Snapshot
from tlcheck.toolchain.neighbours import installed_around
from tlcheck.verdicts.checking import checking, with_inputs
from tlcheck.verdicts.claim import PROVED, Claim, FindingHistory
from tlcheck.verdicts.judge import JudgeWatcher, Policy
from tlcheck.verdicts.judging import with_given
from tlcheck.verdicts.results import Result, read_snapshot

_TRIED = 3  # releases on either side
OWN_PARTS = 2.0  # that the neighbours and the passes take, in times of the kernel's own check
_Name = tuple[str, str]  # of a claim: its kind and its buffer


@dataclass(frozen=True)
class HistorySearch:
    """A search for histories. policy: how kernels are executed; neither expectations nor acceptances take part.

    folder: of files. stoppable: takes what ends the work where the user ends the command. seconds: that all of it may
    take; None for any time. With a limit, only the nearest releases are tried, else as many as `distance` on a side.
    until_right: whether a release that is right on one side ends the search on the other side as well. stopped: whether
    the user has ended the command.
    """

    settings: Settings
    policy: Policy
    folder: Path
    watcher: JudgeWatcher
    stoppable: Callable[[Callable[[], None]], None] = lambda stop: None
    seconds: float | None = None
    distance: int = _TRIED
    until_right: bool = False
    stopped: Callable[[], bool] = lambda: False

    def told(self, result: Result) -> Result:
        """The result with the history of each finding that blames the compiler."""
        if not _is_wrong(result):
            return result
        end = None if self.seconds is None else time.monotonic() + self.seconds
        neighbours = self._neighbours(result, end)
        is_over = self.stopped() or (end is not None and time.monotonic() > end)
        passes = {} if is_over else self._passes(result, end)
        return replace(result, claims=tuple([_told(claim, neighbours, passes) for claim in result.claims]))

    def _neighbours(self, result: Result, end: float | None) -> list[Result]:
        """The kernel with the releases around its own, oldest first."""
        older, newer = installed_around(result.run.toolchain, result.run.release, self.settings.requirements)
        sides = [older, newer]
        found: list[Result] = []
        for distance in range(self.distance if end is None else 1):
            names = [side[distance] for side in sides if distance < len(side)]
            tried = [done for _, done in self.checked(result.run, names, end)] if names else []
            found += tried
            right = {r.run.toolchain for r in tried if state_of(r) == RIGHT}
            if self.stopped() or (right and self.until_right):
                break
            sides = [side[: distance + 1] if right & set(side) else side for side in sides]
        return sorted(found, key=lambda r: Release.of(r.run.toolchain))

    def checked(self, run: Run, releases: Sequence[str], end: float | None) -> list[tuple[Lowered, Result]]:
        """The kernel with each of these releases, as far as there is time until `end` (monotonic)."""
        self.watcher.stage(f"checking {run.case} {run.target} with {' and '.join(releases)}")
        wanted = [_selection(run, release) for release in releases]
        own = Path(mkdtemp(dir=self.folder))
        request = self.policy.execute
        request = None if request is None else replace(request, sources=SourceRuns())
        policy = Policy(excusing=False, execute=request)
        with checking(self.settings, policy, own, self.watcher) as checks:
            self.stoppable(checks.stop)
            with _until(end, checks.stop):
                every = [pair for pair in checks.results(wanted) if not pair[1].is_interrupted]
            return [pair for pair in every if _is_same(pair[1].run, run)]

    def _passes(self, result: Result, end: float | None) -> Mapping[_Name, Guilty]:
        """The pass that makes each claim wrong, as far as one is found."""
        run = result.run
        self.watcher.stage(f"looking at the passes of {run.case} {run.target}")
        settings = replace(with_inputs(self.settings, self.policy.execute), every_pass=True)
        session = Session(settings, Path(mkdtemp(dir=self.folder)), self.watcher)
        self.stoppable(session.stop)
        with _until(end, session.stop):
            every = session.lower([_selection(run, run.toolchain)])
            done = next((done for done in every if _is_same(done.run, run)), None)
        if done is None or done.snapshot is None or (end is not None and time.monotonic() > end):
            return {}
        snapshot, request = read_snapshot(done.snapshot), self.policy.execute
        if request is not None and done.inputs is not None:
            if done.inputs.given is None:
                return {}
            request = with_given(request, _source_of(snapshot), done.inputs.given)
        if request is not None and end is not None:
            left = max(0.0, end - time.monotonic())
            request = replace(request, budget=replace(request.budget, seconds=left))
        wrong = [claim for claim in all_claims(result.claims) if claim.blames_compiler]
        try:
            return {(g.claim.kind, g.claim.buffer): g for g in judge_passes(run, snapshot, request, wrong).guilty}
        except UsageError:  # a pipeline without tiles
            return {}


def with_histories(results: Sequence[Result], search: HistorySearch) -> list[Result]:
    """The results, each finding that blames the compiler with its history; as they are where that takes too long."""
    expected = OWN_PARTS * sum(result.seconds for result in results if _is_wrong(result))
    if search.seconds is not None and expected > search.seconds:
        return list(results)
    return [search.told(result) for result in results]


def _is_wrong(result: Result) -> bool:
    """Whether a release is to blame for something that nobody expects, in a kernel that can be lowered again."""
    wrong = any(claim.blames_compiler and claim.excuse is None for claim in result.claims)
    return wrong and result.failure is None and not result.saved


@contextmanager
def _until(end: float | None, stop: Callable[[], None]) -> Iterator[None]:
    """Stop what runs at a time (monotonic); never for None."""
    limit = None if end is None else Timer(max(0.0, end - time.monotonic()), stop)
    if limit is not None:
        limit.start()
    try:
        yield
    finally:
        if limit is not None:
            limit.cancel()


def _is_same(run: Run, other: Run) -> bool:
    """Whether two runs are of one kernel and target; a script makes others besides."""
    return (case_key(run), run.target) == (case_key(other), other.target)


def _selection(run: Run, toolchain: str) -> Selection:
    if run.is_captured:
        return Selection(Path(run.file), toolchain=toolchain)
    return Selection(Path(run.file), run.name, toolchain=toolchain, only=frozenset([(run.name, run.target)]))


def _source_of(snapshot: Snapshot) -> Snapshot:
    """A snapshot of every pass as one of the source alone."""
    return replace(snapshot, checkpoints={SOURCE: next(iter(snapshot.checkpoints.values()))})


def _told(claim: Claim, neighbours: Sequence[Result], passes: Mapping[_Name, Guilty]) -> Claim:
    """A claim, and what it explains, each with its history."""
    also = tuple([_told(other, neighbours, passes) for other in claim.also])
    if claim.finding is None or not claim.blames_compiler:
        return replace(claim, also=also)
    right, wrong, unknown, verdicts = [], [], [], set[str]()
    for result in neighbours:
        own = [c for c in all_claims(result.claims) if (c.kind, c.key) == (claim.kind, claim.key)]
        if state_of(result) == WRONG:
            wrong.append(result.run.release)
        elif state_of(result) == RIGHT or (own and all(c.is_clean for c in own)):
            right.append(result.run.release)
            verdicts |= {c.verdict for c in own} or {"agreed"}
        else:
            unknown.append(result.run.release)
    guilty = passes.get((claim.kind, claim.buffer))
    name, note = _culprit(guilty)
    role = guilty.role if guilty is not None else "breaks"
    history = FindingHistory(tuple(right), tuple(wrong), tuple(unknown), verdicts == {PROVED}, name, role, note)
    return replace(claim, also=also, finding=replace(claim.finding, history=history))


def _culprit(guilty: Guilty | None) -> Iterator[str]:
    """The pass, and what there is to say of it."""
    if guilty is None:
        yield from ("", "")
    elif not guilty.number:
        yield from ("", f"{guilty.pass_name} did not run")
    else:
        yield guilty.pass_name or "the code generator"
        yield guilty.notes[0] if guilty.notes else ""
