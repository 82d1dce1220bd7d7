"""compute-sanitizer around one case: the command, and what its log says."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tlcheck.errors import UsageError

TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")
# Without torch's cache every tensor is an allocation of its own, whose end memcheck knows.
VARIABLES = {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}
_SHOWN = 20
_LINE = re.compile(r"^=+ ?(.*)$", re.MULTILINE)
_STACK = re.compile(r"(Device|Host) Frame|Saved host backtrace|ERROR SUMMARY|RACECHECK SUMMARY")
_ERROR = re.compile(r"^(Invalid|Misaligned|Uninitialized|(Error: |Warning: )?Race|Error|Barrier|Divergent|Program hit)")
_SUMMARY = re.compile(r"ERROR SUMMARY: (\d+) error|RACECHECK SUMMARY: (\d+) hazard")
_GLOBAL = re.compile(r"__global__\s+void\s+(?:__\w+__\s*\([^)]*\)\s*)*(\w+)\s*\(")


@dataclass(frozen=True)
class Sanitized:
    """A record of what a tool found: `errors` as it counts them, the first messages with the kernel that each names."""

    tool: str
    errors: int
    messages: tuple[tuple[str, str], ...]


def command(tool: str, log: Path, kernels: Sequence[str]) -> list[str]:
    """The tool around what follows; only the case's own kernels are instrumented. Raises UsageError without it."""
    found = executable()
    if found is None:
        raise UsageError("compute-sanitizer is not installed: it comes with the CUDA toolkit (look in $CUDA_HOME/bin)")
    names = [part for name in kernels for part in ("--kernel-name", f"kns={name}")]
    return [found, "--tool", tool, "--log-file", str(log), "--print-limit", str(_SHOWN), *names]


def executable() -> str | None:
    """Return where compute-sanitizer is."""
    folders = [os.environ.get("CUDA_HOME", ""), os.environ.get("CUDA_PATH", ""), "/usr/local/cuda"]
    places = [f"{folder}/bin" for folder in folders if folder] + [f"{f}/compute-sanitizer" for f in folders if f]
    return shutil.which("compute-sanitizer") or shutil.which("compute-sanitizer", path=os.pathsep.join(places))


def kernels_in(source: str) -> tuple[str, ...]:
    """The kernels that a CUDA source defines."""
    return tuple(dict.fromkeys(_GLOBAL.findall(source)))


def read_log(tool: str, text: str, kernels: Sequence[str]) -> Sanitized | None:
    """Return what a log says; None for one without a summary: the tool did not run to its end. kernels: the case's."""
    summary = _SUMMARY.search(text)
    if summary is None:
        return None
    lines = [line.strip() for line in _LINE.findall(text)]
    starts = [number for number, line in enumerate(lines) if _ERROR.match(line)]
    blocks = [lines[start:end] for start, end in zip(starts, [*starts, len(lines)][1:], strict=True)]
    messages = tuple(_message(block, kernels) for block in blocks[:_SHOWN])
    return Sanitized(tool, int(summary[1] or summary[2]), messages)


def _message(block: Sequence[str], kernels: Sequence[str]) -> tuple[str, str]:
    """The lines that say what and where, in one, and the kernel that is named in them or in the stack below."""
    end = next((number for number, line in enumerate(block) if not line or _STACK.match(line)), len(block))
    named = (name for line in block for name in kernels if re.search(rf"\b{re.escape(name)}\b", line))
    return " ".join(block[:end]), next(named, "")
