"""The gate's result for people: each difference once, with the kernels that have it, and the verdict last."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console
from rich.text import Text

from tlcheck.gate.classes import CLASSES
from tlcheck.gate.gate import Gate
from tlcheck.gate.groups import Group, groups, members_in_words
from tlcheck.gate.words import seconds_in_words, slowest_in_words, unchanged_in_words, verdict_in_words
from tlcheck.report.words import plural, witness_in_words

_STYLES = {
    "wrong": "bold red",
    "weaker": "bold yellow",
    "broken": "bold red",
    "slower-risk": "yellow",
    "changed": "cyan",
    "fixed": "green",
    "fails-in-both": "dim",
}
_DETAIL = 6  # lines of an error
_WIDTH = 300  # characters of a line


def write(console: Console, gate: Gate) -> None:
    """Print the whole report. Texts of kernels are no markup."""
    for line in _lines(gate):
        console.print(line, highlight=False, soft_wrap=True)


def _lines(gate: Gate) -> Iterator[Text]:
    klass = ""
    for group in groups(gate.comparisons):
        if group.klass != klass:
            klass = group.klass
            yield Text.assemble((klass, _STYLES[klass]), (f": {CLASSES[klass]}", "dim"))
        yield from _group(group)
    for note in gate.notes:
        yield Text(f"note: {note}", style="yellow")
    if seconds := seconds_in_words(gate):
        yield Text(seconds)
        yield Text(f"  slowest: {slowest_in_words(gate)}", style="dim")
    if unchanged := unchanged_in_words(gate):
        yield Text(unchanged)
    yield Text(verdict_in_words(gate), style="bold red" if gate.failed else "bold green")


def _group(group: Group) -> Iterator[Text]:
    number = plural(len(group.members), "run")
    accepted = f" (accepted: {group.accepted})" if group.accepted else ""
    yield Text.assemble("  ", (_cut(group.words), "bold"), f"  {number}{accepted}")
    for line in members_in_words(group.members):
        yield Text(f"      {line}", style="dim")
    compared, first = group.members[0]
    if first.words != group.words and f"{first.before} -> {first.after}" not in first.words:
        yield Text(f"      such as {compared.case} {compared.target}: {_cut(first.words)}", style="dim")
    if first.finding is not None:
        yield Text(f"      witness: {witness_in_words(first.finding.witness, first.subject)}")
        yield Text(f"      tlcheck explain {first.finding.rule}")
    elif group.klass in ("broken", "fails-in-both"):
        yield from (Text(f"      {_cut(line)}", style="dim") for line in first.detail.splitlines()[:_DETAIL])


def _cut(line: str) -> str:
    return line if len(line) <= _WIDTH else f"{line[: _WIDTH - 3]}..."
