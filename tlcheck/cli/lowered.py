"""Lowering and judging what a command is given: in a folder of its own, with a bar on the terminal."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tlcheck.cache.store import open_cache
from tlcheck.cli.progress import Bar, bar
from tlcheck.lower.runs import Lowered
from tlcheck.lower.selection import Selection
from tlcheck.lower.session import Session, Settings
from tlcheck.verdicts.judge import Judge, Policy
from tlcheck.verdicts.results import Result


def lowered(chosen: Sequence[Selection], settings: Settings, remarks: list[str] | None = None) -> Iterator[Lowered]:
    """Lower what is no saved snapshot; runs come in the order of the selections.

    Their snapshots are gone when this ends. remarks: takes what there is to say of scripts. Raises UsageError.
    """
    with session(settings) as made:
        found = sorted(made.lower(chosen), key=lambda done: done.run.position)
        if remarks is not None:
            remarks += made.remarks
        yield from found


def judge(settings: Settings, policy: Policy) -> Judge:
    """Open a judge with what the user says of processors and of keeping results."""
    return Judge(policy, open_cache(settings.cache), settings.jobs, settings.cluster)


def show_traces(results: Iterable[Result]) -> None:
    """Print the tracebacks of what could not be lowered, for `--verbose`: each once."""
    sys.stdout.flush()
    for trace in dict.fromkeys(r.failure.trace for r in results if r.failure is not None and r.failure.trace):
        print(trace, file=sys.stderr)


@contextmanager
def session(settings: Settings, beside: Path | None = None, judged: Judge | None = None) -> Iterator[Session]:
    """Open a session; its snapshots are gone with it. beside: the folder to make them in.

    judged: who judges what it lowers, so that the bar ends with the last verdict.
    """
    with working(beside, settings.loudness) as (folder, watcher):
        made = Session(settings, folder, watcher)
        if judged is not None:
            judged.watcher, watcher.judging = watcher, True
            made.judged = judged.knows
        yield made


@contextmanager
def working(beside: Path | None = None, loudness: int = 0) -> Iterator[tuple[Path, Bar]]:
    """Make a folder that is removed at the end, and a bar."""
    name = ".tlcheck-" if beside else "tlcheck-"  # hidden where others look
    with (
        tempfile.TemporaryDirectory(prefix=name, dir=beside, ignore_cleanup_errors=True) as folder,
        bar(loudness) as made,
    ):
        yield Path(folder), made
