"""What `tlcheck check` found as notices, for the formats that all commands share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tlcheck.report.notices import ERROR, NOTE, WARNING, Document, Notice, Subject
from tlcheck.verdicts.results import AtomicResult, FindingResult, Result
from tlcheck.verdicts.rules.rule import rules
from tlcheck.verdicts.words import summary_in_words, witness_in_words

NOT_CHECKED, UNDECIDED, UNEXPECTED = "not-checked", "undecided", "unexpectedly-fine"
_OTHERS = {
    NOT_CHECKED: "a kernel fails, or its atomics cannot be read",
    UNDECIDED: "an atomic could be neither proved nor refuted",
    UNEXPECTED: "what a case expects of a release does not hold",
}


def document_of(results: Sequence[Result], notes: Sequence[str], exit_code: int) -> Document:
    """Everything but what is proved."""
    subjects = tuple(_subject(result) for result in results)
    return Document("check", summary_in_words(list(results)), subjects, tuple(notes), _kinds(), exit_code != 0)


def _kinds() -> Mapping[str, str]:
    return {**{rule.id: rule.title for rule in rules()}, **_OTHERS}


def _subject(result: Result) -> Subject:
    run = result.run
    skipped = f"expected: {result.excuse.reason}" if result.excuse is not None else ""
    return Subject(run.file, run.name, run.target, tuple(_notices(result)), skipped=skipped)


def _notices(result: Result) -> Iterator[Notice]:
    line = result.atomics[0].source.number if result.atomics else 1
    if result.failure is not None:
        excuse = result.excuse.reason if result.excuse is not None else ""
        title = f"{result.failure.phase}: {result.failure.message}"
        yield Notice(NOT_CHECKED, ERROR, title, title, result.run.file, 1, result.failure.detail, excuse)
    for atomic in result.atomics:
        excuse = atomic.excuse.reason if atomic.excuse is not None else ""
        if atomic.finding is not None:
            yield _finding(atomic, atomic.finding, excuse)
        elif atomic.verdict == "undecided":
            message = f"{atomic.buffer}: {atomic.reason}"
            yield _notice(UNDECIDED, WARNING, atomic.reason, message, atomic, "", excuse)
    for broken in result.broken:
        yield Notice(UNEXPECTED, ERROR, broken, broken, result.run.file, line)


def _finding(atomic: AtomicResult, finding: FindingResult, excuse: str) -> Notice:
    """What is expected or accepted is a note."""
    message = f"{atomic.buffer}: {finding.what}, at {finding.checkpoint}"
    detail = f"witness: {witness_in_words(finding.witness, atomic.buffer)}"
    return _notice(finding.rule, NOTE if excuse else ERROR, finding.title, message, atomic, detail, excuse)


def _notice(name: str, level: str, title: str, message: str, atomic: AtomicResult, detail: str, excuse: str) -> Notice:
    return Notice(name, level, title, message, atomic.source.file, atomic.source.number, detail, excuse)
