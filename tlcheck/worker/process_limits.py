"""Limits and ties of a job's process."""

from __future__ import annotations

import ctypes
import math
import resource
import signal
import time
from contextlib import suppress
from pathlib import Path

_GRACE = 5  # seconds between the signal that can be explained and the one that cannot be ignored
_PR_SET_PDEATHSIG = 1


def limit_processor_time(seconds: float) -> None:
    """End this process with SIGXCPU after so many more seconds of processor time (in whole ones)."""
    limit = math.ceil(time.process_time() + seconds)
    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    allowed = limit + _GRACE if hard == resource.RLIM_INFINITY else min(hard, limit + _GRACE)
    resource.setrlimit(resource.RLIMIT_CPU, (min(limit, allowed), allowed))


def write_no_core() -> None:
    """A crash is reported, not kept: a core file of this process would hold gigabytes."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))


def go_first() -> None:
    """Have the system kill this process if memory runs out, not the worker or the controller."""
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("500")


def die_with_parent() -> None:
    """Have the kernel end this process when its parent ends, however that happens."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
