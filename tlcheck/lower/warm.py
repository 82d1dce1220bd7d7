"""Processes that outlive those who started them: importing tilelang takes seconds, and some commands need it often.

with WarmProcesses() as warm:
    settings = replace(settings, warm=warm)  # its sessions and judges take over what earlier ones have left
"""

from __future__ import annotations

from collections.abc import Hashable
from threading import Lock
from typing import Protocol

_MOST = 6  # that wait: a worker takes half a gigabyte


class LastingProcess(Protocol):
    """A process that has nothing to do."""

    @property
    def is_alive(self) -> bool:
        """Whether it can be given something to do."""

    def kill(self) -> None:
        """End it."""


class WarmProcesses:
    """Keeps processes that have nothing to do, by what they can do. Leaving the context ends them."""

    def __init__(self, most: int = _MOST) -> None:
        """most: that are kept; beyond that the one ends that has waited longest."""
        self._most = most
        self._lock, self._closed = Lock(), False
        self._waiting: list[tuple[Hashable, LastingProcess]] = []

    def __enter__(self) -> WarmProcesses:
        return self

    def __exit__(self, *exception: object) -> None:
        with self._lock:
            self._closed = True
            left, self._waiting = self._waiting, []
        for _, process in left:
            process.kill()

    def take(self, key: Hashable) -> LastingProcess | None:
        """Return the last one that was kept under a key, if it lives; the caller ends it, or keeps it again."""
        with self._lock:
            places = [place for place, (own, _) in enumerate(self._waiting) if own == key]
            process = self._waiting.pop(places[-1])[1] if places else None
        if process is None or process.is_alive:
            return process
        process.kill()
        return self.take(key)

    def keep(self, key: Hashable, process: LastingProcess) -> None:
        """Keep one that has nothing to do. Any thread may ask."""
        with self._lock:
            self._waiting.append((key, process))
            over = len(self._waiting) if self._closed else max(0, len(self._waiting) - self._most)
            ended, self._waiting = self._waiting[:over], self._waiting[over:]
        for _, each in ended:
            each.kill()
