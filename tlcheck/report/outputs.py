"""Choose where reports go: one to standard output or a file, several into a folder."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from tlcheck.errors import UsageError
from tlcheck.files import make_folder, require_place, save

Writer = Callable[[TextIO], None]
FORMATS = ("text", "json", "markdown", "sarif", "junit", "github")
PAGE_FORMATS = (*FORMATS, "html")  # of commands that make pages
_SUFFIXES = {
    "text": "txt",
    "json": "json",
    "markdown": "md",
    "sarif": "sarif",
    "junit": "xml",
    "github": "annotations.txt",
    "html": "html",
}
_LIVE = ("text", "github")  # what is read where the command runs, and not in a file alone


@dataclass(frozen=True)
class Outputs:
    """formats: each once. path: a file for one format, a folder for several, None for standard output.

    Makes the folder, and sees that it can write, before minutes of work. Raises UsageError.
    """

    formats: tuple[str, ...]
    path: Path | None = None

    def __post_init__(self) -> None:
        several = len(self.formats) > 1
        if several and self.path is None:
            raise UsageError("several formats need a folder: -o DIR")
        if self.path is not None and several:
            make_folder(self.path)
        elif self.path is not None and not self.path.is_dir():
            require_place(self.path)

    def deliver(self, command: str, writers: Mapping[str, Writer]) -> None:
        """Write every format. In a folder they are named after the command; `text` and `github` are shown as well."""
        for name in self.formats:
            is_folder = self.path is not None and self.path.is_dir()
            if self.path is None or (is_folder and name in _LIVE):
                writers[name](sys.stdout)
            if self.path is not None:
                text = io.StringIO()
                writers[name](text)
                save(self.path / f"{command}.{_SUFFIXES[name]}" if is_folder else self.path, text.getvalue())


def formats(text: str, known: Sequence[str] = FORMATS) -> tuple[str, ...]:
    """Read a comma list, each name once. Raises UsageError."""
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",")))
    if unknown := [name for name in names if name not in known]:
        raise UsageError(f"unknown format {unknown[0]!r}: expected {', '.join(known)}, with commas between several")
    return names
