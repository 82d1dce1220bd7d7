"""A matrix as Markdown, fit for a page or for a comment on a pull request."""

from __future__ import annotations

from collections.abc import Iterator

from tlcheck.matrix.cell import State
from tlcheck.matrix.table import Matrix
from tlcheck.matrix.words import column_in_words, costs_in_words, since_in_words, told, verdict_in_words
from tlcheck.report.markdown import inert

_MARKS: dict[State, str] = {
    "fine": ":white_check_mark:",
    "wrong": ":x: wrong",
    "hazard": ":x: hazard",
    "broken": ":x: broken",
    "undecided": ":grey_question:",
    "absent": "",
}


def render(found: Matrix) -> str:
    """The verdict, the table, and what is not fine in it."""
    told_of = [*_rows(found), *_costs(found), *_end(found)]
    return "\n".join([f"### {inert(verdict_in_words(found))}", "", *_table(found), "", *told_of])


def _table(found: Matrix) -> Iterator[str]:
    yield f"| kernel | {' | '.join(inert(column.title) for column in found.columns)} |"
    yield "|---" * (len(found.columns) + 1) + "|"
    for row in found.rows:
        title = row.title.replace("`", "'").replace("|", "\\|")
        yield f"| `{title}` | {' | '.join(_MARKS[cell.state] for cell in row.cells)} |"
    yield f"| | {' | '.join(column_in_words(found, column) for column in found.columns)} |"


def _rows(found: Matrix) -> Iterator[str]:
    for row in found.rows:
        lines = list(told(row))
        if lines:
            since = since_in_words(row)
            yield f"**{inert(row.title)}**{f': {since}' if since else ''}"
            yield ""
            yield from (f"- {state} {inert(toolchains)}: {inert(words)}" for state, toolchains, words in lines)
            yield ""


def _costs(found: Matrix) -> Iterator[str]:
    for row in found.rows:
        lines = list(costs_in_words(row))
        if lines:
            yield from (f"**{inert(row.title)}**: cost", "", *[f"- {inert(line)}" for line in lines], "")


def _end(found: Matrix) -> Iterator[str]:
    yield from (f"> {inert(note)}\n" for note in found.notes)
