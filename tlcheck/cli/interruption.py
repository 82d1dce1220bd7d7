"""Define what Ctrl-C and SIGTERM do: a command that can ends its work and reports what is done; others clean up and
end.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from tlcheck.exits import interrupted

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Terminated(KeyboardInterrupt):
    """SIGTERM or SIGHUP, which end a command as Ctrl-C does."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


def end_code(error: KeyboardInterrupt) -> int:
    """The exit code of a command that a signal has ended."""
    return interrupted(error.number) if isinstance(error, Terminated) else interrupted()


@dataclass
class Interruption:
    """Whether a signal came, and what it stops. number: of the signal, 0 for none."""

    number: int = 0
    stops: list[Callable[[], None]] = field(default_factory=list)

    def add(self, stop: Callable[[], None]) -> None:
        """Stop something more, at once where the signal has come already."""
        self.stops.append(stop)
        if self.number:
            stop()

    def code(self, otherwise: int) -> int:
        """The exit code of a command that would have ended with another one."""
        return interrupted(self.number) if self.number else otherwise


@contextmanager
def stoppable(*stops: Callable[[], None]) -> Iterator[Interruption]:
    """Have the first signal stop the work, which goes on to its report; the second one ends the command."""
    interruption = Interruption(stops=list(stops))

    def stop(number: int, frame: FrameType | None) -> None:
        if interruption.number:
            _end(number, frame)
        interruption.number = number
        print("tlcheck: interrupted: reporting what is done", file=sys.stderr)
        for each in interruption.stops:
            each()

    with _handled(stop, _SIGNALS):
        yield interruption


@contextmanager
def ending() -> Iterator[None]:
    """Have SIGTERM and SIGHUP end a command as Ctrl-C does: what it has made and started goes with it."""
    with _handled(_end, _SIGNALS[1:]):
        yield


def _end(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt if number == signal.SIGINT else Terminated(number)


@contextmanager
def _handled(handler: Callable[[int, FrameType | None], Any], numbers: tuple[signal.Signals, ...]) -> Iterator[None]:
    """Handle signals that are not ignored, as `nohup` has it; only the main thread may."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in numbers}
    changed = {number: old for number, old in before.items() if old is not signal.SIG_IGN and old is not None}
    for number in changed:
        signal.signal(number, handler)
    try:
        yield
    finally:
        for number, old in changed.items():
            signal.signal(number, old)
