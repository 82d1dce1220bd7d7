"""Files that are whole or not there, places that one process changes at a time, and where tlcheck keeps its own."""

from __future__ import annotations

import fcntl
import math
import os
import secrets
import stat
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from tlcheck.errors import UsageError

TEMPORARY = ".tlcheck-"  # what the names of files begin with that are being written; a kill leaves one
_POLL = 0.05  # seconds


def cache_root() -> Path:
    """Find the user's cache: TLCHECK_CACHE, else in the XDG cache folder."""
    if own := os.environ.get("TLCHECK_CACHE"):
        return Path(own).expanduser().absolute()
    xdg = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (xdg if xdg.is_absolute() else Path.home() / ".cache") / "tlcheck"


def put(file: Path, content: str | bytes) -> None:
    """Write a file in one step: a reader sees all of it or what was there before. Raises OSError."""
    _put_all({file: content})


def save(file: Path, content: str | bytes) -> None:
    """Write what the user wants to have there, all of it or nothing. Raises UsageError.

    A link stays one, and a device or pipe, such as /dev/stdout, is written to. Surrogates are written as escapes.
    """
    data = content.encode("utf-8", "backslashreplace") if isinstance(content, str) else content
    place = Path(os.path.realpath(file))
    require_place(file)
    try:
        if place.exists() and not place.is_file():
            with place.open("wb") as stream:
                stream.write(data)
        else:
            put(place, data)
    except OSError as error:
        raise UsageError(f"{file}: {error.strerror}") from error


def require_place(file: Path) -> None:
    """Raise UsageError where a file could not be written: better before minutes of work than after them."""
    place = Path(os.path.realpath(file))
    try:
        place.stat()
    except FileNotFoundError:
        place = place.parent
        if not place.is_dir():
            raise UsageError(f"{file}: no folder {place}") from None
    except OSError as error:
        raise UsageError(f"{file}: {error.strerror}") from error
    if not os.access(place, os.W_OK):
        raise UsageError(f"{file}: Permission denied")


def make_folder(folder: Path) -> None:
    """Make a folder that the user named, unless it is there. Raises UsageError where nothing can be written into it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{error.filename}: {error.strerror}") from error
    if not os.access(folder, os.W_OK):
        raise UsageError(f"{folder}: Permission denied")


def replace_all(contents: Mapping[Path, str | bytes]) -> None:
    """Write every file beside its place, then move all there. Raises UsageError, and then nothing has changed."""
    try:
        _put_all(contents)
    except OSError as error:
        raise UsageError(f"{error.filename}: {error.strerror}; nothing was changed there") from error


def _put_all(contents: Mapping[Path, str | bytes]) -> None:
    made: dict[Path, Path] = {}
    try:
        for file, content in contents.items():
            if not file.parent.is_dir():
                file.parent.mkdir(parents=True, exist_ok=True)
            made[file] = file.with_name(TEMPORARY + secrets.token_hex(8))
            # write what will be `file`; an error names that one
            try:
                with made[file].open("xb") as stream:
                    stream.write(content.encode("utf-8", "surrogateescape") if isinstance(content, str) else content)
            except OSError as error:
                raise OSError(error.errno, error.strerror, str(file)) from error
        for file in [*made]:
            with suppress(FileNotFoundError):
                made[file].chmod(stat.S_IMODE(file.stat().st_mode))  # else the user's diff shows another mode
            made[file].replace(file)
            del made[file]
    finally:
        for temporary in made.values():
            with suppress(OSError):
                temporary.unlink(missing_ok=True)


@contextmanager
def held(place: Path, on_wait: Callable[[], None] = lambda: None, patience: float = math.inf) -> Iterator[int]:
    """Hold a folder, or a lock file, against other processes; yields the descriptor that the lock belongs to.

    A command that inherits the descriptor goes on holding the lock when this process is killed. on_wait: called if
    another process has it. patience: seconds to wait. Raises UsageError where the lock cannot be had.
    """
    handle = take(place, on_wait, patience)
    try:
        yield handle
    finally:
        os.close(handle)


def take(place: Path, on_wait: Callable[[], None] = lambda: None, patience: float = math.inf) -> int:
    """Hold a place, as `held` does, until the descriptor that this returns is closed or the process ends."""
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(place, os.O_RDONLY if place.is_dir() else os.O_RDWR | os.O_CREAT)
    except OSError as error:
        raise UsageError(f"{error.filename}: {error.strerror}") from error
    try:
        if not _is_free(handle):
            on_wait()
            _wait(handle, place, patience)
    except BaseException:
        os.close(handle)
        raise
    return handle


def _is_free(handle: int) -> bool:
    """Take the lock if nobody has it."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _wait(handle: int, place: Path, patience: float) -> None:
    if patience == math.inf:
        fcntl.flock(handle, fcntl.LOCK_EX)
        return
    end = time.monotonic() + patience
    while not _is_free(handle):
        if time.monotonic() > end:
            raise UsageError(f"{place} is in use by another tlcheck: try again when that has ended")
        time.sleep(_POLL)
