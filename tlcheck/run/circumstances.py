"""Find where and when a run took place: driver, clocks, commit, date."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path

_QUERIES = ("driver_version", "pstate", "clocks.sm", "clocks.mem", "clocks.max.sm", "temperature.gpu", "power.draw")


def clocks() -> Mapping[str, str]:
    """Return what nvidia-smi says now; empty without it."""
    command = ["nvidia-smi", f"--query-gpu={','.join(_QUERIES)}", "--format=csv,noheader", "--id=0"]
    values = _output(command).split(", ")
    return dict(zip(_QUERIES, values, strict=True)) if len(values) == len(_QUERIES) else {}


def commit(folder: Path) -> str:
    """Return what CI says in GIT_COMMIT; else the commit of the repository around `folder`, with a `+` if it has
    changes.
    """
    if given := os.environ.get("GIT_COMMIT", ""):
        return given
    found = _output(["git", "-C", str(folder), "rev-parse", "HEAD"])
    return found and found + ("+" if _output(["git", "-C", str(folder), "status", "--porcelain", "-uno"]) else "")


def now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="seconds")


def _output(command: Sequence[str]) -> str:
    """Return what a command prints; empty if it fails or is not there."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
