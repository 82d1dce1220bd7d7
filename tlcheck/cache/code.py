"""Find which code made a result: a changed tlcheck makes another."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[1]


@cache
def code_of(*parts: str) -> str:
    """Hash of the sources of some of tlcheck's own packages and modules, such as `analysis` and `check.py`."""
    content = hashlib.sha256()
    for part in parts:
        where = _PACKAGE / part
        for file in sorted(where.rglob("*.py")) if where.is_dir() else [where]:
            content.update(f"{file.relative_to(_PACKAGE)}\0".encode() + hashlib.sha256(file.read_bytes()).digest())
    return content.hexdigest()
