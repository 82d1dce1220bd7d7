"""Find where in the user's file, and in the TIR, something stands."""

from __future__ import annotations

from tlcheck.snapshot.ir import Snapshot, Stmt
from tlcheck.snapshot.text import render
from tlcheck.verdicts.claim import Excerpt, SourceLine

_BEFORE, _AFTER = 2, 1  # lines of TIR shown around a statement


def source_line(snapshot: Snapshot, line: int) -> SourceLine:
    """A line of the kernel's file; that of the kernel where it is not known (0)."""
    return SourceLine(snapshot.file, line or snapshot.line, bool(line))


def line_of(snapshot: Snapshot, checkpoint: str, stmt: Stmt | None) -> int:
    """The line of a statement in the TIR at a checkpoint; 0 where it is not there."""
    return 0 if stmt is None else render(snapshot.checkpoints[checkpoint]).line_of(stmt) or 0


def excerpt(snapshot: Snapshot, checkpoint: str, stmt: Stmt | None) -> Excerpt | None:
    """The TIR around a statement; None where it is not there."""
    number = line_of(snapshot, checkpoint, stmt)
    if not number:
        return None
    first = max(1, number - _BEFORE)
    return Excerpt(first, number, render(snapshot.checkpoints[checkpoint]).lines[first - 1 : number + _AFTER])
