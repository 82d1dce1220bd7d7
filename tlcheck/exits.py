"""Exit codes: which outcome of a command ends with which number."""

from __future__ import annotations

from signal import SIGINT

CLEAN = 0
FOUND = 1  # something is refuted, wrong, or not as approved
USAGE = 2  # something that was asked for is not there, or has no meaning
NOT_CHECKED = 3  # something was not looked at, or nothing of it is decided


def exit_code(*, usage: bool = False, found: bool = False, unchecked: bool = False) -> int:
    """Return the code of the first outcome that holds."""
    return USAGE if usage else FOUND if found else NOT_CHECKED if unchecked else CLEAN


def interrupted(signal: int = SIGINT) -> int:
    """Return the code of a command that a signal has ended: 130 for Ctrl-C, as in a shell."""
    return 128 + signal
