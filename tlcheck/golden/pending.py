"""What waits for a decision: a golden's new content, with what a person must know to decide."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from tlcheck.golden.golden import Golden, Key
from tlcheck.lower.runs import Run
from tlcheck.verdicts.acceptance import Acceptances

META = "pending.json"


@dataclass(frozen=True)
class Refuted:
    """A finding in the content. excuse: why the case or its source says that this is known; empty if they do not."""

    rule: str
    buffer: str
    what: str
    excuse: str = ""

    def __str__(self) -> str:
        return f"{self.rule} at {self.buffer}: {self.what}"


@dataclass(frozen=True)
class Pending:
    """golden: None where the approved one is to be removed. versions: of what lowered it. notes: in words."""

    key: Key
    golden: Golden | None
    versions: Mapping[str, str]
    findings: tuple[Refuted, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def digest(self) -> str:
        return self.golden.digest if self.golden else ""

    def reasons(self, accepted: Acceptances, root: Path) -> tuple[dict[str, str], list[Refuted]]:
        """The findings that are accepted by name, each with its reason, and those that are not."""
        run = Run(str(root / self.key.file), self.key.name, self.key.target, "", self.versions)
        entries = [entry for entry in accepted.entries if entry.concerns(run, accepted.folder)]
        reasons: dict[str, str] = {}
        refuted = []
        for finding in self.findings:
            reason = finding.excuse or next((e.reason for e in entries if e.id == finding.rule), "")
            if reason:
                reasons[f"{finding.rule} at {finding.buffer}"] = reason
            else:
                refuted.append(finding)
        return reasons, refuted

    def meta(self) -> str:
        """All but the content, as the file that says that the content is complete."""
        data = {
            "hash": self.digest,
            "parts": sorted(self.golden.parts) if self.golden else [],
            "versions": dict(self.versions),
            "findings": [asdict(finding) for finding in self.findings],
            "notes": list(self.notes),
        }
        return json.dumps(data, indent=1) + "\n"


@dataclass(frozen=True)
class Meta:
    """What `Pending.meta` holds. hash: empty for a removal."""

    hash: str
    parts: tuple[str, ...]
    versions: Mapping[str, str]
    findings: tuple[Refuted, ...]
    notes: tuple[str, ...]


def read_meta(text: str) -> Meta:
    """Raises ValueError for anything else."""
    try:
        data: dict[str, Any] = json.loads(text)
        findings = tuple(Refuted(**finding) for finding in data["findings"])
        plain = {f.name: data[f.name] for f in fields(Meta)}
        return Meta(**{**plain, "parts": tuple(data["parts"]), "findings": findings, "notes": tuple(data["notes"])})
    except (KeyError, TypeError) as error:
        raise ValueError(str(error)) from error
