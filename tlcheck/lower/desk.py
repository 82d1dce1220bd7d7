"""Answers jobs from what was kept, and has workers do the others."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from tlcheck.cache.store import Cache
from tlcheck.errors import UsageError
from tlcheck.lower.client import Worker
from tlcheck.lower.elsewhere import Hands
from tlcheck.lower.jobs import Jobs
from tlcheck.toolchain.resolve import Toolchain
from tlcheck.worker.jobs import Job, LowerJob
from tlcheck.worker.protocol import Answer


@dataclass(frozen=True)
class ToolchainSide:
    """A toolchain, its worker, and the answers that are kept for it, if any are."""

    toolchain: Toolchain
    worker: Worker
    kept: Jobs | None

    def labelled(self, versions: Mapping[str, str]) -> Mapping[str, str]:
        """The versions, with the commit of a checkout: it may change where the files do not."""
        commit = self.toolchain.commit
        return {**versions, "commit": commit} if commit else versions


@dataclass(frozen=True)
class Done:
    """An answered job. versions: of what determines the IR. snapshot: hash of what was written, empty if not kept.

    known: whether an earlier run has done the work.
    """

    job: Job
    answer: Answer
    versions: Mapping[str, str]
    snapshot: str
    known: bool


class Desk:
    """Like a `Crew`; a worker whose answers are all there is never started."""

    def __init__(self, crew: Hands, cache: Cache, *, fork: bool) -> None:
        self._crew, self._cache, self._fork = crew, cache, fork
        self._ready: deque[Done] = deque()
        self._asked: dict[int, ToolchainSide] = {}

    def side(self, toolchain: Toolchain, worker: Worker) -> ToolchainSide:
        """A toolchain's side of the desk."""
        if self._cache.folder is None:
            return ToolchainSide(toolchain, worker, None)
        try:
            return ToolchainSide(toolchain, worker, Jobs(self._cache, toolchain, fork=self._fork))
        except UsageError:  # its worker says better what is wrong with it
            return ToolchainSide(toolchain, worker, None)

    def add(self, side: ToolchainSide, *jobs: Job, whole: bool = True) -> None:
        """Ask for jobs. whole: what they write is wanted as well, not only their answers."""
        missing: list[Job] = []
        for job in jobs:
            kept = side.kept.find(job, whole=whole) if side.kept is not None else None
            if kept is not None:
                self._ready.append(Done(job, kept.answer, side.labelled(kept.versions), kept.snapshot, known=True))
            else:
                missing.append(side.kept.with_known(job) if side.kept is not None else job)
        if missing:
            self._ask(side, *missing)

    def _ask(self, side: ToolchainSide, *jobs: Job) -> None:
        self._asked.update({job.number: side for job in jobs})
        self._crew.add(side.worker, *jobs)

    def answers(self) -> Iterator[Done]:
        """Every job's end, what is known already first. Raises UsageError for a broken toolchain."""
        yield from self._kept()
        for job, answer in self._crew.answers():
            done = self._done(self._asked.pop(job.number), job, answer)
            if done is not None:
                yield done
            yield from self._kept()

    def _kept(self) -> Iterator[Done]:
        while self._ready:
            yield self._ready.popleft()

    def _done(self, side: ToolchainSide, job: Job, answer: Answer) -> Done | None:
        """What an answer says; None where the job has to be done again."""
        versions = side.worker.versions
        known = side.kept is not None and "place" in (answer.result or {})
        if side.kept is not None and known and isinstance(job, LowerJob):
            found = side.kept.move(job, answer)
            if found is None:
                self._ask(side, replace(job, known=()))
                return None
            answer = found
        kept = side.kept.keep(job, answer, versions).snapshot if side.kept is not None else ""
        return Done(job, answer, side.labelled(versions), kept, known)
