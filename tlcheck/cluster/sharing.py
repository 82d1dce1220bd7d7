"""A worker that several threads have jobs done by."""

from __future__ import annotations

import select
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from itertools import count
from threading import Lock, Thread

from tlcheck.errors import UsageError
from tlcheck.lower.client import START_SECONDS, Worker
from tlcheck.toolchain.environment import Environment
from tlcheck.worker.jobs import Job
from tlcheck.worker.protocol import Answer


class SharedWorker:
    """Starts at once. users: who has it now, counted by its owner. broken: it cannot import tilelang."""

    def __init__(self, made: Environment, *, fork: bool) -> None:
        self.users = 0
        self.broken = False
        self._worker = Worker(made.python, made.worker_env(), fork=fork)
        self._lock = Lock()  # of the worker and of the next one
        self._waiting: dict[int, Future[Answer]] = {}
        self._numbers = count()
        self._closed = False
        self._worker.start()
        Thread(target=self._serve, daemon=True).start()

    @property
    def versions(self) -> Mapping[str, str]:
        """Implement `Worker`."""
        return self._worker.versions

    def answers(self, jobs: Sequence[Job]) -> list[Answer]:
        """Have one process do jobs, and wait. Raises UsageError if tilelang cannot be imported, or takes too long."""
        with self._lock:
            numbered = [replace(job, number=next(self._numbers)) for job in jobs]
            futures: list[Future[Answer]] = [Future() for _ in jobs]
            self._waiting.update({job.number: future for job, future in zip(numbered, futures, strict=True)})
            for job in numbered:
                self._worker.send(job, more=job is not numbered[-1])
        return [future.result() for future in futures]

    def close(self) -> None:
        """End the process, which nobody uses."""
        with self._lock:
            self._closed = True
            self._worker.close()

    def _serve(self) -> None:
        """Hand answers to those who wait for them, in a thread."""
        try:
            while True:
                patience = None if self._worker.versions else START_SECONDS
                if not select.select([self._worker], [], [], patience)[0]:
                    raise self._worker.too_slow()
                with self._lock:
                    if self._closed:
                        return
                    for job, answer in self._worker.receive():
                        self._waiting.pop(job.number).set_result(answer)
        except (UsageError, OSError, ValueError) as error:
            with self._lock:
                self.broken = True
                for future in self._waiting.values():
                    future.set_exception(error)
                self._waiting.clear()
