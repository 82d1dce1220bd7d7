"""Check what is selected: kernels are judged while others are still being lowered.

with checking(settings, policy, folder, watcher) as checks:
    for lowered, result in checks.results(selections):
        ...
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from threading import Timer

from tlcheck.cache.store import Cache, open_cache
from tlcheck.execute.request import Request
from tlcheck.lower.runs import Lowered, of_saved
from tlcheck.lower.selection import Selection
from tlcheck.lower.session import Session, Settings
from tlcheck.verdicts.judge import Judge, JudgeWatcher, Policy
from tlcheck.verdicts.results import Result, read_snapshot

_GRACE = 20.0  # seconds in which kernels of interrupted scripts are judged


@dataclass(frozen=True)
class Checks:
    """The session that lowers, and the judge of what is lowered. Those who look at a kernel in between use either
    alone.
    """

    session: Session
    judge: Judge

    def results(self, selections: Sequence[Selection]) -> Iterator[tuple[Lowered, Result]]:
        """Each run and its result: of saved snapshots first, then as they are lowered. Raises UsageError."""
        return self.judge.each(chain(saved(selections), self.session.lower(selections)))

    def stop(self) -> None:
        """End the work: what is not lowered or has no verdict yet fails as interrupted.

        Kernels that a script has compiled until now are judged for a while: nothing was said of them yet.
        """
        runs_scripts = self.session.scripts_running > 0
        self.session.stop()
        if not runs_scripts:
            self.judge.stop()
            return
        timer = Timer(_GRACE, self.judge.stop)
        timer.daemon = True
        timer.start()


@contextmanager
def checking(
    settings: Settings, policy: Policy, folder: Path, watcher: JudgeWatcher, cache: Cache | None = None
) -> Iterator[Checks]:
    """Open a session and its judge, whose processes end with this.

    folder: of snapshots, which have to be there until the last result came. cache: where verdicts are kept; None for
    where the session keeps what it lowers.
    """
    session = Session(with_inputs(settings, policy.execute), folder, watcher)
    with judge_by(policy, settings, watcher, cache or session.cache) as judge:
        session.judged = judge.knows
        session.anticipate = judge.anticipate if judge.anticipates else None
        yield Checks(session, judge)


def judge_by(
    policy: Policy, settings: Settings, watcher: JudgeWatcher | None = None, cache: Cache | None = None
) -> Judge:
    """Open a judge alone, where something else lowers, to be closed as by `with`. cache: as for `checking`."""
    kept = cache or open_cache(settings.cache)
    return Judge(policy, kept, settings.jobs, settings.cluster, watcher, settings.warm)


def saved(selections: Sequence[Selection]) -> Iterator[Lowered]:
    """The saved snapshots among what is selected. Raises UsageError for a file that is none."""
    for position, selection in enumerate(selections):
        if selection.is_snapshot:
            yield of_saved(selection.path, read_snapshot(selection.path), position)


def with_inputs(settings: Settings, request: Request | None) -> Settings:
    """Return how to lower what is executed: cases make their own inputs, for its seeds."""
    return settings if request is None else replace(settings, seeds=request.seeds)
