"""The user's package index as pip sees it: its newest TileLang, and why it has not what was asked for."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterable, Sequence

from tlcheck.errors import UsageError, did_you_mean

# pip tries an index that does not answer again, then goes on as if it were empty: its last line is the same as for a
# version that does not exist.
_UNREACHABLE = re.compile(r"connection broken by|Max retries exceeded|There was a problem confirming|Read timed out")
_ERRNO, _ERROR = re.compile(r"\[Errno -?\d+\] ([^'\")]+)"), re.compile(r"(\w+Error)\(")
_NO_NETWORK = "no network: the package index cannot be reached"
_OFFERED = re.compile(r"requirement tilelang==(\S+) \(from versions: (.*)\)")


_YES = ("1", "true", "yes", "on", "y", "t")  # of pip's variables
_CONNECT, _ANSWER = 4.0, 12.0  # seconds for one connection, of which pip tries two, and for the whole answer


def latest_release() -> str:
    """Ask the index for the newest TileLang. Raises UsageError if there is none, or no index can be reached."""
    newest, why = _asked()
    if newest:
        return newest
    raise UsageError(f"cannot ask the package index for the latest tilelang: {why}")


def require_network(wanted: Iterable[str]) -> None:
    """Raise UsageError if no package index can be reached. pip itself may try for minutes before it says so.

    wanted: what is missing then. pip that takes packages from folders alone is not asked: it needs no network.
    """
    if os.environ.get("PIP_NO_INDEX", "").lower() in _YES:
        return
    newest, why = _asked()
    if not newest and why.startswith(_NO_NETWORK):
        raise UsageError(f"{why}; missing: {', '.join(wanted)}")


def _asked() -> tuple[str, str]:
    """The newest TileLang that pip finds, or an empty name and why it finds none."""
    patience = ("--timeout", str(_CONNECT), "--retries", "1")
    command = [sys.executable, "-m", "pip", "index", "versions", "tilelang", *patience]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_ANSWER)
    except subprocess.TimeoutExpired:
        return "", f"{_NO_NETWORK} (no answer in {_ANSWER:g} s)"
    if found := re.search(r"^tilelang \((\S+)\)", done.stdout, re.MULTILINE):
        return found[1], ""
    told = done.stderr.strip().splitlines()
    return "", unreachable(told) or (told[-1] if told else "no answer")


def reason(output: Sequence[str], wanted: Iterable[str]) -> str:
    """Say why pip found no distribution, from its output; empty if that is not why it failed.

    wanted: what it was asked for, which is missing where no index can be reached.
    """
    offered = next((found for line in output if (found := _OFFERED.search(line))), None)
    if offered and offered[2] != "none":
        version, versions = offered.groups()
        return f"the package index has no tilelang {version}{did_you_mean(version, versions.split(', '))}"
    cause = unreachable(output)
    return f"{cause}; missing: {', '.join(wanted)}" if cause else ""


def unreachable(output: Iterable[str]) -> str:
    """Say that no package index could be reached, and why; empty if pip's output does not say so."""
    line = next((line for line in output if _UNREACHABLE.search(line)), None)
    if line is None:
        return ""
    found = _ERRNO.search(line) or _ERROR.search(line)
    return _NO_NETWORK + (f" ({found[1]})" if found else "")
