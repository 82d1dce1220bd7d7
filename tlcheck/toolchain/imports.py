"""Whether an environment imports TileLang: tried once, and again after one of its files has changed."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from tlcheck import files
from tlcheck.toolchain.resolve import Toolchain
from tlcheck.toolchain.trial import try_import

_KEPT = "imported.json"


def imports(toolchain: Toolchain, folder: Path) -> tuple[str, float, bool]:
    """Return the error ('' if none), the seconds that the import took, and whether an earlier command has tried it.

    A failure is never kept: what it lacked may be there now.
    """
    state = _state(folder, toolchain.env)
    with suppress(OSError, ValueError, KeyError):
        kept = json.loads((folder / _KEPT).read_text(encoding="utf-8"))
        if kept["state"] == state:
            return "", float(kept["seconds"]), True
    error, seconds = try_import(toolchain.python, toolchain.env)
    if not error:
        keep(folder, toolchain.env, seconds)
    return error, seconds, False


def keep(folder: Path, env: Mapping[str, str], seconds: float) -> None:
    """Keep that an environment imports TileLang with these variables, and how long that took."""
    with suppress(OSError):  # a folder that nobody may write to
        files.put(folder / _KEPT, json.dumps({"state": _state(folder, env), "seconds": seconds}))


def _state(folder: Path, env: Mapping[str, str]) -> str:
    """Return a hash over the names, sizes and times of an environment's files, and the variables that it needs."""
    content = hashlib.sha256(repr(sorted(env.items())).encode())
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name != "__pycache__")
        for name in sorted(names):
            if name != _KEPT:
                with suppress(FileNotFoundError):
                    found = os.lstat(f"{place}{os.sep}{name}")
                    content.update(f"{place}/{name} {found.st_size} {found.st_mtime_ns}\n".encode())
    return content.hexdigest()
