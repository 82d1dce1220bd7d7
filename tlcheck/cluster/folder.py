"""The user's folder, as it travels to nodes.

It does not travel as a `working_dir` of Ray: that is written anew whenever a node begins, and nodes of one machine
have it in one place, so that each of them would take away what the others run in.
"""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import subprocess
import tarfile
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tlcheck.errors import UsageError
from tlcheck.files import cache_root

_LIMIT = 500e6  # bytes
_LEFT_OUT = {".git", ".venv", "venv", "__pycache__", ".mypy_cache", ".pytest_cache", ".ruff_cache"}
_UNUSED = 7 * 86_400  # seconds after which a node removes a folder


@dataclass(frozen=True)
class Folder:
    """A folder of kernels. files: what of it travels, relative to it."""

    path: Path
    files: frozenset[Path]

    @classmethod
    def current(cls) -> Folder:
        """The current folder; what git ignores stays here. Raises UsageError where it has too much."""
        path, files, size = Path.cwd(), set[Path](), 0
        for file in _files(path):
            files.add(file.relative_to(path))
            size += file.stat().st_size
            if size > _LIMIT:
                raise UsageError(
                    f"--cluster: {path} travels to the nodes, and has more than {_LIMIT / 1e6:.0f} MB that git does "
                    f"not ignore: begin in the folder of the kernels"
                )
        return cls(path, frozenset(files))

    def require(self, path: str) -> None:
        """Raise UsageError for a file or folder that does not travel."""
        place = Path(path).resolve()
        if not place.is_relative_to(self.path.resolve()):
            raise UsageError(f"--cluster: {path} is not below the current folder, which is what travels to nodes")
        if place.is_file() and place.relative_to(self.path.resolve()) not in self.files:
            raise UsageError(f"--cluster: {path} does not travel to nodes: git ignores it")

    def packed(self) -> bytes:
        """All files as a tar; links as what they lead to."""
        content = io.BytesIO()
        with tarfile.open(fileobj=content, mode="w", dereference=True) as tar:
            for file in sorted(self.files):
                tar.add(self.path / file, str(file))
        return content.getvalue()


def unpacked(content: bytes) -> Path:
    """The folder on this node. Nodes of one machine, and later commands, share it while it is the same."""
    root = cache_root() / "folders"
    place = root / hashlib.sha256(content).hexdigest()[:32]
    root.mkdir(parents=True, exist_ok=True)
    if not place.exists():
        own = tempfile.mkdtemp(dir=root)
        with tarfile.open(fileobj=io.BytesIO(content)) as tar:
            tar.extractall(own, filter="data")
        with suppress(OSError):  # another node was quicker
            Path(own).rename(place)
        shutil.rmtree(own, ignore_errors=True)
    os.utime(place)
    for other in root.iterdir():
        with suppress(OSError):
            if other.stat().st_mtime < time.time() - _UNUSED:
                shutil.rmtree(other)
    return place


def _files(path: Path) -> Iterator[Path]:
    """Yield what git does not ignore of a folder; all of one that is in no repository, or ignored as a whole."""
    for place in _not_ignored(path) or [path]:
        if place.is_file():
            yield place
        for folder, inner, names in os.walk(place, followlinks=True):
            inner[:] = [name for name in inner if name not in _LEFT_OUT]
            yield from (file for name in names if (file := Path(folder, name)).is_file())


def _not_ignored(path: Path) -> list[Path]:
    """Return what git says: files, links, and folders that are repositories of their own."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        listed = subprocess.run(command, cwd=path, capture_output=True, check=False).stdout
    except OSError:
        return []
    return [path / os.fsdecode(name) for name in listed.split(b"\0") if name]
