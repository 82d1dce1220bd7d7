"""Differences at a terminal: in words, then the text side by side, or one above the other where it is narrow."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from tlcheck.golden.comparison import GoldenComparison, GoldenGroup
from tlcheck.golden.entry import Golden
from tlcheck.golden.normal import parse
from tlcheck.golden.textdiff import ADDED, CHANGED, MOVED, NESTED, REMOVED, RENAMED, SAME, Row, Span, TextDiff, TextLine
from tlcheck.report.console import ENDLESS
from tlcheck.verdicts.words import plural

SIDE_BY_SIDE = 160  # columns from which on both texts fit beside each other
_CONTEXT = 2  # lines shown around a difference
_NAMES = 4  # cases named of a group
_SIGNS = {SAME: " ", RENAMED: " ", REMOVED: "-", ADDED: "+", CHANGED: "~", NESTED: ">", MOVED: "*"}
_STYLES = {REMOVED: "red", ADDED: "green", MOVED: "cyan", NESTED: "cyan", RENAMED: "dim"}
_SYNTAX = (
    (re.compile(r"\b(def|for|in|if|elif|else|while|with|pass|and|or|not)\b"), "magenta"),
    (re.compile(r"\bT\.\w+"), "blue"),
    (re.compile(r'"(?:[^"\\]|\\.)*"'), "yellow"),
    (re.compile(r"(?<![\w.])\d[\w.]*"), "cyan"),
    (re.compile(r"^\s*#.*"), "dim"),
)


@dataclass(frozen=True)
class DiffForm:
    """The way in which differences are shown. markdown: for a comment. stat: in words alone, without the text."""

    markdown: bool = False
    stat: bool = False


def write_groups(
    console: Console, groups: Sequence[GoldenGroup], limit: int | None = None, *, stat: bool = False
) -> None:
    """Each group with its words, and but for `stat` the text of its first case. limit: number of its rows at most."""
    for group in groups:
        for part in group_words(group) if stat else group_parts(group, console.width, limit):
            console.print(part, highlight=False, soft_wrap=isinstance(part, Text))


def group_words(group: GoldenGroup) -> Iterator[Text]:
    """Yield the kernels of a group, and what differs."""
    yield Text.assemble((", ".join(_named(group.names)), "bold"), f"  {_kind(group.comparison)}")
    yield from words(group.comparison)


def group_parts(group: GoldenGroup, width: int, limit: int | None = None) -> Iterator[RenderableType]:
    """Yield what to print of one group."""
    yield from group_words(group)
    for checkpoint, text in group.comparison.texts.items():
        yield from text_parts(checkpoint, text, width, limit)


def _named(names: Sequence[str]) -> Iterable[str]:
    if len(names) <= _NAMES + 1:
        return names
    return (*names[:_NAMES], f"and {plural(len(names) - _NAMES, 'more run')}")


def _kind(comparison: GoldenComparison) -> str:
    names = {"changed": "differs", "header": "the same IR"}
    if comparison.kind == "names" and all(text.respelled == text.counts[RENAMED] for text in comparison.texts.values()):
        return "differs in the terms of equal indices only"
    return names.get(comparison.kind, f"differs in {comparison.kind} only")


def words(comparison: GoldenComparison) -> Iterator[Text]:
    """A line for each difference."""
    for line in comparison.summary:
        yield Text(f"    {line}", style="" if comparison.kind == "changed" else "dim")


def text_parts(checkpoint: str, text: TextDiff, width: int, limit: int | None = None) -> Iterator[RenderableType]:
    """The rows that differ, with some around them."""
    yield Text(f"    at {checkpoint}:", style="dim")
    table = Table.grid(padding=(0, 1, 0, 0))
    wide = SIDE_BY_SIDE <= width < ENDLESS
    table.add_column(justify="right", no_wrap=True, style="dim")
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold", ratio=1)
    if wide:
        table.add_column(justify="right", no_wrap=True, style="dim")
        table.add_column(overflow="fold", ratio=1)
        table.expand = True
    lines = list(_wide(text) if wide else _narrow(text))
    for line in lines[:limit]:
        table.add_row(*line)
    yield table
    if limit is not None and len(lines) > limit:
        yield Text(f"    ... {len(lines) - limit} lines more", style="dim")


def plain_parts(golden: Golden) -> Iterator[RenderableType]:
    """A golden that there is nothing to compare with."""
    for checkpoint, text in golden.texts().items():
        yield Text(f"    at {checkpoint}:", style="dim")
        for number, line in enumerate(parse(text).lines, 1):
            yield _side(Row(SAME, None, TextLine(number, line)), TextLine(number, line), ())


def _wide(text: TextDiff) -> Iterator[tuple[Text, ...]]:
    for row in shown(text.rows):
        if row is None:
            yield Text("..."), Text(), Text(), Text("..."), Text()
            continue
        ours, theirs = row.spans()
        sign = Text(_SIGNS[row.kind], style=_STYLES.get(row.kind, "yellow"))
        left, right = (_side(row, side, spans) for side, spans in ((row.left, ours), (row.right, theirs)))
        yield Text(_number(row.left)), sign, left, Text(_number(row.right)), right


def _narrow(text: TextDiff) -> Iterator[tuple[Text, ...]]:
    for row in shown(text.rows):
        if row is None:
            yield Text("..."), Text(), Text()
            continue
        ours, theirs = row.spans()
        if row.kind in (SAME, RENAMED):
            yield Text(_number(row.right)), Text(" "), _side(row, row.right, ())
            continue
        if row.left is not None:
            yield Text(_number(row.left)), Text(_sign(row, "-"), style="red"), _side(row, row.left, ours)
        if row.right is not None:
            yield Text(_number(row.right)), Text(_sign(row, "+"), style="green"), _side(row, row.right, theirs)


def _sign(row: Row, sign: str) -> str:
    return f"*{sign}" if row.kind == MOVED else sign


def _number(side: TextLine | None) -> str:
    return "" if side is None else str(side.number)


def _side(row: Row, side: TextLine | None, spans: Sequence[Span]) -> Text:
    """A line with syntax colours; what differs stands out."""
    if side is None:
        return Text()
    text = Text(side.text)
    for pattern, style in _SYNTAX:
        for found in pattern.finditer(side.text):
            text.stylize(style, *found.span())
    if row.kind in _STYLES:
        text.stylize(_STYLES[row.kind])
    for start, end in spans:
        text.stylize("bold reverse" if row.kind != RENAMED else "underline", start, end)
    return text


def shown(rows: Sequence[Row]) -> Iterator[Row | None]:
    """Rows that differ by more than names with their surroundings; None for what is left out between."""
    wanted = (lambda row: row.kind != SAME) if _names_only(rows) else (lambda row: row.kind not in (SAME, RENAMED))
    near = {n for place, row in enumerate(rows) if wanted(row) for n in range(place - _CONTEXT, place + _CONTEXT + 1)}
    last = -1
    for place in sorted(n for n in near if 0 <= n < len(rows)):
        if place != last + 1:
            yield None
        yield rows[place]
        last = place
    if last + 1 < len(rows):
        yield None


def _names_only(rows: Sequence[Row]) -> bool:
    return all(row.kind in (SAME, RENAMED) for row in rows)
