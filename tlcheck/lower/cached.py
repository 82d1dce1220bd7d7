"""Answers jobs from what was kept, and has workers do the others."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from tlcheck.cache.store import Cache
from tlcheck.errors import UsageError
from tlcheck.lower.answers import AnswerCache
from tlcheck.lower.client import Worker
from tlcheck.lower.machines import JobExecutor
from tlcheck.toolchain.resolve import Toolchain
from tlcheck.worker.jobs import Job, LowerJob
from tlcheck.worker.protocol import Answer


@dataclass(frozen=True)
class ToolchainWorker:
    """A toolchain, its worker, and the answers that are kept for it, if any are."""

    toolchain: Toolchain
    worker: Worker
    kept: AnswerCache | None

    def labelled(self, versions: Mapping[str, str]) -> Mapping[str, str]:
        """The versions, with the commit of a checkout: it may change where the files do not."""
        commit = self.toolchain.commit
        return {**versions, "commit": commit} if commit else versions


@dataclass(frozen=True)
class AnsweredJob:
    """An answered job. versions: of what determines the IR. snapshot: hash of what was written, empty if not kept.

    known: whether an earlier run has done the work.
    """

    job: Job
    answer: Answer
    versions: Mapping[str, str]
    snapshot: str
    known: bool


class CachedExecutor:
    """Answers jobs as a `JobExecutor` does. A worker whose answers are all there is never started."""

    def __init__(self, executor: JobExecutor, cache: Cache, *, fork: bool) -> None:
        self._executor, self._cache, self._fork = executor, cache, fork
        self._ready: deque[AnsweredJob] = deque()
        self._asked: dict[int, ToolchainWorker] = {}

    def toolchain_worker(self, toolchain: Toolchain, worker: Worker) -> ToolchainWorker:
        """A toolchain's worker with the answers that are kept for it."""
        if self._cache.folder is None:
            return ToolchainWorker(toolchain, worker, None)
        try:
            return ToolchainWorker(toolchain, worker, AnswerCache(self._cache, toolchain, fork=self._fork))
        except UsageError:  # its worker says better what is wrong with it
            return ToolchainWorker(toolchain, worker, None)

    def add(self, owner: ToolchainWorker, *jobs: Job, whole: bool = True) -> None:
        """Ask for jobs. whole: what they write is wanted as well, not only their answers."""
        missing: list[Job] = []
        for job in jobs:
            kept = owner.kept.find(job, whole=whole) if owner.kept is not None else None
            if kept is not None:
                self._ready.append(
                    AnsweredJob(job, kept.answer, owner.labelled(kept.versions), kept.snapshot, known=True)
                )
            else:
                missing.append(owner.kept.with_known(job) if owner.kept is not None else job)
        if missing:
            self._ask(owner, *missing)

    def _ask(self, owner: ToolchainWorker, *jobs: Job) -> None:
        self._asked.update({job.number: owner for job in jobs})
        self._executor.add(owner.worker, *jobs)

    def answers(self) -> Iterator[AnsweredJob]:
        """Every job's end, what is known already first. Raises UsageError for a broken toolchain."""
        yield from self._kept()
        for job, answer in self._executor.answers():
            done = self._done(self._asked.pop(job.number), job, answer)
            if done is not None:
                yield done
            yield from self._kept()

    def _kept(self) -> Iterator[AnsweredJob]:
        while self._ready:
            yield self._ready.popleft()

    def _done(self, owner: ToolchainWorker, job: Job, answer: Answer) -> AnsweredJob | None:
        """Return what an answer says; None where the job has to be done again."""
        versions = owner.worker.versions
        known = owner.kept is not None and "place" in (answer.result or {})
        if owner.kept is not None and known and isinstance(job, LowerJob):
            found = owner.kept.move(job, answer)
            if found is None:
                self._ask(owner, replace(job, known=()))
                return None
            answer = found
        kept = owner.kept.keep(job, answer, versions).snapshot if owner.kept is not None else ""
        return AnsweredJob(job, answer, owner.labelled(versions), kept, known)
