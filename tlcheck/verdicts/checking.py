"""Checking: from what is selected to results.

with Checking(settings, policy, folder, watcher) as checking:
    for lowered, result in checking.results(selections):
        ...
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from tlcheck.cache.store import Cache
from tlcheck.execute.request import Request
from tlcheck.lower.runs import Lowered, of_saved
from tlcheck.lower.selection import Selection
from tlcheck.lower.session import Session, Settings
from tlcheck.verdicts.judge import Judge, JudgeWatcher, Policy
from tlcheck.verdicts.results import Result, read_snapshot


class Checking:
    """A session that lowers, and the judge of what it lowers: kernels are judged while others are being lowered.

    The judge's processes end with it. Those who look at a snapshot before it is judged, or instead, use either alone.
    """

    def __init__(
        self, settings: Settings, policy: Policy, folder: Path, watcher: JudgeWatcher, cache: Cache | None = None
    ) -> None:
        """folder: of snapshots, which have to be there until the last result came.

        cache: where verdicts are kept; None for where the session keeps what it lowers.
        """
        self.session = Session(with_inputs(settings, policy.execute), folder, watcher)
        self.judge = Judge(policy, cache or self.session.cache, settings.jobs, settings.cluster, watcher)
        self.session.judged = self.judge.knows

    def __enter__(self) -> Checking:
        return self

    def __exit__(self, *exception: object) -> None:
        self.judge.close()

    def stop(self) -> None:
        """End the work: what is not lowered or has no verdict yet fails as interrupted."""
        self.session.stop()
        self.judge.stop()

    def results(self, selections: Sequence[Selection]) -> Iterator[tuple[Lowered, Result]]:
        """Each run and its result: of saved snapshots first, then as they are lowered. Raises UsageError."""
        return self.judge.each(self._lowered(selections))

    def _lowered(self, selections: Sequence[Selection]) -> Iterator[Lowered]:
        yield from saved(selections)
        if not all(selection.is_snapshot for selection in selections):
            yield from self.session.lower(selections)


def saved(selections: Sequence[Selection]) -> Iterator[Lowered]:
    """The saved snapshots among what is selected. Raises UsageError for a file that is none."""
    for position, selection in enumerate(selections):
        if selection.is_snapshot:
            yield of_saved(selection.path, read_snapshot(selection.path), position)


def with_inputs(settings: Settings, request: Request | None) -> Settings:
    """How to lower what is executed: cases make their own inputs, for its seeds."""
    return settings if request is None else replace(settings, seeds=request.seeds)
