"""Writing files so that nothing is lost: all or none of them change, and one process does it at a time."""

from __future__ import annotations

import fcntl
import os
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from tlcheck.errors import UsageError

_PATIENCE = 30.0  # seconds; nobody holds the lock for longer than it takes to write some files


def replace_all(texts: Mapping[Path, str]) -> None:
    """Write every file beside its place, then move all there. Raises UsageError, and then nothing has changed."""
    made: dict[Path, Path] = {}
    try:
        for path, text in texts.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            made[path] = _beside(path)
            made[path].write_bytes(text.encode("utf-8", "surrogateescape"))
        for path, temporary in made.items():
            temporary.replace(path)
    except OSError as error:
        raise UsageError(f"{next(reversed(made), path)}: {error.strerror}; nothing was changed there") from error
    finally:
        for temporary in made.values():
            with suppress(OSError):
                temporary.unlink(missing_ok=True)


def _beside(path: Path) -> Path:
    handle, name = tempfile.mkstemp(prefix=".tlcheck-", dir=path.parent)
    os.fchmod(handle, 0o644)
    os.close(handle)
    return Path(name)


@contextmanager
def changing(folder: Path) -> Iterator[None]:
    """Hold `folder` against other processes that change it. Raises UsageError where that does not come to be."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(folder, os.O_RDONLY)
    except OSError as error:
        raise UsageError(f"{folder}: {error.strerror}") from error
    try:
        _wait(handle, folder)
        yield
    finally:
        os.close(handle)


def _wait(handle: int, folder: Path) -> None:
    end = time.monotonic() + _PATIENCE
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() > end:
                raise UsageError(f"{folder} is in use by another tlcheck: try again when that has ended") from None
            time.sleep(0.05)
