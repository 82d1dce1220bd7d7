"""Limits how long a script computes without a GPU: slow references do not keep its kernels from being told."""

from __future__ import annotations

import math
import os
import time

from tlcheck.worker.capture.unseen import NoTimeError

_LOWERING, _MORE = " with the lowering of its kernels", " (a longer --timeout gives more)"
_SCRIPT, _TEST = 2, 20  # a script may compute for this part of a kernel's seconds, and each of its tests for this one


class Patience:
    """The processor seconds of a script and of each of its tests, without those for lowering kernels; and those of the
    script with them.
    """

    def __init__(self, timeout: float, sides: int = 1) -> None:
        """timeout: a kernel's seconds, and those of a script with lowering; infinite on a real GPU.

        sides: how many toolchains share a script's seconds. A test has its own with each.
        """
        self._each, self._timeout = timeout / _TEST, timeout / sides
        self._seconds = self._timeout / _SCRIPT
        self._until, self._lowered_until = time.process_time() + self._seconds, _with_lowering() + self._timeout
        self._limit, self._test_until = self._seconds, self._until
        self._in_test = False

    def begin_test(self) -> None:
        """Give the next test its seconds."""
        self._in_test, self._limit = True, self._each
        self._test_until = time.process_time() + self._limit

    def over(self) -> str:
        """Return the limit that the script has reached, as in `after 150 s`; empty while it may go on."""
        if time.process_time() >= self._until:
            return f"{self._seconds:g} s"
        return f"{self._timeout:g} s{_LOWERING}" if _with_lowering() >= self._lowered_until else ""

    def require(self) -> None:
        """Raise NoTimeError if the test, or a script without tests, has had its seconds.

        One test may compile so many kernels that its file has had all of its own, too.
        """
        if time.process_time() > self._test_until:
            raise NoTimeError(f"without a GPU it takes more than {self._limit:g} s{_MORE}")
        if self._in_test and _with_lowering() >= self._lowered_until:
            raise NoTimeError(f"its file takes more than {self._timeout:g} s{_LOWERING}{_MORE}")


def _with_lowering() -> float:
    """The processor seconds of this process and of the copies of it that lowered its kernels."""
    return sum(os.times()[:4])


FOREVER = Patience(math.inf)
