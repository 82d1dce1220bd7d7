"""Folders of the user's cache that are complete or do not count.

A folder is filled in place, because a virtual environment knows its own path; what makes it count is a stamp written
last. A lock beside the folder keeps two installs of one thing apart. Commands started while it is held must inherit its
descriptor: when tlcheck is killed they go on writing, and the next install has to wait for them too.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

STAMP = "complete.json"


def cache_root() -> Path:
    """TLCHECK_CACHE, else the XDG cache folder."""
    if own := os.environ.get("TLCHECK_CACHE"):
        return Path(own).expanduser().absolute()
    xdg = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (xdg if xdg.is_absolute() else Path.home() / ".cache") / "tlcheck"


@contextmanager
def locked(folder: Path, on_wait: Callable[[], None] = lambda: None) -> Iterator[int]:
    """Hold the folder's lock; yields its file descriptor, to be inherited by commands that write to the folder."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (folder.parent / f".{folder.name}.lock").open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            on_wait()
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield lock.fileno()


def read_stamp(folder: Path) -> dict[str, Any] | None:
    """What was recorded when the folder was completed; None when it never was."""
    try:
        stamp = json.loads((folder / STAMP).read_text())
    except (OSError, ValueError):
        return None
    return stamp if isinstance(stamp, dict) else None


def write_stamp(folder: Path, content: Mapping[str, Any]) -> None:
    """Declare the folder complete, in one step: a reader sees the whole stamp or none."""
    partial = folder / f"{STAMP}.partial"
    partial.write_text(json.dumps(content, indent=2, sort_keys=True) + "\n")
    partial.replace(folder / STAMP)


def discard(folder: Path) -> None:
    """Remove the folder, the stamp first: what is left by a kill in the middle is not believed."""
    (folder / STAMP).unlink(missing_ok=True)
    if folder.exists():
        shutil.rmtree(folder)
