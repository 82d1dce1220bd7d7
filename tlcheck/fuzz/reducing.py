"""The smallest kernel of each finding, and since when it is wrong: by the reducer, one after the other."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from tlcheck.errors import UsageError
from tlcheck.execute.request import Request
from tlcheck.files import put
from tlcheck.fuzz.folder import CampaignFolder, Found
from tlcheck.fuzz.known import known
from tlcheck.fuzz.outcome import symptom
from tlcheck.gate.verdict_outcomes import all_claims
from tlcheck.lower.selection import Selection
from tlcheck.lower.session import Settings
from tlcheck.remedy.reducing import Reduced, Reducer
from tlcheck.verdicts.checking import checking
from tlcheck.verdicts.judge import JudgeWatcher, Policy

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
        file = self.folder.kernel(found).resolve()
        settings = replace(self.settings, arch=(found.arch,), args={}, scripts=None)
        policy = Policy(excusing=False, execute=self.request)
        with checking(settings, policy, self.working, self.watcher) as checks:
            self.stoppable(checks.stop)
            ((lowered, result),) = checks.results([Selection(file, found.name)])
        if not any(c.blames_compiler and c.finding is not None for c in all_claims(result.claims)):
            found.history = found.history or _NOT_AGAIN
            return
        reducer = Reducer(
            settings, self.request, self.working, self.watcher, self.seconds, self.stoppable, self.stopped
        )
        try:
            reduced = reducer.reduced(lowered, result)
        except UsageError as error:
            found.history = str(error)[:200]
            return
        self._keep(found, reduced)

    def _keep(self, found: Found, reduced: Reduced) -> None:
        """Keep the small kernel. One that shows as another finding does is no other finding."""
        folder = self.folder.path / "findings" / found.place
        put(folder / "reduced.py", reduced.text)
        found.lines = reduced.lines[1]
        claim = reduced.claim_after or reduced.claim
        shows = symptom(claim, reduced.text)
        shows = replace(shows, pass_name=reduced.pass_name or shows.pass_name)
        history = claim.finding.history if claim.finding is not None else None
        found.history = history.words if history is not None else ""
        alike = next((f for f in self.folder.state.found if f is not found and f.lines and f.shows == shows), None)
        found.shows = shows
        found.known = known(shows) or (alike.known or alike.place if alike is not None else "")
