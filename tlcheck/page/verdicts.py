"""What checking a kernel found, in words for a page."""

from __future__ import annotations

from collections.abc import Iterator

from tlcheck.page.model import BAD, GOOD, QUIET, WARN, Remark, Tag
from tlcheck.verdicts.claim import AGREED, PROVED, Claim, Excerpt
from tlcheck.verdicts.results import Result
from tlcheck.verdicts.words import VERDICTS, also_in_words, content_in_words
from tlcheck.witness import Element

_TONES = {"proved": GOOD, "agreed": GOOD, "refuted": BAD, "undecided": WARN, "expected": QUIET, "accepted": QUIET}


def tags_of(result: Result) -> list[Tag]:
    """The verdicts that its atomics have, the worst first."""
    found = [verdict for verdict in VERDICTS if result.count(verdict)]
    order = (BAD, WARN, QUIET, GOOD)
    return sorted((Tag(verdict, _TONES[verdict]) for verdict in found), key=lambda tag: order.index(tag.tone))


def remarks_of(result: Result) -> Iterator[Remark]:
    """A remark for each atomic that is not proved, one for all others, and what else there is to know."""
    if result.failure is not None:
        tone = QUIET if result.excuse is not None else BAD
        first, _, rest = result.failure.message.partition("\n")
        lines = [*rest.splitlines(), *([f"known: {result.excuse.reason}"] if result.excuse else [])]
        yield Remark(f"{result.failure.phase}: {first}", tone, lines, result.failure.detail.splitlines())
    for claim in result.claims:
        if not claim.is_clean:
            yield _remark(claim)
    for verdict in (PROVED, AGREED):
        clean = [claim for claim in result.claims if claim.verdict == verdict]
        if clean:
            yield Remark(f"{len(clean)} {verdict}", GOOD, [_clean(claim) for claim in clean])
    yield from (Remark(text, WARN) for text in (*result.broken, *result.notes))


def _clean(claim: Claim) -> str:
    """What was proved, or how much of it was executed."""
    if claim.kind != "atomic":
        return f"{claim.kind} {claim.buffer}: {claim.executed.words if claim.executed is not None else claim.verdict}"
    made = ", ".join(claim.instructions)
    return f"{claim.buffer}: {claim.call} -> {made}, {claim.source.words}; {content_in_words(claim)}"


def _remark(claim: Claim) -> Remark:
    found = claim.finding
    known = [f"{claim.excuse.kind}: {claim.excuse.reason}"] if claim.excuse is not None else []
    where = f"{claim.source.words}: {claim.source.text}".removesuffix(": ")
    if found is None:
        return Remark(f"undecided: {claim.buffer}: {claim.reason}", WARN, [where, *known])
    title = f"{found.rule} {found.name}: {claim.buffer}: {found.what}"
    also = [f"also {', '.join(found.others)}"] if found.others else []
    also += [f"also {words}" for words in also_in_words(claim)]
    lines = [
        found.words,
        *(found.witness.steps if isinstance(found.witness, Element) else ()),
        f"first {found.place}",
        where,
        *([found.advice] if found.advice else []),
        *also,
        *known,
    ]
    code = _excerpt(found.excerpt) if found.excerpt is not None else ()
    return Remark(title, QUIET if claim.excuse is not None else BAD, lines, code)


def _excerpt(excerpt: Excerpt) -> list[str]:
    """Lines of TIR, the atomic's with a sign."""
    numbered = enumerate(excerpt.lines, excerpt.first)
    return [f"{'>' if number == excerpt.marked else ' '} {number:4} {line}" for number, line in numbered]
