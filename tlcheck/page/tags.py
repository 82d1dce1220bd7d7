"""Describe what checking a kernel found, in words for a page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tlcheck.page.shown import BAD, GOOD, QUIET, SEVERITY, WARN, Remark, Spot, Tag
from tlcheck.snapshot.checkpoint import Checkpoint
from tlcheck.verdicts.claim import AGREED, PROVED, Claim, Excerpt, Finding
from tlcheck.verdicts.commands import bisecting
from tlcheck.verdicts.problems import marked_lines, place_of, problem_of
from tlcheck.verdicts.results import Result
from tlcheck.verdicts.words import VERDICTS, also_in_words, content_in_words
from tlcheck.witness import Accesses, Element

_TONES = {"proved": GOOD, "agreed": GOOD, "refuted": BAD, "undecided": WARN, "expected": QUIET, "accepted": QUIET}


def result_tags(result: Result) -> list[Tag]:
    """The verdicts that its atomics have, the worst first."""
    found = [verdict for verdict in VERDICTS if result.count(verdict)]
    return sorted((Tag(verdict, _TONES[verdict]) for verdict in found), key=_severity)


def claim_tags(result: Result) -> Mapping[str, Sequence[Tag]]:
    """Return each buffer with its verdict by kind, the worst first, with those that another one explains."""
    found: dict[str, dict[Tag, None]] = {}
    for claim in _all(result):
        words = f"{claim.buffer}: {claim.counts_as}"
        found.setdefault(claim.kind, {})[Tag(words, _TONES[claim.counts_as])] = None
    return {kind: sorted(tags, key=_severity) for kind, tags in found.items()}


def pass_tags(result: Result, names: Sequence[str]) -> list[Tag]:
    """The checkpoints of a wrong kernel in order: right, the first wrong one, wrong. Empty where none is known.

    An execution runs them from the last one back to one that is right: those before it are not looked at. A race is
    found at the last one only, since the barriers come last.
    """
    found = [claim.finding for claim in _all(result) if claim.kind != "order" and claim.finding is not None]
    known = [finding for finding in found if finding.checkpoint in names]
    if not known:
        return []
    first = min(known, key=lambda finding: names.index(finding.checkpoint))
    skipped = {reason.partition(" ")[0] for reason in first.skipped}
    begin = names.index(first.checkpoint)
    right = next((name for name in reversed(names[:begin]) if name not in skipped), "")
    return [_stage(name, place - begin, name in skipped, name == right, first) for place, name in enumerate(names)]


def _stage(name: str, after: int, is_skipped: bool, is_right: bool, first: Finding) -> Tag:
    if not after:
        by = f", after {first.pass_name}" if first.pass_name else ""
        return Tag(f"{name}: the first wrong one{by}", BAD)
    if is_skipped:
        return Tag(f"{name}: not executed", WARN)
    if after > 0:
        return Tag(f"{name}: wrong", BAD)
    return Tag(f"{name}: right", GOOD) if is_right else Tag(name, QUIET)


def in_pipeline(names: Sequence[str]) -> list[str]:
    """Names of checkpoints in the order of the pipeline."""
    return [name for name in Checkpoint if name in names]


def _all(result: Result) -> Iterator[Claim]:
    for claim in result.claims:
        yield from (claim, *claim.also)


def _severity(shown: Tag | Remark) -> int:
    return SEVERITY.index(shown.tone)


def remarks_of(result: Result) -> Iterator[Remark]:
    """A remark for each atomic that is not proved, one for all others, and what else there is to know."""
    if result.failure is not None:
        tone = QUIET if result.excuse is not None else BAD
        first, _, rest = result.failure.message.partition("\n")
        lines = [*rest.splitlines(), *([f"known: {result.excuse.reason}"] if result.excuse else [])]
        yield Remark(f"{result.failure.phase}: {first}", tone, lines, result.failure.detail.splitlines())
    yield from sorted((_remark(claim, result) for claim in result.claims if not claim.is_clean), key=_severity)
    for verdict in (PROVED, AGREED):
        clean = [claim for claim in result.claims if claim.verdict == verdict]
        if clean:
            yield Remark(f"{len(clean)} {verdict}", GOOD, [_clean(claim) for claim in clean])
    yield from (Remark(text, WARN) for text in (*result.broken, *result.notes))


def _clean(claim: Claim) -> str:
    """Return what was proved, or how much of it was executed."""
    if claim.kind != "atomic":
        return f"{claim.kind} {claim.buffer}: {claim.executed.words if claim.executed is not None else claim.verdict}"
    made = ", ".join(claim.instructions)
    return f"{claim.buffer}: {claim.call} -> {made}, {claim.source.words}; {content_in_words(claim)}"


def _remark(claim: Claim, result: Result) -> Remark:
    found = claim.finding
    known = [f"{claim.excuse.kind}: {claim.excuse.reason}"] if claim.excuse is not None else []
    if found is None:
        where = f"{claim.source.words}: {claim.source.text}".removesuffix(": ")
        return Remark(f"not decided: {claim.coded} ({claim.buffer}). This is not a pass.", WARN, [where, *known])
    problem = problem_of(result, claim, found)
    title = f"{problem.place}: {problem.title}   {problem.blamed_for([result.run.target])}"
    also = [f"also {', '.join(found.others)}"] if found.others else []
    also += [f"also {words}" for words in also_in_words(claim)]
    lines = [
        *marked_lines(problem.marks),
        *(f"{heading}: {words}" if heading else words for heading, words in problem.rows),
        f"witness: {found.words}",
        *(found.witness.steps if isinstance(found.witness, Element) else ()),
        f"found {found.place}",
        *also,
        *([] if result.saved else [bisecting(result.run)]),
    ]
    code = _excerpt(found.excerpt) if found.excerpt is not None else ()
    return Remark(title, QUIET if claim.excuse is not None else BAD, lines, code, list(_spots(claim, found)))


def _spots(claim: Claim, found: Finding) -> Iterator[Spot]:
    """The lines of TIR that it is about, and that of the user's file."""
    acts = found.witness
    both = [act for act in (acts.first, acts.second) if act is not None] if isinstance(acts, Accesses) else []
    lines = [(act.at, act.line) for act in both]
    lines += [(found.checkpoint, found.excerpt.marked)] if found.excerpt is not None else []
    yield from (Spot(at, line) for at, line in dict.fromkeys(lines) if line)
    file, line = place_of(claim)
    if line:
        yield Spot(file, line)


def _excerpt(excerpt: Excerpt) -> list[str]:
    """Lines of TIR, the atomic's with a sign."""
    numbered = enumerate(excerpt.lines, excerpt.first)
    return [f"{'>' if number == excerpt.marked else ' '} {number:4} {line}" for number, line in numbered]
