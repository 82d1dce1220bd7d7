"""Define what waits for a decision: a golden's new content, with what a person must know to decide."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from tlcheck.golden.entry import Golden, Key
from tlcheck.lower.runs import Run
from tlcheck.verdicts.acceptance import Acceptances
from tlcheck.verdicts.claim import Claim

META = "pending.json"


@dataclass(frozen=True)
class Pending:
    """golden: None where the approved one is to be removed. versions: of what lowered it. claims: the refuted ones of
    the content, with what the case or its source says of them. notes: in words. claimed: all claims, with verdicts.
    """

    key: Key
    golden: Golden | None
    versions: Mapping[str, str]
    claims: tuple[Claim, ...] = ()
    notes: tuple[str, ...] = ()
    claimed: tuple[str, ...] = ()

    @property
    def digest(self) -> str:
        return self.golden.digest if self.golden else ""

    def reasons(self, accepted: Acceptances, root: Path) -> tuple[dict[str, str], list[Claim]]:
        """The findings that are accepted by name, each with its reason, and the claims of those that are not."""
        run = Run(str(root / self.key.file), self.key.name, self.key.target, "", self.versions)
        entries = [entry for entry in accepted.entries if entry.concerns(run, accepted.folder)]
        reasons: dict[str, str] = {}
        refuted = []
        for claim in self.claims:
            assert claim.finding is not None
            rule = claim.finding.rule
            known = claim.excuse.reason if claim.excuse is not None else ""
            reason = known or next((e.reason for e in entries if e.id == rule), "")
            if reason:
                reasons[f"{rule} at {claim.buffer}"] = reason
            else:
                refuted.append(claim)
        return reasons, refuted

    def meta(self) -> str:
        """All but the content, as the file that says that the content is complete."""
        parts = tuple(sorted(self.golden.parts)) if self.golden else ()
        meta = Meta(self.digest, parts, self.versions, self.claims, self.notes, self.claimed)
        return json.dumps(msgspec.to_builtins(meta), indent=1) + "\n"


@dataclass(frozen=True)
class Meta:
    """A record of what `Pending.meta` holds. hash: empty for a removal."""

    hash: str
    parts: tuple[str, ...]
    versions: Mapping[str, str]
    claims: tuple[Claim, ...]
    notes: tuple[str, ...]
    claimed: tuple[str, ...] = ()


def read_meta(text: str) -> Meta:
    """Raises ValueError for anything else."""
    return msgspec.convert(json.loads(text), Meta)
