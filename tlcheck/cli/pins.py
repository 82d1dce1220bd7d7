"""The release of TileLang that a project's own files pin."""

from __future__ import annotations

import re
from pathlib import Path

from tlcheck.toolchain.releases import RELEASES

_FILES = ("pyproject.toml", "requirements*.txt", "requirements/*.txt", "setup.cfg", "setup.py")
_PIN = re.compile(r"\btilelang\s*==\s*([0-9][\w.]*)")


def pinned_release(folder: Path) -> tuple[str, str]:
    """Return a release that tlcheck knows, and the file that pins it; empty texts if no file does."""
    for file in (file for pattern in _FILES for file in sorted(folder.glob(pattern))):
        found = _PIN.search(file.read_text(encoding="utf-8", errors="replace"))
        if found and found[1] in RELEASES:
            return found[1], file.relative_to(folder).as_posix()
    return "", ""
