"""Tell TileLang's front end from the author: where a source differs from its reference, and in a release beside it does
not.

The reference and its inputs are the same ones for each release. A source that means the reference in one of them has
lost its meaning in the other on the way from Python to TIR.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import mkdtemp

from tlcheck.cache.store import Cache
from tlcheck.gate.history import OWN_PARTS, HistorySearch, until
from tlcheck.lower.runs import Run
from tlcheck.lower.selection import Selection
from tlcheck.run.references import ReferenceCheck
from tlcheck.toolchain.neighbours import installed_around
from tlcheck.verdicts.checking import checking
from tlcheck.verdicts.claim import Claim, FindingHistory
from tlcheck.verdicts.results import Result


@dataclass(frozen=True)
class FrontEndSearch:
    """A search among the releases beside a kernel's own. search: how kernels are checked with these, and how long."""

    search: HistorySearch
    cache: Cache

    def told(self, result: Result) -> Result:
        """The result; a source that a release beside it has right is not the author's fault."""
        seconds = self.search.seconds
        is_dear = seconds is not None and OWN_PARTS * result.seconds > seconds
        if is_dear or not any(claim.is_of_reference for claim in result.claims):
            return result
        neighbours = self._neighbours(result.run)
        right = tuple([each.run.release for each in neighbours if each.reference])
        wrong = tuple([each.run.release for each in neighbours if any(claim.is_of_reference for claim in each.claims)])
        if not right:
            return result
        history = FindingHistory(right, wrong)
        return replace(result, claims=tuple([_of_compiler(claim, history) for claim in result.claims]))

    def _neighbours(self, run: Run) -> list[Result]:
        """The kernel with the release before its own and the one after it, compared with the reference."""
        search, settings = self.search, self.search.settings
        sides = installed_around(run.toolchain, run.release, settings.requirements)
        releases = [side[0] for side in sides if side]
        execute = search.policy.execute
        if not releases or execute is None:
            return []
        search.watcher.stage(f"comparing {run.case} with its reference in {' and '.join(releases)}")
        own, policy = Path(mkdtemp(dir=search.folder)), replace(search.policy, excusing=False)
        with checking(settings, policy, own, search.watcher) as checks:
            search.stoppable(checks.stop)
            with until(None if search.seconds is None else time.monotonic() + search.seconds, checks.stop):
                found = [pair for pair in checks.results(_selections(run, releases)) if not pair[1].is_interrupted]
            return ReferenceCheck(settings, policy, execute, self.cache, own, search.watcher).compared(found)


def _selections(run: Run, releases: Sequence[str]) -> list[Selection]:
    only = frozenset([(run.name, run.target)])
    return [Selection(Path(run.file), run.name, toolchain=release, only=only) for release in releases]


def _of_compiler(claim: Claim, history: FindingHistory) -> Claim:
    """A difference from the reference as TileLang's."""
    if claim.finding is None or not claim.is_of_reference:
        return claim
    finding = replace(claim.finding, blame="compiler", pass_name="the front end", advice="", history=history)
    return replace(claim, finding=finding)
