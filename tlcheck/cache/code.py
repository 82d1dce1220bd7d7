"""Find which code made a result that is kept: a changed tlcheck makes another."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[1]
_DEVICES = ("errors.py", "signatures", "snapshot", "targets")
_EXECUTING = (*_DEVICES, "algebra", "execute", "program", "reasons.py", "witness.py")
_READING = ("cache", "toolchain/releases.py", "verdicts")
_PROVING = (*_DEVICES, *_READING, "algebra", "program", "prove", "reasons.py", "witness.py")
_JUDGING = (*_PROVING, *_EXECUTING, "cost", "scope")
_WORKING = (*_DEVICES, "cache", "case.py", "files.py", "lower/client.py", "worker")

# The packages and modules that make a result, by what it is.
PARTS = {
    "answer": _WORKING,
    "captured": (*_EXECUTING, "lower/interpretation.py"),
    "compiled": ("errors.py", "gate/nvcc.py", "gate/sass.py", "targets"),
    "facts": (*_DEVICES, "algebra", "cache", "facts", "gate/sides.py", "lower/runs.py", "program"),
    "proofs": _PROVING,  # alone: nothing is executed
    "reduced": (*_JUDGING, *_WORKING, "remedy"),
    "reference": (*_EXECUTING, "case.py", "run", "worker"),
    "source": (*_EXECUTING, "gate/source_outcomes.py"),
    "verdicts": _JUDGING,
}


@cache
def code_of(result: str) -> str:
    """Hash of the sources of those parts of tlcheck that make a result. result: one of `PARTS`."""
    content = hashlib.sha256()
    for part in sorted(set(PARTS[result])):
        where = _PACKAGE / part
        for file in sorted(where.rglob("*.py")) if where.is_dir() else [where]:
            content.update(f"{file.relative_to(_PACKAGE)}\0".encode() + hashlib.sha256(file.read_bytes()).digest())
    return content.hexdigest()
