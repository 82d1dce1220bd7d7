"""Showing what an install is doing: a live line on a terminal, one plain line for each step elsewhere."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from rich.console import Console
from rich.markup import escape
from rich.status import Status

_WIDTH = 100


@dataclass
class ProgressReporter:
    """Tells steps to a console; details (the last line of pip's output) only to a terminal."""

    name: str
    console: Console
    status: Status
    started: float = field(default_factory=time.monotonic)

    def seconds(self) -> float:
        return time.monotonic() - self.started

    def step(self, text: str) -> None:
        self.console.print(f"{self.name}: {text}", markup=False, highlight=False, soft_wrap=True)
        self.detail(text)

    def detail(self, text: str) -> None:
        if self.console.is_terminal and text.strip():
            self.status.update(escape(f"{self.name}: {text.strip()[:_WIDTH]}"))


@contextmanager
def progress(name: str) -> Iterator[ProgressReporter]:
    """A reporter on stderr, so that stdout holds results only."""
    console = Console(stderr=True)
    status = Status(name, console=console)
    if not console.is_terminal:
        yield ProgressReporter(name, console, status)
        return
    with status:
        yield ProgressReporter(name, console, status)
