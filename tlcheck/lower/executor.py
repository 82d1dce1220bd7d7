"""Workers of several toolchains that share the processors."""

from __future__ import annotations

import math
import os
import select
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from queue import SimpleQueue

from tlcheck.lower.client import START_SECONDS, Worker
from tlcheck.worker.jobs import Job, kind_of
from tlcheck.worker.protocol import Answer, interrupted

_INTERRUPTED = Answer(None, interrupted("start"), 0.0, 0.0, "")
_TOGETHER = 100  # jobs that one process is given at once


def share(alike: int, waiting: int, parallel: int, kinds: int = 1) -> int:
    """Return how many of these jobs one process does, which costs as much to start as a small kernel.

    alike, waiting: jobs that may share it, and all. kinds: how many there are of jobs that may not share one.
    It leaves enough for the other processors, at the end too.
    """
    fair = alike if kinds > parallel else math.ceil(alike / parallel)
    return max(1, min(_TOGETHER, fair, waiting // (2 * parallel)))


class LocalExecutor:
    """Runs jobs, each with a number of its own, in at most `parallel` processes at a time over all workers.

    A worker starts with its first job and ends with its last, and no more workers than jobs live at a time: each
    takes hundreds of megabytes. A background thread feeds workers while the caller looks at answers, and may add jobs.
    Leaving the context ends all of them.
    """

    def __init__(self, parallel: int, begins: Callable[[Job], None] = lambda job: None) -> None:
        """begins: told of the first job of each process, in another thread."""
        self._parallel, self._begins = parallel, begins
        self._lock = threading.Lock()  # of the two below
        self._queues: dict[Worker, dict[str, deque[Job]]] = {}  # by what the jobs have in common
        self._open: Counter[Worker] = Counter()  # jobs added and not yet looked at
        self._since: dict[Worker, float] = {}  # the live ones -> when they were started
        self._groups: list[set[int]] = []  # numbers of the jobs that share a process, of those that run
        self._done: SimpleQueue[tuple[Worker, Job, Answer] | BaseException] = SimpleQueue()
        self._wake, self._waker = os.pipe()
        self._leaving = self._stopping = False
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self) -> LocalExecutor:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._leaving = True
        self._wake_up()
        self._thread.join()
        for worker in list(self._since):
            self._end(worker)
        os.close(self._wake)
        os.close(self._waker)

    def add(self, worker: Worker, *jobs: Job) -> None:
        """Have a worker do jobs. None of them begins before all are there, so that they may share processes."""
        with self._lock:
            self._open[worker] += len(jobs)
            for job in jobs:
                if self._stopping:
                    self._done.put((worker, job, _INTERRUPTED))
                else:
                    self._queues.setdefault(worker, {}).setdefault(kind_of(job), deque()).append(job)
        self._wake_up()

    def stop(self) -> None:
        """End all jobs: each is answered, with what it has come to.

        A signal's handler may call it, also when the context is left and answers are still being judged.
        """
        self._stopping = True
        if not self._leaving:
            self._wake_up()

    def answers(self) -> Iterator[tuple[Job, Answer]]:
        """Answers in order of completion, until there is no job left. Raises UsageError for a broken toolchain."""
        while self._open.total():
            done = self._done.get()
            if isinstance(done, BaseException):
                raise done
            worker, job, answer = done
            yield job, answer
            with self._lock:
                self._open[worker] -= 1
            self._wake_up()

    def _wake_up(self) -> None:
        os.write(self._waker, b"x")

    def _serve(self) -> None:
        """Serve worker processes, in a thread."""
        try:
            stopped = False
            while not self._leaving:
                if self._stopping and not stopped:
                    self._drop()
                    stopped = True
                with self._lock:
                    self._fill()
                    idle = [worker for worker in self._since if not self._open[worker]]
                for worker in idle:
                    self._end(worker)
                for worker in [] if idle else self._readable():
                    for job, answer in worker.receive():
                        rest = (group - {job.number} for group in self._groups)
                        self._groups = [group for group in rest if group]
                        self._done.put((worker, job, answer))
        except BaseException as error:
            self._done.put(error)

    def _drop(self) -> None:
        """Answer what waits, and have workers end what runs."""
        with self._lock:
            for worker, kinds in self._queues.items():
                for job in (job for jobs in kinds.values() for job in jobs):
                    self._done.put((worker, job, _INTERRUPTED))
                kinds.clear()
        for worker in self._since:
            worker.stop()

    def _fill(self) -> None:
        """Give work to idle processors: first workers import, side by side; jobs go to the one with the fewest."""
        while len(self._groups) + len(self._starting()) < self._parallel:
            waiting = [worker for worker, queue in self._queues.items() if queue]
            new = next((worker for worker in waiting if worker not in self._since), None)
            if new is not None and len(self._since) < self._parallel:
                new.start()
                self._since[new] = time.monotonic()
                continue
            ready = [worker for worker in waiting if worker in self._since and worker.versions]
            if not ready:
                return
            worker = min(ready, key=lambda worker: len(worker.running))
            group = self._group(worker)
            self._groups.append({job.number for job in group})
            self._begins(group[0])
            for job in group:
                worker.send(job, more=job is not group[-1])

    def _starting(self) -> dict[Worker, float]:
        """The workers that import tilelang -> since when."""
        return {worker: since for worker, since in self._since.items() if not worker.versions}

    def _group(self, worker: Worker) -> list[Job]:
        """The next jobs for one process: some of a file, for one arch.

        Files with the fewest come first: many kernels are likely to be small, and keep all processors busy at the end.
        """
        kinds = self._queues[worker]
        kind, alike = min(kinds.items(), key=lambda item: len(item[1]))
        waits = [len(jobs) for queue in self._queues.values() for jobs in queue.values()]
        fair = share(len(alike), sum(waits), self._parallel, len(waits))
        if self._parallel == 1:  # nobody else could do any of them
            fair = min(_TOGETHER, len(alike))
        group = [alike.popleft() for _ in range(fair if worker.fork else 1)]
        if not alike:
            del kinds[kind]
        return group

    def _readable(self) -> list[Worker]:
        """Workers with answers. Raises UsageError if one that imports tilelang takes too long."""
        starting = self._starting()
        patience = min(starting.values(), default=None)
        timeout = None if patience is None else max(0.0, patience + START_SECONDS - time.monotonic())
        watched: list[int | Worker] = [self._wake, *self._since]
        found = select.select(watched, [], [], timeout)[0]
        if not found:
            raise min(starting, key=lambda worker: starting[worker]).too_slow()
        if self._wake in found:
            os.read(self._wake, 4096)
        return [worker for worker in self._since if worker in found]

    def _end(self, worker: Worker) -> None:
        del self._since[worker]
        worker.close()
