"""Describe how far a session is: a bar on a terminal, and elsewhere a line now and then."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

from rich.console import Console
from rich.markup import escape

from tlcheck.lower.runs import Run
from tlcheck.report.console import console
from tlcheck.verdicts.words import plural

PAUSE = 10.0  # seconds between the lines
_FIRST = 0.2  # of a pause, until the first line: a loaded machine takes long to get here
_LONGEST = 160  # characters of what goes on: a captured kernel's name holds all arguments
_WIDTH = 20  # of the bar
_COUNTED = 20  # beside it: how many of how many, the time


@dataclass
class Bar:
    """Watches a `Session`, and the `Judge` of what it lowers. doing: what began last, in words; aim: what for.

    update: changes what the terminal shows, with the arguments of rich's `Progress.update`. lowered: runs, of which so
    many were `known` from earlier commands. ahead: judged while the tests that made them still run. judging: whether
    verdicts are what counts. troubles: of scripts that ended early.
    """

    update: Callable[..., None]
    runs: int = 0
    lowered: int = 0
    known: int = 0
    judged: int = 0
    ahead: int = 0
    judging: bool = False
    doing: str = ""
    aim: str = ""
    began: float = field(default_factory=time.monotonic)
    troubles: list[str] = field(default_factory=list)

    def goal(self, text: str) -> None:
        self.aim = text

    def stage(self, text: str) -> None:
        doing = f"{self.aim}: {text}" if self.aim else text
        self.doing = doing if len(doing) <= _LONGEST else f"{doing[:_LONGEST]}..."
        self.update(description=self.doing)

    def total(self, runs: int) -> None:
        self.runs += runs
        self._show()

    def done(self, run: Run, *, known: bool = False) -> None:
        self.lowered += 1
        self.known += known
        self._show()

    def trouble(self, text: str) -> None:
        self.troubles.append(text)

    def judges(self, run: Run) -> None:
        self.stage(f"checking {run.case} {run.target}")

    def has_judged(self, run: Run) -> None:
        self.judged += 1
        self._show()

    def has_judged_ahead(self) -> None:
        self.ahead += 1

    def _show(self) -> None:
        """Show the count. The total is unknown while one of several sessions runs scripts: it says so at its end."""
        is_known = self.lowered <= self.runs
        self.update(completed=self.judged if self.judging else self.lowered, total=self.runs if is_known else None)

    def line(self) -> str:
        """`8 of 10 lowered, 3 checked, 90 s: checking k.py::gemm sm_90`; of how many is not known while scripts run.

        `90 s: kernel 352` of a command that counts for itself.
        """
        is_known = 0 < self.runs >= self.lowered
        counted = f"{self.lowered} of {self.runs}" if is_known else str(self.lowered)
        parts = [f"{counted} lowered"] if self.runs or self.lowered else []
        judged = max(self.judged, self.ahead)
        parts += [f"{judged} checked"] if judged else []
        parts += [] if parts or self.doing else ["starting"]
        doing = f": {self.doing}" if self.doing else ""
        return f"{', '.join([*parts, f'{time.monotonic() - self.began:.0f} s'])}{doing}"

    def summary(self) -> str:
        """`1 kernel lowered, 9 known from earlier commands`."""
        return f"{plural(self.lowered - self.known, 'kernel')} lowered, {self.known} known from earlier commands"


@contextmanager
def bar(loudness: int = 0, *, judging: bool = False) -> Iterator[Bar]:
    """A bar on stderr, gone at the end, so that stdout holds results only; lines where stderr is no terminal.

    loudness: see `Settings`. judging: see `Bar`.
    """
    screen = console(stderr=True)
    shown = loudness >= 0 and screen.is_terminal
    with _updates(screen) if shown else nullcontext(_nothing) as update:
        made = Bar(update, judging=judging)
        with _speaking(made, silent=loudness < 0 or shown):
            yield made
    if loudness > 0:
        for text in dict.fromkeys(made.troubles):
            print(text, file=sys.stderr)
        if made.lowered:
            print(f"tlcheck: {made.summary()}", file=sys.stderr)


@contextmanager
def _updates(screen: Console) -> Iterator[Callable[..., None]]:
    """A bar on a terminal."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn  # 8 ms

    columns = (TextColumn("{task.description}"), BarColumn(_WIDTH), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=screen, transient=True) as progress:
        task = progress.add_task("", total=None)

        def update(**changes: Any) -> None:
            if "description" in changes:
                shown = fitted(changes["description"], screen.width - _WIDTH - _COUNTED)
                changes["description"] = escape(shown)
            progress.update(task, **changes)

        yield update


def fitted(text: str, width: int) -> str:
    """Cut a text in its middle: a long path is at its beginning, and which test runs at its end."""
    if len(text) <= width:
        return text
    tail = 2 * max(width - 1, 2) // 3
    return f"{text[: max(width - 1, 2) - tail]}…{text[-tail:]}"


def _nothing(**changes: object) -> None:
    """No terminal shows the bar."""


@contextmanager
def _speaking(made: Bar, *, silent: bool) -> Iterator[None]:
    """Print a line after each pause, so that a log shows that something goes on."""
    end = threading.Event()

    def speak() -> None:
        if end.wait(_FIRST * PAUSE):
            return
        print(f"tlcheck: {made.line()}", file=sys.stderr, flush=True)
        while not end.wait(PAUSE):
            print(f"tlcheck: {made.line()}", file=sys.stderr, flush=True)

    if not silent:
        threading.Thread(target=speak, daemon=True).start()
    try:
        yield
    finally:
        end.set()
