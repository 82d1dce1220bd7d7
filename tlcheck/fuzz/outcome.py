"""The outcome of a lowered, judged kernel: it says something of the release, of the source, or of tlcheck."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from tlcheck.fuzz.bench import Judged
from tlcheck.fuzz.constructs import statement_at
from tlcheck.fuzz.relations import relations, remarks
from tlcheck.gate.verdict_outcomes import all_claims
from tlcheck.reasons import INTERNAL
from tlcheck.verdicts.claim import UNDECIDED, Claim

Sort = Literal["agreed", "refuted", "author", "undecided", "refused", "crashed", "failed"]
SORTS: dict[Sort, str] = {
    "agreed": "proved or agreed, all of it",
    "refuted": "TileLang is to blame",
    "author": "the source is not well defined: it does not count",
    "undecided": "a claim is undecided, none refuted",
    "refused": "TileLang, nvcc or the GPU refuses it",
    "crashed": "TileLang dies, or does not end",
    "failed": "tlcheck itself fails, or does not come to an end: a bug of tlcheck",
}
_LOUD = ("TLA013", "TLL003")  # the CUDA does not compile, or is not launched: nobody is misled
_NAMES = re.compile(r"\b[a-zA-Z]+\d+\b|0x[0-9a-f]+|\d+")


@dataclass(frozen=True, order=True)
class Symptom:
    """A record of how a bug shows: of two findings with the same one, one is kept.

    rule: the first that is broken. kind: how it begins (`FindingOrigin`). pass_name: after which it is there.
    statement, other: what stands on the lines that are concerned.
    """

    rule: str
    kind: str
    pass_name: str
    statement: str
    other: str = ""

    @property
    def words(self) -> str:
        where = f"{self.statement} after {self.other}" if self.other else self.statement
        return f"{self.rule} {self.kind} at {where or '?'} ({self.pass_name or 'no pass'})"


@dataclass(frozen=True)
class KernelOutcome:
    """sort: see `SORTS`. what: the first sentence that says it. symptoms: of what is refuted, the first one first.

    says: for each symptom, the sentences of its claim.
    """

    sort: Sort
    what: str = ""
    symptoms: tuple[Symptom, ...] = ()
    says: tuple[str, ...] = ()


def outcome(judged: Judged, text: str) -> KernelOutcome:
    """Return what a judged kernel says. A source that is at fault counts for nothing, whatever else is refuted."""
    if judged.refused is not None:
        sort: Sort = "crashed" if judged.refused.kind in ("crash", "timeout", "killed") else "refused"
        return KernelOutcome(sort, f"{judged.refused.kind}: {judged.refused.message}")
    found = judged.verdicts
    assert found is not None
    claims = all_claims(found.claims)
    if found.failure is not None:
        return KernelOutcome("failed", f"{found.failure.kind}: {found.failure.message}")
    failed = [c for c in claims if c.code == INTERNAL.code]
    if failed:
        return KernelOutcome("failed", failed[0].reason)
    authors = [c for c in claims if c.finding is not None and c.is_authors]
    if authors:
        return KernelOutcome("author", authors[0].words)
    refuted = [c for c in claims if c.blames_compiler and c.finding is not None]
    silent = [c for c in refuted if c.finding is not None and c.finding.rule not in _LOUD]
    if refuted and not silent:
        return KernelOutcome("refused", refuted[0].words)
    if refuted:
        ranked = sorted(silent, key=_rank)
        symptoms = {symptom(c, text): sentences(c, text) for c in reversed(ranked)}
        ordered = dict.fromkeys(symptom(c, text) for c in ranked)
        return KernelOutcome("refuted", ranked[0].words, tuple(ordered), tuple(symptoms[s] for s in ordered))
    undecided = [c for c in claims if c.verdict == UNDECIDED]
    if undecided or not claims:
        return KernelOutcome("undecided", undecided[0].coded if undecided else "nothing is claimed")
    return KernelOutcome("agreed")


def _rank(claim: Claim) -> int:
    """Outputs that are wrong come first, hazards last."""
    assert claim.finding is not None
    return 2 if claim.finding.weight == "hazard" else int(claim.kind != "output")


def symptom(claim: Claim, text: str) -> Symptom:
    """Return how a refuted claim shows in a kernel's text."""
    finding = claim.finding
    assert finding is not None
    origin = finding.origin
    line = origin.line if origin is not None and origin.line else claim.source.line
    other = origin.other_line if origin is not None else 0
    return Symptom(
        finding.rule,
        origin.kind if origin is not None else "",
        finding.pass_name,
        statement_at(text, line),
        statement_at(text, other) if other else "",
    )


def sentences(claim: Claim, text: str) -> str:
    """Return what a refuted claim says, what its statement is about, and how the statements of its two accesses stand
    to each other.
    """
    finding = claim.finding
    assert finding is not None
    origin = finding.origin
    words = [claim.words, finding.words, *([origin.words, origin.missing] if origin is not None else [])]
    lines = (origin.line, origin.other_line) if origin is not None else (0, 0)
    told = remarks(text, lines[0] or claim.source.line)
    return "; ".join([*filter(None, words), *told, *(relations(text, *lines) if all(lines) else ())])


def plain(message: str) -> str:
    """A message without its names and numbers, so that alike ones are counted together."""
    return _NAMES.sub("_", message.partition("\n")[0])[:160]
