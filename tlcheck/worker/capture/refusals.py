"""Knows where a script wants a kernel to be refused: in `pytest.raises`, `assertRaises`, a test marked `xfail`."""

from __future__ import annotations

import functools
import threading
from typing import Any


class Refusals:
    """A record of what a script expects of kernels just now. `seen`: names of those that were refused as expected."""

    def __init__(self) -> None:
        self.marked = False  # the whole test
        self.seen: list[str] = []
        self._depth, self._lock = 0, threading.Lock()

    @property
    def expected(self) -> bool:
        """Whether the script waits for an error."""
        return self.marked or self._depth > 0

    def watch(self, manager: Any) -> None:
        """Count who is within a class of context managers."""
        enter, leave = manager.__enter__, manager.__exit__

        @functools.wraps(enter)
        def enter_counted(context: Any) -> Any:
            self._step(1)
            return enter(context)

        @functools.wraps(leave)
        def leave_counted(context: Any, *exception: Any) -> Any:
            self._step(-1)
            return leave(context, *exception)

        manager.__enter__, manager.__exit__ = enter_counted, leave_counted

    def _step(self, change: int) -> None:
        with self._lock:
            self._depth += change
