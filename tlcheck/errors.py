"""The one exception that a user is meant to see as a line of text, and what makes errors easier to read."""

from __future__ import annotations

import traceback
from collections.abc import Iterable
from pathlib import Path


class UsageError(Exception):
    """Bad usage: shown as `tlcheck: error: <message>`, exit code 2, never a traceback."""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Suggest the known word that is closest to an unknown one: `; did you mean sm_90?`. Empty where none is close."""
    import difflib  # only for errors: `tlcheck --help` stays instant

    close = difflib.get_close_matches(word, list(known), 1)
    return f"; did you mean {close[0]}?" if close else ""


def fault(error: Exception) -> str:
    """Say what a fault of tlcheck's own was, and where."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{Path(frame.filename).name}:{frame.lineno}"
    return f"tlcheck itself failed: {type(error).__name__}: {error} ({where})"
