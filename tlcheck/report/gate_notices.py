"""The gate's result as notices, for the formats that all commands share."""

from __future__ import annotations

from tlcheck.exits import NOT_CHECKED
from tlcheck.gate.device_outcomes import evidence_in_words
from tlcheck.gate.gate import Gate
from tlcheck.gate.outcome import CLASSES, FAILS_IN_BOTH, LoweredPair, Outcome
from tlcheck.gate.words import lasting_in_words, verdict_in_words
from tlcheck.lower.runs import near
from tlcheck.report.notices import ERROR, HAZARD, NOTE, WARNING, Document, Notice, Subject

_SILENT = ("fixed", "same")
_WARNINGS = ("wrong", "hazard", "weaker", "broken", "sync-risk", "slower-risk")


def document_of(gate: Gate) -> Document:
    """Leave out what is fixed or the same."""
    kinds = {klass: words for klass, words in CLASSES.items() if klass not in _SILENT}
    subjects = tuple(_subject(gate, compared) for compared in gate.comparisons)
    incomplete = gate.exit_code == NOT_CHECKED
    lasting = tuple(f"refuted with both toolchains: {line}" for line in lasting_in_words(gate))
    notes = (*lasting, *gate.notes)
    return Document("gate", verdict_in_words(gate), subjects, notes, kinds, gate.failed, incomplete)


def _subject(gate: Gate, compared: LoweredPair) -> Subject:
    seconds = compared.after.seconds if compared.after is not None else 0.0
    skipped = "fails with both toolchains" if compared.klass == FAILS_IN_BOTH else ""
    notices = tuple([_notice(gate, compared, o) for o in compared.outcomes if o.klass not in _SILENT])
    evidence = evidence_in_words(compared)
    return Subject(compared.file, compared.name, compared.target, notices, seconds, skipped, evidence)


def _notice(gate: Gate, compared: LoweredPair, outcome: Outcome) -> Notice:
    failing = HAZARD if outcome.klass == "hazard" else ERROR
    level = failing if outcome.klass in gate.failing else WARNING if outcome.klass in _WARNINGS else NOTE
    common = " -> ".join(dict.fromkeys(part for part in (outcome.before, outcome.after) if part))
    detail = f"witness: {outcome.finding.words}" if outcome.finding is not None else outcome.detail
    title = f"{outcome.kind}: {common}"
    file = near(compared.source)
    return Notice(outcome.klass, level, title, outcome.words, file, outcome.line, detail, outcome.accepted or "")
