"""Limits how long a script computes without a GPU: slow references do not keep its kernels from being told."""

from __future__ import annotations

import math
import time

from tlcheck.worker.capture.unseen import NoTimeError

_SCRIPT, _TEST = 2, 20  # a script may compute for this part of a kernel's seconds, and each of its tests for this one


class Patience:
    """The processor seconds of a script and of each of its tests, without those for lowering kernels."""

    def __init__(self, timeout: float) -> None:
        """timeout: a kernel's seconds; infinite on a real GPU."""
        self.seconds, self._timeout = timeout / _SCRIPT, timeout
        self._until = time.process_time() + self.seconds
        self._limit, self._test_until = self.seconds, self._until

    def begin_test(self) -> bool:
        """Give the next test its seconds. Returns whether the script has any left."""
        now, self._limit = time.process_time(), self._timeout / _TEST
        self._test_until = now + self._limit
        return now < self._until

    def require(self) -> None:
        """Raise NoTimeError if the test, or a script without tests, has had its seconds."""
        if time.process_time() > self._test_until:
            raise NoTimeError(f"without a GPU it takes more than {self._limit:g} s (a longer --timeout gives more)")


FOREVER = Patience(math.inf)
