"""Showing what an install is doing: a live line on a terminal, one plain line for each step elsewhere."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from rich.console import Console
from rich.markup import escape
from rich.status import Status

PAUSE = 10.0  # seconds between the lines that show that a step goes on
_WIDTH = 100


@dataclass
class ProgressReporter:
    """Tells steps to a console, and details (the last line of pip): to a terminal at once, elsewhere now and then."""

    name: str
    console: Console
    status: Status
    started: float = field(default_factory=time.monotonic)
    doing: str = ""

    def seconds(self) -> float:
        return time.monotonic() - self.started

    def step(self, text: str) -> None:
        self.console.print(f"{self.name}: {text}", markup=False, highlight=False, soft_wrap=True)
        self.detail(text)

    def detail(self, text: str) -> None:
        if not text.strip():
            return
        self.doing = text.strip()[:_WIDTH]
        if self.console.is_terminal:
            self.status.update(escape(f"{self.name}: {self.doing}"))

    def speak(self, end: threading.Event) -> None:
        """Print a line after each pause, so that a log shows that something goes on."""
        while not end.wait(PAUSE):
            text = f"{self.name}: {self.seconds():.0f} s: {self.doing}"
            self.console.print(text, markup=False, highlight=False, soft_wrap=True)


@contextmanager
def progress(name: str) -> Iterator[ProgressReporter]:
    """A reporter on stderr, so that stdout holds results only."""
    console = Console(stderr=True)
    status = Status(name, console=console)
    reporter, end = ProgressReporter(name, console, status), threading.Event()
    if console.is_terminal:
        with status:
            yield reporter
        return
    speaker = threading.Thread(target=reporter.speak, args=(end,), daemon=True)
    speaker.start()
    try:
        yield reporter
    finally:
        end.set()
        speaker.join()
