"""An executor of one worker that lives as long as its context, however often a test asks it for something."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path

from tlcheck.lower.client import Discovered, Worker, discovered, processors
from tlcheck.lower.executor import LocalExecutor
from tlcheck.worker.jobs import DiscoverJob, Job, LowerJob
from tlcheck.worker.protocol import Answer, Failure


@dataclass(frozen=True)
class Ended:
    """A job and its answer."""

    job: LowerJob
    answer: Answer

    @property
    def failure(self) -> Failure | None:
        return self.answer.failure

    @property
    def unsaved(self) -> Mapping[str, str]:
        return dict((self.answer.result or {}).get("unsaved", {}))

    @property
    def checkpoints(self) -> Mapping[str, str]:
        return dict((self.answer.result or {}).get("checkpoints", {}))

    @property
    def snapshot(self) -> Path | None:
        return Path(self.job.output) if self.answer.result is not None else None


class Client:
    """Answers come in order of completion. parallel: see `LocalExecutor`."""

    def __init__(self, worker: Worker, parallel: int | None = None) -> None:
        self._worker = worker
        self._executor = LocalExecutor(parallel or processors())
        self._answers = self._executor.answers()  # its last job counts as open until the next one is asked for
        self._numbers = count()

    def __enter__(self) -> Client:
        self._executor.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._executor.__exit__(*error)

    def discover(self, jobs: Iterable[DiscoverJob]) -> Iterator[Discovered]:
        for job, answer in self._ended(jobs):
            yield discovered(job, answer)

    def lower(self, jobs: Iterable[LowerJob]) -> Iterator[Ended]:
        for job, answer in self._ended(jobs):
            assert isinstance(job, LowerJob)
            yield Ended(job, answer)

    def _ended(self, jobs: Iterable[Job]) -> Iterator[tuple[Job, Answer]]:
        asked = [replace(job, number=next(self._numbers)) for job in jobs]
        self._executor.add(self._worker, *asked)
        for _ in asked:
            yield next(self._answers)
