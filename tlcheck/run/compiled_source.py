"""Whether the CUDA source compiled on the device is the one that was proved."""

from __future__ import annotations

import difflib

from tlcheck.worker.cuda_source import without_places

_SHOWN = 12


def difference(proved: str, compiled: str) -> tuple[str, ...]:
    """The first lines in which they differ; empty for the same bytes.

    A snapshot may have the source without places in merged shared memory, which some releases choose anew each time.
    """
    if compiled == proved or without_places(compiled) == proved:
        return ()
    lines = difflib.unified_diff(proved.splitlines(), compiled.splitlines(), "proved", "compiled", n=0, lineterm="")
    return tuple(list(lines)[2 : 2 + _SHOWN]) or ("they differ in line ends only",)
