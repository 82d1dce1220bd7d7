"""The report of `tlcheck run --from --to`: the times of two toolchains side by side."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tlcheck import __version__
from tlcheck.report.records import ClocksReport, as_json, record
from tlcheck.run.examination import TimeComparison
from tlcheck.run.statistics import ALPHA, LEAST, TimeChange
from tlcheck.verdicts.words import plural

SCHEMA = 2
_STYLES = {"slower": "bold red", "faster": "green", "same": ""}


@dataclass(frozen=True)
class TimedCaseReport:
    """One case. change: of its times; null where it was not timed, with the reason."""

    case: str
    target: str
    change: TimeChange | None
    reason: str


class TimesReport(msgspec.Struct, frozen=True, rename={"old": "from", "new": "to"}):
    """Report of `tlcheck run --from --to --format json`.

    schema: version of this form; it changes when a field changes its meaning or goes away. commit: of the kernels.
    exit_code: of the command. old, new: toolchains. device: what torch says of the GPU.
    """

    schema: int
    tlcheck: str
    commit: str
    exit_code: int
    old: str
    new: str
    device: Mapping[str, Any]
    clocks: ClocksReport
    date: str
    cases: tuple[TimedCaseReport, ...]


def write(console: Console, found: TimeComparison) -> None:
    """A table, and what counts as a change."""
    device = f"{found.device['name']} ({found.device['arch']}), {found.date}; old: {found.old}, new: {found.new}"
    console.print(Text(device, style="dim"), soft_wrap=True, highlight=False)
    table = Table("case", "old ms", "new ms", "ratio", "spread", "p", "", box=None)
    for comparison in found.comparisons:
        change = comparison.change
        if change is None:
            continue
        numbers = (f"{change.old:.4f}", f"{change.new:.4f}", f"{change.new / change.old:.3f}")
        verdict = Text(change.verdict, _STYLES[change.verdict])
        table.add_row(comparison.run.case, *numbers, f"{change.spread:.1%}", f"{change.p:.4f}", verdict)
    console.print(table, highlight=False)
    for comparison in found.comparisons:
        if comparison.change is None:
            line = Text.assemble(comparison.run.case, "  ", ("not timed", "yellow"), f": {comparison.reason}")
            console.print(line, soft_wrap=True, highlight=False)
    test = f"a change: Mann-Whitney p < {ALPHA:g} over rounds in turns, and more than their spread and {LEAST:.0%}"
    console.print(Text(test, style="dim"), soft_wrap=True, highlight=False)
    console.print(Text(summary(found), style="bold"), soft_wrap=True, highlight=False)


def summary(found: TimeComparison) -> str:
    """`8 cases: 1 slower, 7 same`."""
    verdicts = [c.change.verdict if c.change else "not timed" for c in found.comparisons]
    counts = {verdict: verdicts.count(verdict) for verdict in ("slower", "faster", "same", "not timed")}
    parts = ", ".join(f"{number} {verdict}" for verdict, number in counts.items() if number)
    return f"{plural(len(verdicts), 'case')}: {parts or 'nothing'}"


def render(found: TimeComparison, commit: str, exit_code: int) -> str:
    """The report for programs, indented, with a newline at its end."""
    cases = tuple(record(TimedCaseReport, comparison, comparison.run) for comparison in found.comparisons)
    whole = {"schema": SCHEMA, "tlcheck": __version__, "commit": commit, "exit_code": exit_code}
    return as_json(record(TimesReport, found, clocks=ClocksReport(*found.clocks), cases=cases, **whole))
