"""Define what reports are printed on: a terminal as wide as it is, or a file or pipe, where nothing wraps them."""

from __future__ import annotations

import os
import re
import sys
from dataclasses import dataclass
from typing import Literal, TextIO, cast

from rich.box import Box
from rich.console import Console

ENDLESS = 1_000_000  # columns where there is no terminal and no COLUMNS: no line is as long
_BLANKS = re.compile(r"[ \t]+$", re.MULTILINE)

# A box without a right side: beside lines that do not wrap it would be far away.
OPEN_BOX = Box("╭   \n│   \n│   \n│   \n│   \n│   \n│   \n╰   \n")


@dataclass
class TrimmedFile:
    """Writes to a file without the blanks that a table puts at the ends of its lines."""

    file: TextIO

    def write(self, text: str) -> int:
        return self.file.write(_BLANKS.sub("", text))

    def flush(self) -> None:
        self.file.flush()


def console(file: TextIO | None = None, *, stderr: bool = False) -> Console:
    """Make a console for a file, stderr or (the default) stdout.

    Without a terminal nothing wraps, unless COLUMNS says how wide it is. NO_COLOR leaves out colours, bold and the
    like (https://no-color.org asks for the colours only; a log shows neither).
    """
    colours: Literal["auto"] | None = None if os.environ.get("NO_COLOR") else "auto"
    made = Console(file=file, stderr=stderr, color_system=colours)
    if made.is_terminal:
        return made
    width = None if os.environ.get("COLUMNS", "").isdecimal() else ENDLESS
    target = file or (sys.stderr if stderr else sys.stdout)
    return Console(file=cast(TextIO, TrimmedFile(target)), width=width, color_system=colours)
