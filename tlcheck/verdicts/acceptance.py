"""Findings that a project accepts: entries of one TOML file, or a comment beside the atomic.

[[accept]]
id = "TLA001"
case = "kernels/attention.py::full"   # relative to the file; * and ? as in a shell
releases = "<=0.1.7"                  # PEP 440
reason = "not deployed with these"

T.atomic_add(dQ, dq)  # tlcheck: ignore[TLA001] reason
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from tlcheck.config import Config, naming
from tlcheck.errors import UsageError
from tlcheck.lower.runs import Run
from tlcheck.verdicts.claim import Claim, Excuse, SourceLine
from tlcheck.verdicts.expectations import within
from tlcheck.verdicts.results import Result
from tlcheck.verdicts.rule_filter import EVERY_RULE, RuleFilter

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_HEAD = re.compile(r"\s*\[\[\s*accept\s*\]\]")
_RULE = re.compile(r"TL[AORLS]\d+")
_COMMENT = re.compile(r"#\s*tlcheck:\s*ignore\[([^\]]*)\]\s*(.*)")


@dataclass(frozen=True)
class Acceptance:
    """One entry of the file: a rule that may be broken in a case by some releases, and why."""

    id: str
    case: str
    releases: str
    reason: str

    def concerns(self, run: Run, folder: Path) -> bool:
        """Whether this is about a run; `folder` is the one that holds the acceptance file."""
        case = os.path.relpath(run.file, folder).replace(os.sep, "/") + f"::{run.name}"
        named = case == self.case or fnmatchcase(case, self.case)  # names of captured kernels have brackets
        return named and within(self.releases, run.release, f"acceptance of {self.id}")


@dataclass(frozen=True)
class Acceptances:
    """The entries of one file, and the rules that the command line leaves out."""

    folder: Path = Path()
    entries: tuple[Acceptance, ...] = ()
    rules: RuleFilter = EVERY_RULE

    def settle(self, result: Result) -> Result:
        """Excuse the findings that are accepted, and say which comments have no effect."""
        ours = [entry for entry in self.entries if entry.concerns(result.run, self.folder)]
        reasons = {entry.id: entry.reason for entry in reversed(ours)}
        claims = [part for claim in result.claims for part in _parted(claim, reasons, self.rules)]
        settled = [_settled(claim, reasons, self.rules) for claim in claims]
        notes = tuple(note for _, note in settled if note)
        return replace(result, claims=tuple(claim for claim, _ in settled), notes=result.notes + notes)

    def unused(self, results: Iterable[Result]) -> Iterator[str]:
        """A sentence for each entry whose cases were checked and do not break its rule."""
        checked = [result for result in results if result.failure is None]
        for entry in self.entries:
            if not _RULE.fullmatch(entry.id):
                continue  # of another command
            ours = [result for result in checked if entry.concerns(result.run, self.folder)]
            if ours and not any(entry.id in claim.rules for result in ours for claim in result.claims):
                yield f"acceptance of {entry.id} in {entry.case} ({entry.releases}) matches nothing: remove it"


def project_acceptances(config: Config) -> Acceptances:
    """Return what a project accepts. Raises UsageError, which names the setting."""
    if config.acceptance is None:
        return Acceptances()
    with naming(config, "acceptance"):
        return read_acceptances(config.acceptance)


def read_acceptances(file: Path) -> Acceptances:
    """Raises UsageError if the file is not as described."""
    try:
        text = file.read_text(encoding="utf-8")
        content = tomllib.loads(text)
    except OSError as error:
        raise UsageError(f"{file}: {error.strerror}") from error
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"{file}: {error}") from error
    entries = content.get("accept", [])
    if not isinstance(entries, list) or set(content) - {"accept"}:
        raise UsageError(f"{file}: expected [[accept]] entries and nothing else")
    places = [f"{file}:{n}" for n, line in enumerate(text.splitlines(), 1) if _HEAD.match(line)]
    if len(places) != len(entries):  # an array of tables that is written in another way
        places = [str(file)] * len(entries)
    return Acceptances(file.parent, tuple(map(_entry, places, entries)))


def _entry(place: str, entry: Any) -> Acceptance:
    """Read an entry. place: its file and line. Raises UsageError."""
    names = [field.name for field in fields(Acceptance)]
    if not isinstance(entry, dict) or set(entry) != set(names):
        has = set(entry) if isinstance(entry, dict) else set()
        parts = [("missing", [name for name in names if name not in has]), ("unknown", sorted(has - set(names)))]
        told = "; ".join(f"{what}: {', '.join(those)}" for what, those in parts if those)
        raise UsageError(f"{place}: an [[accept]] entry has {', '.join(names)}, and nothing else; {told}")
    if bad := [name for name in names if not isinstance(entry[name], str) or not entry[name].strip()]:
        raise UsageError(f"{place}: {bad[0]} of an [[accept]] entry must be a text that is not empty")
    within(entry["releases"], "0", place)
    return Acceptance(**entry)


def _parted(claim: Claim, reasons: dict[str, str], rules: RuleFilter) -> list[Claim]:
    """Return a claim, and by itself each output that only a rule left out by an option explains.

    `--ignore TLR` leaves out the race. The wrong output that the race makes still counts.
    """
    found = claim.finding
    if found is None or not rules.reason(found.rule) or _comment(claim.source, found.rule) or reasons.get(found.rule):
        return [claim]
    outputs = [part for part in claim.also if part.kind == "output"]
    shown = [part for part in outputs if part.finding is None or not rules.reason(part.finding.rule)]
    return [replace(claim, also=tuple(part for part in claim.also if part not in shown)), *shown]


def _settled(claim: Claim, reasons: dict[str, str], rules: RuleFilter) -> tuple[Claim, str]:
    """The claim, excused if its finding is accepted, and a note on a comment without effect."""
    if claim.finding is None or (claim.excuse is not None and claim.excuse.kind != "warning"):
        return claim, ""
    rule = claim.finding.rule
    comment = _comment(claim.source, rule)
    reason = comment or reasons.get(rule) or rules.reason(rule)
    note = f"{claim.source.file}:{claim.source.line}: ignore[{rule}] needs a reason" if comment == "" else ""
    return replace(claim, excuse=Excuse("accepted", reason)) if reason else claim, note


def _comment(source: SourceLine, rule: str) -> str | None:
    """The reason that the atomic's line or the one above gives to ignore a rule; None without such a comment."""
    lines = (source.text, source.above) if source.exact else ()
    for line in lines:
        found = _COMMENT.search(line)
        if found and rule in [part.strip() for part in found[1].split(",")]:
            return found[2].strip()
    return None
