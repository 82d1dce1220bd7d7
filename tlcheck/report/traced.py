"""Where an element comes from, as written and as lowered side by side; for people and for programs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from pathlib import Path

from rich.console import Console
from rich.text import Text

from tlcheck import __version__
from tlcheck.execute.provenance import TracedStep
from tlcheck.execute.run import LOWERED, SOURCE
from tlcheck.execute.trace import Traced
from tlcheck.lower.runs import Run, near
from tlcheck.report.json import written
from tlcheck.report.traced_json import SCHEMA, TracedElement, TracedRun, TraceReport
from tlcheck.snapshot.ir import Evaluate, Snapshot, Stmt, Store
from tlcheck.snapshot.text import Text as Tir
from tlcheck.snapshot.text import render

_MARK = "  <-- the first difference"


class TracedLines:
    """The lines of one traced element of a snapshot."""

    def __init__(self, snapshot: Snapshot, traced: Traced) -> None:
        self._snapshot, self._traced = snapshot, traced
        self._texts = {level: render(snapshot.checkpoints[level]) for level in (SOURCE, LOWERED)}
        self._source = _lines(snapshot.file)

    def written(self, steps: int | None = None) -> list[str]:
        """The tree as written, or its first steps."""
        return list(self._tree(self._traced.written, SOURCE, 0, steps))

    def lowered(self, steps: int | None = None) -> list[str]:
        """The tree as lowered, or its first steps."""
        return list(self._tree(self._traced.lowered, LOWERED, 0, steps))

    def _tree(self, step: TracedStep, level: str, depth: int, steps: int | None) -> Iterator[str]:
        mark = _MARK if step is self._traced.first else ""
        yield f"{'  ' * depth}{step.element} = {step.value}   {self._made(step, level)}{mark}".rstrip()
        if steps is None or depth + 1 < steps:
            for source in step.sources:
                yield from self._tree(source, level, depth + 1, steps)

    def _made(self, step: TracedStep, level: str) -> str:
        if step.origin is None:
            return "an input" if step.input else "nothing wrote it"
        parts = [operation(step.origin.stmt)]
        if step.products:
            parts[0] += f" of {step.products} products, the last"
        if step.lane is not None:
            parts.append(f"{'iteration' if level == SOURCE else 'thread'} {step.lane}")
        parts += [f"{name} = {value}" for name, value in step.origin.loops]
        parts += self._places(step.origin.stmt, self._texts[level], level)
        return ", ".join(parts)

    def _places(self, stmt: Stmt | None, text: Tir, level: str) -> Iterator[str]:
        line = text.line_of(stmt) if stmt is not None else 0
        if line and level == LOWERED:
            yield f"TIR line {line}"
        if stmt is not None and stmt.line:
            code = self._source[stmt.line - 1].strip() if stmt.line <= len(self._source) else ""
            yield f"{near(self._snapshot.file)}:{stmt.line}" + (f" `{code}`" if code else "")

    def tree(self, step: TracedStep, level: str) -> TracedElement:
        """A step and what it is made of, for programs."""
        stmt = step.origin.stmt if step.origin is not None else None
        return TracedElement(
            element=step.element,
            value=step.value,
            operation=operation(stmt) if step.origin is not None else "input" if step.input else "nobody",
            lane=step.lane,
            iteration=dict(step.origin.loops) if step.origin is not None else {},
            tir_line=self._texts[level].line_of(stmt) or 0 if stmt is not None else 0,
            source_line=stmt.line if stmt is not None else 0,
            products=step.products,
            first_difference=step is self._traced.first,
            sources=tuple(self.tree(source, level) for source in step.sources),
        )


def operation(stmt: Stmt | None) -> str:
    """What a statement does, in a word: `store`, or the name of its call."""
    if isinstance(stmt, Evaluate) and stmt.value.op == "call":
        name = stmt.value.value
        named = name in ("call_extern", "call_pure_extern") and stmt.value.args
        return str(stmt.value.args[0].value if named else name)
    return "store" if isinstance(stmt, Store) or stmt is None else type(stmt).__name__.lower()


def write(console: Console, run: Run, snapshot: Snapshot, traced: Traced) -> None:
    """Both trees, side by side where there is room for it."""
    shown = TracedLines(snapshot, traced)
    block = ", ".join(map(str, traced.block))
    head = f"{run.case} {run.target} {run.tilelang}: block ({block}), inputs of seed {traced.seed}"
    console.print(Text(head, "bold"), soft_wrap=True)
    left, right = ["as written", *shown.written()], ["as lowered", *shown.lowered()]
    width = max(map(len, left))
    if console.is_terminal and width + max(map(len, right)) + 3 <= console.width:
        for one, other in zip_longest(left, right, fillvalue=""):
            _print(console, f"{one:<{width}} | {other}")
    else:
        for line in [*_below(left), *_below(right)]:
            _print(console, line)
    if traced.first is None:
        console.print(Text("  both levels have the same value", "green"), soft_wrap=True)


def _below(lines: Sequence[str]) -> list[str]:
    return [f"  {lines[0]}", *(f"    {line}" for line in lines[1:])]


def _print(console: Console, line: str) -> None:
    console.print(Text(line, "bold red" if _MARK in line else ""), soft_wrap=True, highlight=False)


def render_json(found: Sequence[tuple[Run, Snapshot, Traced]], exit_code: int) -> str:
    """The report for programs, with a newline at its end."""
    runs = tuple(_report(run, snapshot, traced) for run, snapshot, traced in found)
    return written(TraceReport(SCHEMA, __version__, exit_code, runs))


def _report(run: Run, snapshot: Snapshot, traced: Traced) -> TracedRun:
    shown = TracedLines(snapshot, traced)
    return TracedRun(
        case=run.case,
        target=run.target,
        versions=dict(sorted(run.versions.items())),
        buffer=traced.name,
        index=tuple(traced.index),
        block=tuple(traced.block),
        seed=traced.seed,
        agree=traced.first is None,
        written=shown.tree(traced.written, SOURCE),
        lowered=shown.tree(traced.lowered, LOWERED),
    )


def _lines(file: str) -> list[str]:
    try:
        return Path(file).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return []
