"""Reduce a wrong kernel of a file to the smallest one with its finding: the same pass is to blame."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from tlcheck.cache.store import open_cache
from tlcheck.errors import UsageError
from tlcheck.execute.request import Request
from tlcheck.gate.history import HistorySearch
from tlcheck.gate.verdict_outcomes import all_claims, wrong_claim, wrong_claims
from tlcheck.lower.runs import Lowered
from tlcheck.lower.selection import Selection
from tlcheck.lower.session import Settings
from tlcheck.remedy.kernel_source import KernelSource, source_of
from tlcheck.remedy.reduction import KernelReduction, bound, lines_of
from tlcheck.remedy.reduction_trials import Benches, Trials, WantedFinding
from tlcheck.snapshot.ir import Snapshot
from tlcheck.toolchain.resolve import resolve
from tlcheck.verdicts.checking import checking
from tlcheck.verdicts.claim import Claim
from tlcheck.verdicts.judge import JudgeWatcher, Policy
from tlcheck.verdicts.results import Result, read_snapshot
from tlcheck.worker.jobs import LowerJob

_RELEASES = 20  # on either side, up to one that is right: a smaller kernel has to be right there


@dataclass(frozen=True)
class Reduced:
    """The smallest kernel that was found. lines: of the first text and of this one. pass_name: to blame.

    result: of the kernel as it was, with its history; after: of this one, None where the user ended the command before.
    """

    text: str
    function: str
    lines: tuple[int, int]
    result: Result
    after: Result | None
    tried: int
    known: int

    @property
    def claim(self) -> Claim:
        """The finding, of the kernel as it was."""
        return wrong_claim(self.result)

    @property
    def claim_after(self) -> Claim | None:
        """The same finding, of this one; None where it was not checked."""
        wanted = WantedFinding.of(self.claim)
        return next(filter(wanted.is_of, all_claims(self.after.claims)), None) if self.after is not None else None

    @property
    def pass_name(self) -> str:
        """The pass to blame, of this kernel where it was checked, else of the kernel as it was."""
        return pass_of(self.claim_after or self.claim)


@dataclass(frozen=True)
class Reducer:
    """The way in which kernels are reduced. folder: of files. seconds: of wall-clock time for trials; 0 leaves a kernel
    as it is.

    stopped: whether the user has ended it. thorough: whether the small kernel is tried with releases on both sides, up
    to one on each that has it right; else up to the first one.
    """

    settings: Settings
    request: Request
    folder: Path
    watcher: JudgeWatcher
    seconds: float
    stoppable: Callable[[Callable[[], None]], None]
    stopped: Callable[[], bool]
    thorough: bool = False

    def reduced(self, lowered: Lowered, result: Result) -> Reduced:
        """Reduce a kernel that a release has wrong. Raises UsageError where its source cannot be taken apart."""
        source = source_of(lowered)
        try:
            text = bound(source.file.read_text(encoding="utf-8"), source.function, source.args)
        except (ValueError, SyntaxError) as error:
            raise UsageError(f"{result.run.case}: cannot be reduced: {error}") from error
        result = replace(result, run=replace(result.run, name=source.name))
        result = self._history().told(result)
        claim = wrong_claim(result)
        trials = self._trials(lowered, result, claim, source)
        scripts = self.settings.scripts
        env = dict(scripts.variables) if scripts else {}
        benches = Benches(trials, trials.processors(self.settings.jobs), self.folder, env)
        try:
            reduction = KernelReduction(
                benches, self.seconds, pass_of(claim), [claim.buffer], stopped=self.stopped, told=self._tell(result)
            )
            if not self.stopped() and not reduction.begin(text) and not self.stopped():
                raise UsageError(f"{result.run.case}: {_NOT_ALONE}")
            if self.seconds and reduction.best:
                reduction.run(source.function)
        finally:
            benches.close()
        best = reduction.best or text
        after = None if self.stopped() else self.checked(best, source.function, result)
        lines = lines_of(text), lines_of(best)
        return Reduced(best, source.function, lines, result, after, benches.tried, benches.known)

    def _trials(self, lowered: Lowered, result: Result, claim: Claim, source: KernelSource) -> Trials:
        run, finding = result.run, claim.finding
        assert finding is not None
        right = finding.history.right_in[-1:] if finding.history is not None else ()
        names = (run.toolchain, *right)
        toolchains = tuple(resolve(name, self.settings.requirements) for name in names)
        folder = str(source.file.resolve().parent)
        job = LowerJob(
            "",
            "",
            output="",
            arch=run.target,
            pythonpath=(*self.settings.pythonpath, folder),
            pass_configs=self.settings.pass_configs,
        )
        request = replace(self.request, seeds=_seeds_of(claim, result) or self.request.seeds)
        cache, seconds = open_cache(self.settings.cache), sum(lowered.seconds.values())
        return Trials(
            WantedFinding.of(claim, all_claims(result.claims)),
            source.function,
            toolchains,
            request,
            job,
            cache,
            seconds,
            self.settings.cluster,
            self.settings.warm,
        )

    def _tell(self, result: Result) -> Callable[[str, int], None]:
        run = result.run
        return lambda what, lines: self.watcher.stage(f"{run.case} {run.target}: {lines} lines left, editing {what}")

    def _history(self) -> HistorySearch:
        policy = Policy(excusing=False, execute=self.request)
        settings = replace(self.settings, scripts=None)
        search = HistorySearch(settings, policy, self.folder, self.watcher, self.stoppable, distance=_RELEASES)
        return replace(search, until_right=True, stopped=self.stopped)

    def checked(self, text: str, name: str, result: Result) -> Result:
        """Return the result of a text with its history."""
        run = result.run
        settings = replace(self.settings, arch=(run.target,), args={}, scripts=None, cluster=None)
        found, _ = self.check(settings, Selection(self.file(text, name), name, run.toolchain))
        return replace(self._history(), settings=settings, until_right=not self.thorough).told(found)

    def file(self, text: str, name: str) -> Path:
        """Write a kernel into a folder of its own."""
        file = Path(tempfile.mkdtemp(dir=self.folder)) / f"{name}.py"
        file.write_text(text, encoding="utf-8")
        return file

    def check(self, settings: Settings, kernel: Selection) -> tuple[Result, Snapshot | None]:
        """Check one kernel on this machine. The snapshot is None where it does not lower."""
        settings = replace(settings, cluster=None)
        policy = Policy(excusing=False, execute=self.request)
        folder = Path(tempfile.mkdtemp(dir=self.folder))
        with checking(settings, policy, folder, self.watcher) as checks:
            self.stoppable(checks.stop)
            ((lowered, result),) = checks.results([kernel])
            return result, None if lowered.snapshot is None else read_snapshot(lowered.snapshot)


def _seeds_of(claim: Claim, result: Result) -> tuple[int, ...]:
    """One seed that shows a finding, and one that shows a wrong output, which a race may leave right in others."""
    outputs = [c for c in wrong_claims(result) if c.kind == "output"]
    found = [c.finding.seeds[:1] for c in (claim, *outputs[:1]) if c.finding is not None]
    return tuple(dict.fromkeys(seed for seeds in found for seed in seeds))


_NOT_ALONE = (
    "the finding is not there when the kernel stands alone, with inputs that tlcheck draws: nothing was reduced"
)


def pass_of(claim: Claim) -> str:
    """Return the pass that is to blame, empty where that is not known."""
    finding = claim.finding
    if finding is None:
        return ""
    return (finding.history.pass_name if finding.history is not None else "") or finding.pass_name
