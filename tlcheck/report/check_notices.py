"""What `tlcheck check` found as notices, for the formats that all commands share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tlcheck.lower.runs import line_of
from tlcheck.report.notices import ERROR, NOTE, WARNING, Document, Notice, Subject
from tlcheck.verdicts.results import Result
from tlcheck.verdicts.rules.pages import pages
from tlcheck.verdicts.summary import summary_in_words

NOT_CHECKED, UNDECIDED, UNEXPECTED = "not-checked", "undecided", "unexpectedly-fine"
_OTHERS = {
    NOT_CHECKED: "a kernel fails, or its atomics cannot be read",
    UNDECIDED: "an atomic could be neither proved nor refuted",
    UNEXPECTED: "what a case expects of a release does not hold",
}


def document_of(results: Sequence[Result], notes: Sequence[str], exit_code: int) -> Document:
    """Everything but what is proved."""
    subjects = tuple(_subject(result) for result in results)
    kinds = {**{page.id: page.title for page in pages()}, **_OTHERS}
    return Document("check", summary_in_words(list(results)), subjects, tuple(notes), kinds, exit_code != 0)


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
        place = claim.source.file, claim.source.line
        if (finding := claim.finding) is not None:
            level = NOTE if excuse else ERROR
            where = "" if finding.blame == "author" else f", at {finding.checkpoint}"
            message = f"{claim.buffer}: {finding.what}{where} [{finding.blamed(result.run.tilelang)}]"
            message += f". {finding.origin.words}" if finding.origin is not None else ""
            yield Notice(finding.rule, level, finding.title, message, *place, f"witness: {finding.words}", excuse)
        elif claim.verdict == "undecided":
            yield Notice(UNDECIDED, WARNING, claim.reason, f"{claim.buffer}: {claim.reason}", *place, "", excuse)
    for broken in result.broken:
        yield Notice(UNEXPECTED, ERROR, broken, broken, result.run.file, line)
