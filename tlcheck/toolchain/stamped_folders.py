"""Folders of the user's cache that are complete or do not count.

A folder is filled in place, because a virtual environment knows its own path; what makes it count is a stamp written
last.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from tlcheck import files

STAMP = "complete.json"


def disk_bytes(folder: Path) -> int:
    """Count the bytes that a folder takes on the disk, without what an install under way has just removed."""
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with suppress(FileNotFoundError):
                total += os.lstat(f"{place}{os.sep}{name}").st_blocks * 512
    return total


def read_stamp(folder: Path) -> dict[str, Any] | None:
    """Return what was recorded when the folder was completed; None when it never was."""
    try:
        stamp = json.loads((folder / STAMP).read_text())
    except (OSError, ValueError):
        return None
    return stamp if isinstance(stamp, dict) else None


def write_stamp(folder: Path, content: Mapping[str, Any]) -> None:
    """Declare the folder complete, in one step: a reader sees the whole stamp or none."""
    files.put(folder / STAMP, json.dumps(content, indent=2, sort_keys=True) + "\n")


def discard(folder: Path) -> None:
    """Remove the folder, the stamp first: what is left by a kill in the middle is not believed."""
    (folder / STAMP).unlink(missing_ok=True)
    if folder.exists():
        shutil.rmtree(folder)
