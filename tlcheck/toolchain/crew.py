"""Workers of several toolchains that share the processors."""

from __future__ import annotations

import select
import time
from collections import deque
from collections.abc import Iterator

from tlcheck.toolchain.client import START_SECONDS, Job, Worker
from tlcheck.worker.protocol import Answer


class Crew:
    """Runs jobs, at most `parallel` at a time over all workers. Jobs may be added while answers are taken.

    A worker starts with its first job and ends with its last, and no more workers than jobs live at a time: each
    takes hundreds of megabytes. Leaving the context ends all of them.
    """

    def __init__(self, parallel: int) -> None:
        self._parallel = parallel
        self._queues: dict[Worker, deque[Job]] = {}
        self._since: dict[Worker, float] = {}  # the live ones -> when they were started

    def __enter__(self) -> Crew:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in list(self._since):
            self._end(worker)

    def add(self, worker: Worker, job: Job) -> None:
        """Have a worker do a job, after those that it has."""
        self._queues.setdefault(worker, deque()).append(job)

    def answers(self) -> Iterator[tuple[Job, Answer]]:
        """Answers in order of completion, until there is no job left. Raises UsageError for a broken toolchain."""
        while True:
            self._fill()
            if not self._since:
                return
            for worker in self._readable():
                answers = worker.receive()
                self._fill()  # before the answers are looked at, which takes time
                yield from answers
                if not worker.running and not self._queues[worker]:
                    self._end(worker)

    def _fill(self) -> None:
        """Give jobs to idle processors: to the worker with the fewest, so that imports go on side by side."""
        while sum(len(worker.running) for worker in self._since) < self._parallel:
            ready = [worker for worker, queue in self._queues.items() if queue and self._may_run(worker)]
            if not ready:
                return
            worker = min(ready, key=lambda worker: len(worker.running))
            if worker not in self._since:
                worker.start()
                self._since[worker] = time.monotonic()
            worker.send(self._queues[worker].popleft())

    def _may_run(self, worker: Worker) -> bool:
        return worker in self._since or len(self._since) < self._parallel

    def _readable(self) -> list[Worker]:
        """Workers with answers. Raises UsageError if one that imports tilelang takes too long."""
        starting = {worker: since for worker, since in self._since.items() if not worker.versions}
        patience = min(starting.values(), default=None)
        timeout = None if patience is None else max(0.0, patience + START_SECONDS - time.monotonic())
        found = select.select(list(self._since), [], [], timeout)[0]
        if not found:
            raise min(starting, key=lambda worker: starting[worker]).too_slow()
        return list(found)

    def _end(self, worker: Worker) -> None:
        del self._since[worker]
        worker.close()
