"""Report what `-v` says of a finding besides: the TIR, how the value came about, what was executed."""

from __future__ import annotations

from collections.abc import Iterator

from tlcheck.verdicts.claim import Claim, Excerpt, Finding
from tlcheck.verdicts.words import also_in_words
from tlcheck.witness import Element

_LINE, _NEIGHBOUR = 400, 56  # characters shown of the line that is wrong, and of those around it


def details(claim: Claim, finding: Finding) -> Iterator[tuple[str, str]]:
    """Rows, each with its heading."""
    yield "found", finding.place
    if finding.excerpt is not None:
        yield "TIR", "\n".join(_excerpt(finding.excerpt))
    if finding.layout:
        yield "layout", finding.layout
    yield "witness", finding.words
    if isinstance(finding.witness, Element) and finding.witness.steps:
        yield "trace", "\n".join(finding.witness.steps)
    if finding.others:
        yield "also", ", ".join(finding.others)
    for words in also_in_words(claim):
        yield "also", words
    if claim.executed is not None:
        yield "executed", claim.executed.words


def _excerpt(excerpt: Excerpt) -> Iterator[str]:
    """The line and its neighbours, cut where long; what all lines are indented by is left out."""
    indent = min((len(line) - len(line.lstrip()) for line in excerpt.lines if line.strip()), default=0)
    for number, line in enumerate(excerpt.lines, excerpt.first):
        here = number == excerpt.marked
        text, most = line[indent:], _LINE if here else _NEIGHBOUR
        yield f"{'>' if here else ' '} {number:4} {text if len(text) <= most else text[: most - 3] + '...'}"
