"""Lowering what a command is given: in a folder of its own, with a bar on the terminal."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tlcheck.cli.progress import Bar, bar
from tlcheck.lower.runs import Lowered
from tlcheck.lower.selection import Selection
from tlcheck.lower.session import Session, Settings
from tlcheck.verdicts.results import Result


def lowered(chosen: Sequence[Selection], settings: Settings, remarks: list[str] | None = None) -> Iterator[Lowered]:
    """Lower what is no saved snapshot; runs come in the order of the selections.

    Their snapshots are gone when this ends. remarks: takes what there is to say of scripts. Raises UsageError.
    """
    with lowering_session(settings) as session:
        found = sorted(session.lower(chosen), key=lambda done: done.run.position)
        if remarks is not None:
            remarks += session.remarks
        yield from found


@contextmanager
def lowering_session(settings: Settings, beside: Path | None = None) -> Iterator[Session]:
    """Open a session that lowers without judging. Its snapshots are gone at the end. beside: as for `working`."""
    with working(beside, settings.loudness) as (folder, watcher):
        yield Session(settings, folder, watcher)


@contextmanager
def working(beside: Path | None = None, loudness: int = 0, *, judging: bool = False) -> Iterator[tuple[Path, Bar]]:
    """Make a folder that is removed at the end, and a bar. beside: the folder to make it in.

    judging: whether the bar ends with the last verdict, not with the last kernel that is lowered.
    """
    name = ".tlcheck-" if beside else "tlcheck-"  # hidden where others look
    with (
        tempfile.TemporaryDirectory(prefix=name, dir=beside, ignore_cleanup_errors=True) as folder,
        bar(loudness, judging=judging) as made,
    ):
        yield Path(folder), made


def show_tracebacks(results: Iterable[Result]) -> None:
    """Print the tracebacks of what could not be lowered, for `--verbose`: each once. Scripts' own are shown before."""
    sys.stdout.flush()
    failures = [result.failure for result in results if result.failure is not None and result.failure.phase != "run"]
    for text in dict.fromkeys(failure.trace for failure in failures if failure.trace):
        print(text, file=sys.stderr)
