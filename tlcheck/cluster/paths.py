"""Paths of two machines: what a node says has those of the machine that asks."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import tlcheck
from tlcheck.files import cache_root


@dataclass(frozen=True)
class MachinePaths:
    """folder: the user's. package: tlcheck, whose lines are in the traces of failures. cache: with the toolchains."""

    folder: str
    package: str
    cache: str

    @classmethod
    def here(cls, folder: Path) -> MachinePaths:
        """Return the paths of this machine."""
        return cls(str(folder), str(Path(tlcheck.__file__).parent), str(cache_root()))

    def translated(self, text: bytes, there: MachinePaths) -> bytes:
        """A text that names places of this machine, with those of another one."""
        # The folder first: on a node it lies in the cache.
        pairs = ((self.folder, there.folder), (self.package, there.package), (self.cache, there.cache))
        for own, other in pairs:
            text = text.replace(own.encode(), other.encode())
        return text
