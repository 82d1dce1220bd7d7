"""The headers of TileLang's device library, as they are now: what generated code is compiled against.

Standard library only: both the worker and the controller ask.
"""

from __future__ import annotations

import hashlib
from pathlib import Path


def folder(package: Path) -> Path | None:
    """The folder of the headers for CUDA; None where there are none. package: `tilelang`, or in a checkout's root."""
    places = (root / "src" / "tl_templates" / "cuda" for root in (package, package.parent))
    return next((place for place in places if place.is_dir()), None)


def digest(package: Path) -> str:
    """Hash of names and contents of the headers; empty where there are none."""
    place = folder(package)
    if place is None:
        return ""
    found = hashlib.sha256()
    for file in sorted(place.rglob("*.h")):
        content = file.read_bytes()
        found.update(f"{file.relative_to(place).as_posix()} {len(content)}\n".encode() + content)
    return found.hexdigest()
