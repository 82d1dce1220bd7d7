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
    """formats: each once. path: a file for one format, a folder for several, None for standard output."""

    formats: tuple[str, ...]
    path: Path | None = None

    def write(self, command: str, writers: Mapping[str, Writer]) -> None:
        """Write every format. In a folder they are named after the command; `text` and `github` are shown as well."""
        if self.path is None:
            writers[self.formats[0]](sys.stdout)
        elif len(self.formats) == 1 and not self.path.is_dir():
            _to_file(self.path, writers[self.formats[0]])
        else:
            for name in self.formats:
                _to_file(self.path / f"{command}.{_SUFFIXES[name]}", writers[name])
                if name in _LIVE:
                    writers[name](sys.stdout)


def outputs(formats: str, path: Path | None, known: Sequence[str] = FORMATS) -> Outputs:
    """Read a comma list and `-o`. Makes the folder, and sees that it can write, before minutes of work.

    Raises UsageError.
    """
    names = tuple(dict.fromkeys(name.strip() for name in formats.split(",")))
    if unknown := [name for name in names if name not in known]:
        raise UsageError(f"unknown format {unknown[0]!r}: expected {', '.join(known)}, with commas between several")
    if len(names) > 1 and path is None:
        raise UsageError("several formats need a folder: -o DIR")
    if path is not None and len(names) > 1:
        make_folder(path)
    elif path is not None and not path.is_dir():
        require_place(path)
    return Outputs(names, path)


def _to_file(path: Path, write: Writer) -> None:
    text = io.StringIO()
    write(text)
    save(path, text.getvalue())
