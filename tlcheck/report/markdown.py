"""Markdown, fit for a comment on a pull request: the verdict, a table of what was found, the kernels folded away."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from html import escape

from tlcheck.report.notices import ERROR, HAZARD, Document, Told, cases_in_words, together

LIMIT = 60_000  # characters: GitHub takes comments of up to 65,536
_MARKS = {"error": ":x:", "hazard": ":x: hazard", "warning": ":warning:", "note": ":information_source:"}
_MARKUP = re.compile(r"[\\`*_<>|#@\[\]&~]")
_OPEN = 5  # kernels that are listed without folding


def render(document: Document) -> str:
    """The whole comment; what does not fit is counted."""
    told = together(document.subjects)
    table = [_table(told)] if told else []
    parts = [_head(document), *table, *(_section(t) for t in told), *_evidence(document)]
    parts += [f"> {inert(note)}\n" for note in document.notes]  # each a paragraph of its own
    text, left = "", len(parts)
    for part in parts:
        if len(text) + len(part) > LIMIT:
            return f"{text}\n_{left} more parts are in the other reports._\n"
        text, left = f"{text}{part}\n", left - 1
    return text


def _head(document: Document) -> str:
    mark = ":x:" if document.failed else ":warning:" if document.incomplete else ":white_check_mark:"
    return f"### {mark} tlcheck {document.command}\n\n{inert(document.verdict)}\n"


def _table(told: list[Told]) -> str:
    """Return how many kernels each kind of notice is about."""
    numbers: Counter[tuple[str, str]] = Counter()
    for t in told:
        mark = ":heavy_check_mark: accepted" if t.first.accepted else _MARKS[t.first.level]
        numbers[mark, t.first.id.partition("/")[0]] += len(t.members)
    rows = [f"| {mark} | {name} | {number} |" for (mark, name), number in numbers.items()]
    return "\n".join(["| | what | runs |", "|---|---|---|", *rows, ""])


def _section(told: Told) -> str:
    notice = told.first
    accepted = f" — accepted: {inert(notice.accepted)}" if notice.accepted else ""
    mark = "" if notice.accepted else f"{_MARKS[notice.level]} "
    head = f"{mark}**{notice.id}**: {inert(notice.title)}{accepted}"
    cases = [f"- `{case}`" for case in cases_in_words(told)]
    detail = []
    if notice.level in (ERROR, HAZARD):
        place = f"{notice.file}:{notice.line}: " if notice.line else ""
        text = f"{place}{notice.message}\n{notice.detail}".strip().replace("```", "'''")
        detail = ["```text", *text.splitlines(), "```", ""]
    if len(cases) <= _OPEN:
        return "\n".join([head, "", *cases, "", *detail])
    summary = f"<details><summary>{len(cases)} kernels</summary>"
    return "\n".join([head, "", summary, "", *cases, "", "</details>", "", *detail])


def _evidence(document: Document) -> Iterator[str]:
    """Yield what a device shows of every case for every target."""
    found: dict[str, list[str]] = {}
    for subject in document.subjects:
        if subject.evidence:
            found.setdefault(subject.evidence, []).append(f"- `{subject.words}`")
    for words, cases in found.items():
        yield f"<details><summary>on the device: {escape(words)}: {len(cases)}</summary>\n"
        yield "\n".join([*cases, "", "</details>", ""])


def inert(text: str) -> str:
    """One line of text as it is where nothing in it is markup, else as code: no tags, no mentions, and readable where
    Markdown is not rendered, too.
    """
    plain = " ".join(text.split()).replace("``", "''")
    if not _MARKUP.search(plain):
        return plain
    return f"`` {plain} ``" if "`" in plain else f"`{plain}`"
