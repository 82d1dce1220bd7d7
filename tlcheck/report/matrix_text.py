"""A matrix for people: a table that fits the terminal, what is not fine in it, and which toolchains can be used."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console
from rich.table import Table
from rich.text import Text

from tlcheck.matrix.cell import STATES, State
from tlcheck.matrix.table import Matrix
from tlcheck.matrix.words import column_in_words, costs_in_words, since_in_words, told, verdict_in_words

_STYLES: dict[State, str] = {
    "fine": "green",
    "wrong": "bold red",
    "hazard": "red",
    "broken": "red",
    "undecided": "yellow",
    "absent": "dim",
}
_LETTERS: dict[State, str] = {"fine": ".", "wrong": "W", "hazard": "H", "broken": "B", "undecided": "?", "absent": "-"}


def write(console: Console, found: Matrix) -> None:
    """Print the table, then each kernel that is not fine everywhere with the first thing that is said of it."""
    letters = not _fits(console, found)
    console.print(_table(found, letters=letters), highlight=False)
    if letters:
        seen = {cell.state for row in found.rows for cell in row.cells}
        letters_told = [f"{letter} {state}" for state, letter in _LETTERS.items() if state != "hazard" or state in seen]
        console.print(Text("  ".join(letters_told), style="dim"))
    for line in (*_rows(found), *_costs(found), *_columns(found)):
        console.print(line, highlight=False, soft_wrap=True)


def _fits(console: Console, found: Matrix) -> bool:
    longest = max(len(row.title) for row in found.rows)
    states = sum(max(len(column.title), max(map(len, STATES))) + 2 for column in found.columns)
    return longest + 2 + states <= console.width


def _table(found: Matrix, *, letters: bool) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("kernel", overflow="fold")
    for column in found.columns:
        table.add_column(Text(column.title), overflow="fold")
    for row in found.rows:
        shown = (Text(_LETTERS[cell.state] if letters else cell.state, _STYLES[cell.state]) for cell in row.cells)
        table.add_row(Text(row.title), *shown)
    return table


def _rows(found: Matrix) -> Iterator[Text]:
    for row in found.rows:
        lines = list(told(row))
        if lines:
            since = since_in_words(row)
            yield Text(f"{row.title}: {since}" if since else row.title, style="bold")
        for state, toolchains, words in lines:
            yield Text.assemble("  ", (state, _STYLES[state]), f" {toolchains}: {words}")


def _costs(found: Matrix) -> Iterator[Text]:
    for row in found.rows:
        lines = list(costs_in_words(row))
        yield from [Text(f"{row.title}: cost", style="bold")] * bool(lines)
        yield from (Text(f"  {line}") for line in lines)


def _columns(found: Matrix) -> Iterator[Text]:
    for note in found.notes:
        yield Text(f"note: {note}", style="yellow")
    for column in found.columns:
        usable = found.is_supported(column)
        style = "green" if usable else "red"
        yield Text.assemble((column.title, style), f": {column_in_words(found, column)}")
    yield Text(verdict_in_words(found), style="bold")
