"""What `tlcheck check` found as notices, for the formats that all commands share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tlcheck.lower.runs import line_of
from tlcheck.report.notices import ERROR, NOTE, WARNING, Document, Notice, Subject
from tlcheck.verdicts.claim import Claim, Finding
from tlcheck.verdicts.results import Result
from tlcheck.verdicts.rules.pages import pages
from tlcheck.verdicts.words import summary_in_words

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
    return {**{page.id: page.title for page in pages()}, **_OTHERS}


def _subject(result: Result) -> Subject:
    run = result.run
    skipped = f"expected: {result.excuse.reason}" if result.excuse is not None else ""
    return Subject(run.file, run.name, run.target, tuple(_notices(result)), skipped=skipped)


def _notices(result: Result) -> Iterator[Notice]:
    line = result.claims[0].source.line if result.claims else 1
    if result.failure is not None:
        excuse = result.excuse.reason if result.excuse is not None else ""
        at = line_of(result.run, result.failure)
        title = f"{result.failure.phase}: {result.failure.message}"
        yield Notice(NOT_CHECKED, ERROR, title, title, result.run.file, at, result.failure.detail, excuse)
    for claim in result.claims:
        excuse = claim.excuse.reason if claim.excuse is not None else ""
        if claim.finding is not None:
            yield _finding(claim, claim.finding, excuse)
        elif claim.verdict == "undecided":
            message = f"{claim.buffer}: {claim.reason}"
            yield _notice(UNDECIDED, WARNING, claim.reason, message, claim, "", excuse)
    for broken in result.broken:
        yield Notice(UNEXPECTED, ERROR, broken, broken, result.run.file, line)


def _finding(claim: Claim, finding: Finding, excuse: str) -> Notice:
    """What is expected or accepted is a note."""
    message = f"{claim.buffer}: {finding.what}, at {finding.checkpoint}"
    detail = f"witness: {finding.words}"
    return _notice(finding.rule, NOTE if excuse else ERROR, finding.title, message, claim, detail, excuse)


def _notice(name: str, level: str, title: str, message: str, claim: Claim, detail: str, excuse: str) -> Notice:
    return Notice(name, level, title, message, claim.source.file, claim.source.line, detail, excuse)
