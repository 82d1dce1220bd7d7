"""How far a session is: a bar on a terminal, nothing elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from tlcheck.lower.runs import Run
from tlcheck.report.console import console


@dataclass
class Bar:
    """A `Watcher`."""

    progress: Progress
    task: TaskID
    runs: int = 0

    def stage(self, text: str) -> None:
        self.progress.update(self.task, description=escape(text))

    def total(self, runs: int) -> None:
        self.runs += runs
        self.progress.update(self.task, total=self.runs, description="lowering and checking")

    def done(self, run: Run) -> None:
        self.progress.update(self.task, advance=1, description=escape(f"{run.case} {run.target}"))


@contextmanager
def bar() -> Iterator[Bar]:
    """A bar on stderr, gone at the end, so that stdout holds results only."""
    screen = console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=screen, transient=True, disable=not screen.is_terminal) as progress:
        yield Bar(progress, progress.add_task("", total=None))
