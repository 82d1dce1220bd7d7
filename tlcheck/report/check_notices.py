"""Report what `tlcheck check` found as notices, for the formats that all commands share: in the terminal's words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tlcheck import exits, reasons
from tlcheck.lower.runs import line_of, near
from tlcheck.report.notices import ERROR, HAZARD, NOTE, WARNING, Document, Notice, Subject
from tlcheck.verdicts.claim import Claim, Finding
from tlcheck.verdicts.kernels import CheckedKernel
from tlcheck.verdicts.problems import marked_lines, place_of, problem_of
from tlcheck.verdicts.results import Result
from tlcheck.verdicts.rules.rule_pages import pages
from tlcheck.verdicts.summary import summary_in_words

NOT_CHECKED, UNDECIDED, UNEXPECTED = "not-checked", "undecided", "unexpectedly-fine"
_OTHERS = {
    NOT_CHECKED: "a kernel fails, or its atomics cannot be read",
    UNDECIDED: "a claim could be neither confirmed nor refuted",
    UNEXPECTED: "what a case expects of a release does not hold",
}


def document_of(results: Sequence[Result], notes: Sequence[str], exit_code: int) -> Document:
    """Everything but what is proved or agreed. What is open makes it incomplete: it is not shown as a pass."""
    subjects = tuple(_subject(result) for result in results)
    kinds = {page.id: page.title for page in pages()} | {kind.code: kind.title for kind in reasons.KINDS} | _OTHERS
    levels = {notice.level for subject in subjects for notice in subject.notices if not notice.accepted}
    is_wrong = bool(levels & {ERROR, HAZARD})
    failed = exit_code not in (exits.CLEAN, exits.NOT_CHECKED) or (exit_code != exits.CLEAN and is_wrong)
    incomplete = exit_code != exits.CLEAN or WARNING in levels
    return Document("check", summary_in_words(results), subjects, tuple(notes), kinds, failed, incomplete)


def _subject(result: Result) -> Subject:
    """One that is not decided is no test that passed."""
    run, seconds = result.run, result.seconds
    opened = "; ".join(opened.words for opened, _ in CheckedKernel((result,)).open)
    skipped = f"expected: {result.excuse.reason}" if result.excuse is not None else opened
    return Subject(run.file, run.name, run.target, tuple(_notices(result)), seconds, skipped)


def _notices(result: Result) -> Iterator[Notice]:
    line = result.claims[0].source.line if result.claims else 1
    if result.failure is not None:
        excuse = result.excuse.reason if result.excuse is not None else ""
        at = line_of(result.run, result.failure)
        title = f"{result.failure.phase}: {result.failure.message}"
        yield Notice(NOT_CHECKED, ERROR, title, title, result.run.file, at, result.failure.detail, excuse)
    for claim in result.claims:
        if claim.finding is not None:
            yield _refuted(result, claim, claim.finding)
        elif claim.verdict == "undecided":
            excuse = claim.excuse.reason if claim.excuse is not None else ""
            words = f"not decided: {claim.coded}"
            message = f"{words} ({claim.buffer}). This is not a pass."
            yield Notice(claim.code or UNDECIDED, WARNING, words, message, *place_of(claim), "", excuse)
    for broken in result.broken:
        yield Notice(UNEXPECTED, ERROR, broken, broken, result.run.file, line)


def _refuted(result: Result, claim: Claim, finding: Finding) -> Notice:
    """A finding at the line that is wrong. Its title is the same for all kernels of a release that have it."""
    problem = problem_of(result, claim, finding)
    rows = [f"   {heading}: {words}" if heading else f"   {words}" for heading, words in problem.rows]
    detail = "\n".join([*marked_lines(problem.marks), *rows, f"   witness: {finding.words}"])
    warned = claim.counts_as == "warning"
    excuse = claim.excuse.reason if claim.excuse is not None and not warned else ""
    return Notice(
        finding.rule,
        WARNING if warned else NOTE if excuse else HAZARD if finding.weight == "hazard" else ERROR,
        f"{finding.title} [{problem.blamed}]",
        f"{problem.title}   {problem.blamed_for([result.run.target])}",
        near(problem.file),
        problem.line,
        detail,
        excuse,
    )
