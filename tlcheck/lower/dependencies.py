"""Whether everything that a job read is still as it was."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tlcheck.worker.dependencies import OWN_VARIABLES, Dependencies, locate


@dataclass
class Present:
    """The files and variables as they are now. variables: those that a worker would have.

    Each file is read once, each module looked for once: many kernels rest on the same.
    """

    variables: Mapping[str, str]
    _digests: dict[str, str] = field(default_factory=dict)
    _places: dict[tuple[str, tuple[str, ...]], str] = field(default_factory=dict)

    def has(self, found: Dependencies) -> bool:
        """Whether a job would read now what it read then."""
        return (
            all(self.variables.get(name) == v for name, v in found.variables.items() if name not in OWN_VARIABLES)
            and all(self._place(name, found.folders) == place for name, place in found.names.items())
            and all(self._digest(file) == digest for file, digest in found.files.items())
        )

    def _place(self, name: str, folders: tuple[str, ...]) -> str:
        if (name, folders) not in self._places:
            self._places[name, folders] = locate(name, folders)
        return self._places[name, folders]

    def _digest(self, file: str) -> str:
        """sha256 of a file's content; empty if there is none."""
        if file not in self._digests:
            try:
                self._digests[file] = hashlib.sha256(Path(file).read_bytes()).hexdigest()
            except OSError:
                self._digests[file] = ""
        return self._digests[file]
