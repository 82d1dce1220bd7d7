"""Find where an element comes from, in words: a line for each write, at both levels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tlcheck.execute.compare.provenance import TracedStep
from tlcheck.execute.compare.trace import Traced
from tlcheck.execute.request import LOWERED, SOURCE
from tlcheck.lower.runs import near
from tlcheck.program.generated import departures
from tlcheck.program.release import Release
from tlcheck.signatures.calls import name_of_call
from tlcheck.snapshot.ir import Evaluate, Snapshot, Stmt, Store
from tlcheck.snapshot.text import render
from tlcheck.snapshot.walk import children
from tlcheck.targets.lookup import TARGETS

MARK = "  <-- the first difference"


class TracedLines:
    """The lines of one traced element of a snapshot. file_lines: of the kernel's file, to quote from."""

    def __init__(self, snapshot: Snapshot, traced: Traced, file_lines: Sequence[str] = ()) -> None:
        self._snapshot, self._traced = snapshot, traced
        self._texts = {str(level): render(snapshot.checkpoints[level]) for level in (SOURCE, LOWERED)}
        self._file_lines = file_lines
        self._around = dict(_lines_around(snapshot.checkpoints[SOURCE].body, 0))

    def source(self) -> list[str]:
        """The tree of the source."""
        return list(self._tree(self._traced.source, SOURCE, 0, []))

    def lowered(self) -> list[str]:
        """The tree of the lowered kernel."""
        return list(self._tree(self._traced.lowered, LOWERED, 0, []))

    def _tree(self, step: TracedStep, level: str, depth: int, shown: list[TracedStep]) -> Iterator[str]:
        """A line for each step. shown: those before it, which have what they are made of below them."""
        mark = MARK + self._reason(step) if step == self._traced.first and step not in shown else ""
        times = f", x {step.times}" if step.times > 1 else ""
        above = ", as above" if step in shown else ""
        yield f"{'  ' * depth}{step.element} = {step.value}   {self._made(step, level)}{times}{above}{mark}".rstrip()
        if step.sources and not above:
            for source in step.sources:
                yield from self._tree(source, level, depth + 1, shown)
            shown.append(step)

    def _reason(self, step: TracedStep) -> str:
        """Return why the levels part at a step: a write that is missing, or what CUDA computes and TIR does not."""
        if self._traced.counterpart is not None:
            return f": as written its last write is {self._made(self._traced.counterpart, SOURCE)}"
        stmt = step.origin.stmt if step.origin is not None else None
        release = Release.among(self._snapshot.toolchain)
        target = TARGETS.get(self._snapshot.target)
        first = next(departures(stmt, release, target), None) if stmt is not None else None
        return f": {first.words}" if first is not None else ""

    def _made(self, step: TracedStep, level: str) -> str:
        if step.origin is None:
            return "an input" if step.input else "nothing wrote it"
        parts = [operation(step.origin.stmt)]
        if step.products:
            parts[0] += f" of {step.products} products (one shown)"
        if step.lane is not None:
            parts.append(f"{'iteration' if level == SOURCE else 'thread'} {step.lane}")
        parts += [f"{name} = {value}" for name, value in step.origin.loops]
        parts += self._places(step.origin.stmt, level)
        return ", ".join(parts)

    def _places(self, stmt: Stmt | None, level: str) -> Iterator[str]:
        line = self.tir_line(stmt, level)
        if line and level == LOWERED:
            yield f"TIR line {line}"
        if stmt is not None and stmt.line:
            code = self._file_lines[stmt.line - 1].strip() if stmt.line <= len(self._file_lines) else ""
            within = "within " if stmt.line == self._around.get(id(stmt)) else ""
            yield f"{within}{near(self._snapshot.file)}:{stmt.line}" + (f" `{code}`" if code else "")

    def tir_line(self, stmt: Stmt | None, level: str) -> int:
        """The line of a statement in the TIR of a level; 0 where it is not there."""
        return self._texts[level].line_of(stmt) or 0 if stmt is not None else 0

    def is_first(self, step: TracedStep) -> bool:
        """Whether the levels part at this step."""
        return step is self._traced.first


def _lines_around(stmt: Stmt, around: int) -> Iterator[tuple[int, int]]:
    """Each tile operator, by identity, and the line of what it stands in: TileLang may tell that line for its own."""
    if isinstance(stmt, Evaluate):
        yield id(stmt), around
    for inner in children(stmt):
        yield from _lines_around(inner, stmt.line or around)


def operation(stmt: Stmt | None) -> str:
    """Return what a statement does, in a word: `store`, or the name of its call."""
    if isinstance(stmt, Evaluate) and stmt.value.op == "call":
        return name_of_call(stmt.value)
    return "store" if isinstance(stmt, Store) or stmt is None else type(stmt).__name__.lower()
