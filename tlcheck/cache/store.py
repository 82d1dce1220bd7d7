"""Entries in a folder: one file each, with the checksum of its content, replaced as a whole or not at all.

A kill at any time leaves entries that are whole, and at worst a temporary file, which `trim` removes. Entries may be
deleted at any time, by anyone. Several processes may use the folder at once: who writes last wins.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import time
import zlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tlcheck.files import TEMPORARY, cache_root, put

LIMIT = 2 * 2**30  # bytes kept by `trim`
_OFF = "TLCHECK_NO_CACHE"
_ABANDONED = 3600  # seconds after which a temporary file has nobody who writes it


@dataclass(frozen=True)
class Cache:
    """folder: None for a cache that keeps nothing."""

    folder: Path | None

    def get(self, kind: str, key: str) -> bytes | None:
        """The content of an entry; None if there is none, or a damaged one."""
        if self.folder is None:
            return None
        file = self._file(self.folder, kind, key)
        try:
            checksum, _, packed = file.read_bytes().partition(b"\n")
            if checksum != _checksum(packed):
                return None
            os.utime(file)  # so that `trim` keeps what is used
            return zlib.decompress(packed)
        except (OSError, zlib.error):
            return None

    def put(self, kind: str, key: str, content: bytes) -> None:
        """Keep an entry. A folder that cannot be written (no space, no permission) keeps nothing."""
        if self.folder is None:
            return
        file = self._file(self.folder, kind, key)
        packed = zlib.compress(content, 1)
        with suppress(OSError):
            put(file, _checksum(packed) + b"\n" + packed)

    def size(self) -> tuple[int, int]:
        """Number of entries and their bytes."""
        sizes = [size for _, size, _ in self._entries()]
        return len(sizes), sum(sizes)

    def trim(self, limit: int = LIMIT) -> None:
        """Remove the entries that were not used for longest, until the rest has no more bytes than `limit`."""
        entries = sorted(self._entries(), reverse=True)
        total = 0
        for used, size, file in entries:
            total += size
            if total > limit or (file.name.startswith(TEMPORARY) and used < time.time() - _ABANDONED):
                with suppress(OSError):
                    file.unlink()

    def clear(self) -> None:
        """Remove everything."""
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)

    def _file(self, folder: Path, kind: str, key: str) -> Path:
        return folder.joinpath(kind, key[:2], key)

    def _entries(self) -> Iterator[tuple[float, int, Path]]:
        """Time of last use, bytes and file of each, temporary ones included."""
        for folder, _, names in os.walk(self.folder or ""):
            for name in names:
                file = Path(folder, name)
                with suppress(OSError):
                    found = file.stat()
                    yield found.st_mtime, found.st_size, file


def open_cache(wanted: bool = True) -> Cache:
    """The user's cache of results, unless it is switched off."""
    return Cache(results_folder() if wanted and not os.environ.get(_OFF) else None)


def results_folder() -> Path:
    return cache_root() / "results"


def key_of(*parts: object) -> str:
    """One key for parts that JSON can write."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def _checksum(packed: bytes) -> bytes:
    return hashlib.sha256(packed).hexdigest().encode()
