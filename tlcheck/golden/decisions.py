"""Accepting and rejecting what waits."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tlcheck.config import ACCEPTANCE
from tlcheck.golden.approvals import decision
from tlcheck.golden.pending import Pending
from tlcheck.golden.store import GoldenStore
from tlcheck.verdicts.acceptance import Acceptances


@dataclass(frozen=True)
class Decisions:
    """accepted: the findings that the project accepts by name."""

    store: GoldenStore
    accepted: Acceptances
    root: Path

    def problem(self, pending: Pending) -> str:
        """Return why content cannot be accepted, and what to do; empty if it can. Recording something is not approving
        it.
        """
        _, refuted = pending.reasons(self.accepted, self.root)
        if not refuted:
            return ""
        rules = ", ".join(dict.fromkeys(claim.rules[0] for claim in refuted))
        findings = "".join(f"\n    {claim.words}" for claim in refuted)
        return (
            f"{pending.key}: not accepted, it is refuted:{findings}\n"
            f"    to accept it all the same, accept {rules} by name with a reason: [[accept]] with id and case = "
            f'"{pending.key.case}" in {ACCEPTANCE} (see docs/accept.md)'
        )

    def accept(self, pending: Pending, reason: str) -> None:
        """Accept what has no `problem`."""
        reasons, _ = pending.reasons(self.accepted, self.root)
        findings = tuple(f"{finding} ({why})" for finding, why in reasons.items())
        self.store.accept(pending, decision(pending.digest, reason, findings, pending.claimed))

    def reject(self, pending: Pending, reason: str) -> None:
        self.store.reject(pending, decision(pending.digest, reason))
