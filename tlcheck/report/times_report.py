"""The report of `tlcheck run --from --to`: the times of two toolchains side by side."""

from __future__ import annotations

import json
from dataclasses import asdict

from rich.console import Console
from rich.table import Table
from rich.text import Text

from tlcheck import __version__
from tlcheck.run.examination import TimeComparison
from tlcheck.run.statistics import ALPHA, LEAST
from tlcheck.verdicts.words import plural

SCHEMA = 1
_STYLES = {"slower": "bold red", "faster": "green", "same": ""}


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
    """The report for programs, with a newline at its end."""
    before, after = found.clocks
    report = {
        "schema": SCHEMA,
        "tlcheck": __version__,
        "commit": commit,
        "exit_code": exit_code,
        "from": found.old,
        "to": found.new,
        "device": dict(found.device),
        "clocks": {"before": dict(before), "after": dict(after)},
        "date": found.date,
        "cases": [
            {
                "case": comparison.run.case,
                "target": comparison.run.target,
                "change": asdict(comparison.change) if comparison.change else None,
                "reason": comparison.reason,
            }
            for comparison in found.comparisons
        ],
    }
    return json.dumps(report, indent=1) + "\n"
