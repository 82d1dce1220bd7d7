"""The smallest kernel of each finding, and since when it is wrong: one finding after the other."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import mkdtemp

from tlcheck.cache.store import open_cache
from tlcheck.execute.request import Request
from tlcheck.files import put
from tlcheck.fuzz.campaign_folder import CampaignFolder, Found
from tlcheck.fuzz.known import known
from tlcheck.fuzz.outcome import sentences, symptom
from tlcheck.gate.history import HistorySearch
from tlcheck.gate.verdict_outcomes import all_claims
from tlcheck.lower.client import processors
from tlcheck.lower.selection import Selection
from tlcheck.lower.session import Settings
from tlcheck.remedy.reduction import KernelReduction, bound, lines_of
from tlcheck.remedy.reduction_trials import Benches, Trials, WantedFinding
from tlcheck.toolchain.resolve import resolve
from tlcheck.verdicts.checking import checking
from tlcheck.verdicts.claim import Claim
from tlcheck.verdicts.judge import JudgeWatcher, Policy
from tlcheck.verdicts.results import Result
from tlcheck.worker.jobs import LowerJob

_NOT_AGAIN = "not there in a check of its own"


@dataclass(frozen=True)
class FindingReducer:
    """Reduces what a campaign has found. seconds: of trials, for each finding. working: for files on the way."""

    settings: Settings
    request: Request
    folder: CampaignFolder
    working: Path
    watcher: JudgeWatcher
    seconds: float
    stoppable: Callable[[Callable[[], None]], None]
    stopped: Callable[[], bool]

    def run(self, until: float) -> None:
        """Reduce findings until a time (monotonic), the first ones first."""
        for found in list(self.folder.to_reduce()):
            if self.stopped() or time.monotonic() > until:
                break
            self.watcher.stage(f"reducing {found.place}")
            self._reduce(found)
            self.folder.save()

    def _reduce(self, found: Found) -> None:
        text = bound(self.folder.kernel(found).read_text(encoding="utf-8"), found.name, {})
        claim, result = self._checked(text, found)
        if claim is None:
            found.history = _NOT_AGAIN
            return
        best = self._smallest(text, found, claim, all_claims(result.claims))
        claim, result = self._checked(best, found)
        if claim is None or self.stopped():
            return
        search = HistorySearch(
            replace(self.settings, scripts=None),
            Policy(excusing=False, execute=self.request),
            self.working,
            self.watcher,
            self.stoppable,
            self.seconds,
        )
        told = search.told(result)
        self._keep(found, best, result.run.release, next(c for c in all_claims(told.claims) if _same(c, claim)))

    def _smallest(self, text: str, found: Found, claim: Claim, claims: list[Claim]) -> str:
        """The text with as little as still shows the finding."""
        toolchain = resolve(self.settings.toolchain, self.settings.requirements)
        finding = claim.finding
        assert finding is not None
        trials = Trials(
            WantedFinding.of(claim, claims),
            found.name,
            (toolchain,),
            replace(self.request, seeds=finding.seeds[:1] or self.request.seeds[:1]),
            LowerJob("", "", output="", arch=found.arch, pass_configs=self.settings.pass_configs),
            open_cache(self.settings.cache),
        )
        benches = Benches(trials, self.settings.jobs or processors(), self.working, {})
        try:
            reduction = KernelReduction(benches, self.seconds, stopped=self.stopped, told=self._tell(found))
            if reduction.begin(text):
                reduction.run(found.name)
            return reduction.best or text
        finally:
            benches.close()

    def _tell(self, found: Found) -> Callable[[str, int], None]:
        return lambda what, lines: self.watcher.stage(f"reducing {found.place}: {lines} lines left, editing {what}")

    def _checked(self, text: str, found: Found) -> tuple[Claim | None, Result]:
        """The claim that a campaign would know a text by, if TileLang has it wrong, and all that is said of it."""
        file = Path(mkdtemp(dir=self.working)) / "kernel.py"
        file.write_text(text, encoding="utf-8")
        settings = replace(self.settings, arch=(found.arch,), args={}, scripts=None)
        policy = Policy(excusing=False, execute=self.request)
        with checking(settings, policy, file.parent, self.watcher) as checks:
            self.stoppable(checks.stop)
            ((_, result),) = checks.results([Selection(file, found.name)])
        wrong = [c for c in all_claims(result.claims) if c.blames_compiler and c.finding is not None]
        alike = [c for c in wrong if c.finding is not None and c.finding.rule == found.shows.rule]
        return next(iter([*alike, *wrong]), None), result

    def _keep(self, found: Found, text: str, release: str, claim: Claim) -> None:
        """Keep the small kernel. One that shows as another finding does is no other finding."""
        put(self.folder.path / "findings" / found.place / "reduced.py", text)
        found.lines = lines_of(text)
        history = claim.finding.history if claim.finding is not None else None
        found.history = history.words if history is not None else ""
        shows = symptom(claim, text)
        guilty = history.pass_name if history is not None else ""
        shows = replace(shows, pass_name=guilty or shows.pass_name)
        alike = next((f for f in self.folder.state.found if f is not found and f.lines and f.shows == shows), None)
        found.shows = shows
        name = known(shows, sentences(claim, text), text, release)
        found.known = name or (alike.known or alike.place if alike is not None else "")


def _same(one: Claim, other: Claim) -> bool:
    return (one.kind, one.key) == (other.kind, other.key) and one.finding is not None
