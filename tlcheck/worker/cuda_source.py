"""The generated CUDA source without what differs from process to process: places in merged shared memory."""

from __future__ import annotations

import re

_BUFFER = re.compile(r"buf_(?:dyn_)?shmem\)(?:\[| \+ \()")
_NOTE = "// PLACE stands for constant offsets into shared memory: this release chooses them anew in each process.\n"
_CONSTANT = re.compile(r"\d+")
_SUM = re.compile(r" [+-] \d+$")


def without_places(source: str) -> str:
    """The source with the constant part of each offset into the merged shared buffer replaced by `PLACE`."""
    parts: list[str] = []
    position = 0
    for match in _BUFFER.finditer(source):
        end = _closing(source, match.end())
        # an index such as `(i * 8)` or `((i * 8) + 4096)`, both as `(i * 8) + PLACE`
        terms = _bare(_SUM.sub("", _bare(source[match.end() : end])))
        parts += [source[position : match.end()], ("PLACE" if _CONSTANT.fullmatch(terms) else f"({terms}) + PLACE")]
        position = end
    return _NOTE + "".join([*parts, source[position:]]) if parts else source


def _closing(source: str, start: int) -> int:
    """Position of the bracket that closes the one just before `start`."""
    depth = 1
    for position in range(start, len(source)):
        depth += (source[position] in "([") - (source[position] in ")]")
        if depth == 0:
            return position
    return len(source)


def _bare(text: str) -> str:
    """`text` without brackets around the whole of it."""
    whole = text.startswith("(") and _closing(text, 1) == len(text) - 1
    return text[1:-1] if whole else text
