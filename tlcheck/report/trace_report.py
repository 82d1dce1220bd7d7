"""Find where an element comes from, as written and as lowered side by side; for people and for programs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

from rich.console import Console
from rich.text import Text

from tlcheck import __version__
from tlcheck.execute.compare.equal_steps import equal
from tlcheck.execute.compare.provenance import TracedStep
from tlcheck.execute.compare.trace import Traced
from tlcheck.execute.request import LOWERED, SOURCE
from tlcheck.lower.runs import Run
from tlcheck.report.records import as_json, record
from tlcheck.report.trace_json import SCHEMA, TracedElement, TracedRun, TraceReport
from tlcheck.snapshot.ir import Snapshot
from tlcheck.verdicts.steps import MARK, TracedLines, operation


@dataclass(frozen=True)
class Shown:
    """A traced element of a run. origin: where it begins, in words; empty where that is not known."""

    run: Run
    snapshot: Snapshot
    traced: Traced
    origin: str = ""


def write(console: Console, shown_run: Shown) -> None:
    """The origin, then both trees, side by side where there is room for it."""
    run, snapshot, traced = shown_run.run, shown_run.snapshot, shown_run.traced
    shown = TracedLines(snapshot, traced, _lines(snapshot.file))
    block = ", ".join(map(str, traced.block))
    head = f"{run.case} {run.target} {run.tilelang}: block ({block}), {traced.inputs} inputs of seed {traced.seed}"
    head += ", copies as early as they may be" if traced.early else ""
    if shown_run.origin:
        console.print(Text(shown_run.origin, "bold red"), soft_wrap=True, highlight=False)
    console.print(Text(head, "bold"), soft_wrap=True)
    if len(traced.sharing) > 1:
        console.print(Text(f"  {_shared(traced)}"), soft_wrap=True, highlight=False)
    left, right = ["as written", *shown.source()], [f"as lowered, at {LOWERED}", *shown.lowered()]
    right = right[:2] if traced.agree else right  # it says nothing new
    width = max(map(len, left))
    if console.is_terminal and width + max(map(len, right)) + 3 <= console.width:
        for one, other in zip_longest(left, right, fillvalue=""):
            _print(console, f"{one:<{width}} | {other}")
    else:
        for line in [*_below(left), *_below(right)]:
            _print(console, line)
    if traced.agree:
        console.print(Text("  both levels have the same value", "green"), soft_wrap=True)
    elif traced.first is None:
        console.print(Text("  the levels part deeper than this: give a larger --depth"), soft_wrap=True)


def _shared(traced: Traced) -> str:
    """Return what the blocks that add to the element leave together, and which of them is shown."""
    block, *others = [traced.block, *(b for b in traced.sharing if b != traced.block)]
    source, lowered = traced.sums
    together = source if equal(source, lowered) else f"{source} as written, {lowered} as lowered"
    another = ",".join(map(str, others[0]))
    return (
        f"{len(traced.sharing)} blocks of those that were looked at add to it, and leave {together} together; "
        f"shown is block {block} alone (--block {another} for another)"
    )


def _below(lines: Sequence[str]) -> list[str]:
    return [f"  {lines[0]}", *(f"    {line}" for line in lines[1:])]


def _print(console: Console, line: str) -> None:
    console.print(Text(line, "bold red" if MARK in line else ""), soft_wrap=True, highlight=False)


def render_json(found: Sequence[Shown], exit_code: int) -> str:
    """The report for programs, with a newline at its end."""
    runs = tuple(map(_report, found))
    return as_json(TraceReport(SCHEMA, __version__, exit_code, runs))


def _element(shown: TracedLines, step: TracedStep, level: str) -> TracedElement:
    """A step and what it is made of, for programs."""
    stmt = step.origin.stmt if step.origin is not None else None
    return record(
        TracedElement,
        step,
        operation=operation(stmt) if step.origin is not None else "input" if step.input else "nobody",
        iteration=dict(step.origin.loops) if step.origin is not None else {},
        tir_line=shown.tir_line(stmt, level),
        source_line=stmt.line if stmt is not None else 0,
        first_difference=shown.is_first(step),
        sources=tuple(_element(shown, source, level) for source in step.sources),
    )


def _report(one: Shown) -> TracedRun:
    run, snapshot, traced = one.run, one.snapshot, one.traced
    shown = TracedLines(snapshot, traced, _lines(snapshot.file))
    return record(
        TracedRun,
        traced,
        run,
        versions=dict(sorted(run.versions.items())),
        buffer=traced.name,
        index=tuple(traced.index),
        block=tuple(traced.block),
        written=_element(shown, traced.source, SOURCE),
        lowered=_element(shown, traced.lowered, LOWERED),
        origin=one.origin,
    )


def _lines(file: str) -> list[str]:
    try:
        return Path(file).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return []
