"""Differences as Markdown, for a comment on a pull request."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tlcheck.golden.comparison import GoldenGroup
from tlcheck.golden.textdiff import MOVED, RENAMED, SAME, Row
from tlcheck.report.diff_text import shown
from tlcheck.report.markdown import inert
from tlcheck.verdicts.words import plural

_LINES = 80  # of a diff
_WIDTH = 200  # characters of a line
_WORDS = 12  # lines in words
_NAMES = 20  # cases named of a group


def render(groups: Sequence[GoldenGroup], notes: Sequence[str], head: str, *, stat: bool = False) -> str:
    """The whole text; diffs are folded. stat: without them."""
    lines = [f"### {head}", ""]
    for group in groups:
        lines += _words(group)
        lines += [] if stat else _texts(group)
    lines += [f"- {inert(note)}" for note in notes]
    return "\n".join(lines).rstrip("\n") + "\n"


def _words(group: GoldenGroup) -> Iterator[str]:
    names = [*group.names[:_NAMES], *([f"and {len(group.names) - _NAMES} more"] if len(group.names) > _NAMES else [])]
    yield f"**{plural(len(group.names), 'run')}**: {', '.join(inert(name) for name in names)}"
    yield ""
    summary = group.comparison.summary
    yield from (f"- {inert(line)}" for line in summary[:_WORDS])
    if len(summary) > _WORDS:
        yield f"- and {len(summary) - _WORDS} more"
    yield ""


def _texts(group: GoldenGroup) -> Iterator[str]:
    for checkpoint, text in group.comparison.texts.items():
        yield f"<details><summary>TIR at {checkpoint}</summary>"
        yield ""
        yield "```diff"
        rows = [line for row in shown(text.rows) for line in _lines(row)]
        yield from rows[:_LINES]
        if len(rows) > _LINES:
            yield f"  ... {len(rows) - _LINES} lines more"
        yield "```"
        yield "</details>"
        yield ""


def _lines(row: Row | None) -> Iterator[str]:
    """A row as lines of a diff; what is left out is a line of its own."""
    if row is None:
        yield "@@ ... @@"
        return
    if row.kind in (SAME, RENAMED) and row.right is not None:
        yield f"  {_cut(row.right.text)}"
        return
    moved = "* " if row.kind == MOVED else ""
    if row.left is not None:
        yield f"- {moved}{_cut(row.left.text)}"
    if row.right is not None:
        yield f"+ {moved}{_cut(row.right.text)}"


def _cut(text: str) -> str:
    text = text.replace("```", "'''")
    return text if len(text) <= _WIDTH else text[: _WIDTH - 3] + "..."
