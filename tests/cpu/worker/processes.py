"""The stand-in's interpreter, and looking at processes."""

from __future__ import annotations

import sys
import time
from pathlib import Path

WORKER = (Path(sys.executable), {"PYTHONPATH": str(Path(__file__).parent / "stand_in")})


def children_of(pid: int) -> set[int]:
    """The workers under this process and all that they have started, at any depth, zombies included.

    Other children do not count: a browser that another test has left running, for instance, or the workers that the
    commands of other tests share (tests/warm.py).
    """
    parents = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = entry.read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        parents[int(entry.parent.name)] = int(fields[1])
    found = level = {child for child, parent in parents.items() if parent == pid and _is_worker(child)}
    while level:
        level = {child for child, parent in parents.items() if parent in level}
        found = found | level
    return found


def _is_worker(pid: int) -> bool:
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return b"worker/__main__.py" in command and b"warm_worker.py" not in command


def wait_until_gone(pids: set[int], seconds: float = 60.0) -> set[int]:
    """Those of the processes that are still there (zombies do not count as there) after so many seconds."""
    deadline = time.monotonic() + seconds
    while (left := {pid for pid in pids if _lives(pid)}) and time.monotonic() < deadline:
        time.sleep(0.02)
    return left


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
