"""Tell TileLang's front end from the author: where a source differs from its reference, and in a release beside it does
not.

The reference and its inputs are the same ones for each release. A source that means the reference in one of them has
lost its meaning in the other on the way from Python to TIR.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import mkdtemp

from tlcheck.cache.store import Cache
from tlcheck.gate.history import OWN_PARTS, HistorySearch
from tlcheck.lower.runs import Run
from tlcheck.run.references import ReferenceCheck
from tlcheck.toolchain.neighbours import installed_around
from tlcheck.verdicts.claim import Claim, FindingHistory
from tlcheck.verdicts.judge import Policy
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
        search = self.search
        sides = installed_around(run.toolchain, run.release, search.settings.requirements)
        releases = [side[0] for side in sides if side]
        execute = search.policy.execute
        if not releases or execute is None:
            return []
        found = search.checked(run, releases, None if search.seconds is None else time.monotonic() + search.seconds)
        policy, own = Policy(excusing=False, execute=execute), Path(mkdtemp(dir=search.folder))
        return ReferenceCheck(search.settings, policy, execute, self.cache, own, search.watcher).compared(found)


def _of_compiler(claim: Claim, history: FindingHistory) -> Claim:
    """A difference from the reference as TileLang's."""
    if claim.finding is None or not claim.is_of_reference:
        return claim
    finding = replace(claim.finding, blame="compiler", pass_name="the front end", advice="", history=history)
    return replace(claim, finding=finding)
