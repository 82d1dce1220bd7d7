"""Jobs done on the nodes of a cluster."""

from __future__ import annotations

import math
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from queue import Empty, SimpleQueue

from tlcheck.cluster.node import Delivery, Order
from tlcheck.cluster.nodes import RayNodes
from tlcheck.cluster.placement import Placement, QueuedJob
from tlcheck.errors import UsageError
from tlcheck.lower.client import Worker
from tlcheck.lower.executor import share
from tlcheck.toolchain import environment
from tlcheck.toolchain.environment import Recipe
from tlcheck.worker.jobs import InputsJob, Job, kind_of, name_of, output_of, task_of
from tlcheck.worker.protocol import Answer, Failure, interrupted

_TICK = 0.2  # seconds between two looks at whether to stop
_LOOK = 1.0  # and at the nodes
_PAUSE = 10.0  # before a node is asked again whose actor has died: the node may be dead, and Ray not know it yet
_REJOIN = 300.0  # that another node comes where one has gone, before a toolchain counts as one that no node can have
_TRIES = 4  # of a job whose node dies
_NEXT = 1  # orders more than processors that a node has: the next one is there when one ends


@dataclass(frozen=True)
class _Request:
    """A job for a worker's toolchain. lost: how many nodes have died that were to do it."""

    worker: Worker
    recipe: Recipe
    job: Job
    lost: int = 0


@dataclass(frozen=True)
class _RunningOrder:
    """An order that a node has been given."""

    jobs: Sequence[QueuedJob[_Request]]
    node: str
    delivery: Future[Delivery]


@dataclass(frozen=True)
class _Candidate:
    """A node that was asked to take part, and its answer: the toolchains that it has."""

    node: str
    processors: int
    installed: Future[Sequence[str]]


class ClusterExecutor:
    """Does jobs as `lower.executor.LocalExecutor` does, on nodes. What a dead node was at is done again by another one.

    A node that cannot have a toolchain gets no more jobs of that toolchain.
    """

    def __init__(self, nodes: RayNodes, begins: Callable[[Job], None]) -> None:
        self._nodes, self._begins = nodes, begins
        self._placement: Placement[_Request] = Placement()
        self._tasks: dict[int, _RunningOrder] = {}  # by a number
        self._numbers = count()
        self._processors: dict[str, int] = {}  # of each node that takes part
        self._busy: Counter[str] = Counter()  # orders that a node has
        self._wanting: set[str] = set()  # nodes that may get an order
        self._travelling: set[str] = set()  # files and folders that nodes have
        self._recipes: dict[Worker, Recipe] = {}
        self._asked: dict[str, float] = {}  # since when, of nodes that do not take part yet, or no more
        self._candidates: set[str] = set()  # of these, those that have not answered
        self._rejoin_until = -math.inf  # until when
        self._ended: SimpleQueue[_Candidate | int] = SimpleQueue()
        self._looked = 0.0
        self._unfit: dict[tuple[str, str], str] = {}  # node, toolchain -> why
        self._stopping = False

    def __enter__(self) -> ClusterExecutor:
        return self

    def __exit__(self, *_: object) -> None:
        """Cancel what runs."""
        if self._tasks:
            self._nodes.leave_all()
        self._tasks.clear()
        self._nodes.running = 0

    def add(self, worker: Worker, *jobs: Job) -> None:
        """Have jobs done with a worker's toolchain. Raises UsageError for what does not travel."""
        for path in {path for job in jobs for path in (job.file, *job.pythonpath)} - self._travelling:
            self._nodes.folder.require(path)
            self._travelling.add(path)
        if worker not in self._recipes:
            self._recipes[worker] = recipe_of(worker)
        for job in jobs:
            self._wait(_Request(worker, self._recipes[worker], job))

    def _wait(self, asked: _Request) -> None:
        """Do alone what was lost: it may be what has taken its node along."""
        job, alike = asked.job, kind_of(asked.job) if not asked.lost else asked.job.number
        what = task_of(job), job.file, name_of(job), job.arch
        self._placement.add(QueuedJob(asked.recipe.name, what, asked, alike, awaited=isinstance(job, InputsJob)))
        self._wanting.update(self._processors)

    def stop(self) -> None:
        """End all jobs. A signal's handler may call it."""
        self._stopping = True

    def answers(self) -> Iterator[tuple[Job, Answer]]:
        """Implement `JobExecutor`. Raises UsageError for a toolchain that no node can have."""
        while self._tasks or len(self._placement):
            if self._stopping:
                # every job that has no answer, as interrupted
                jobs = [job for task in self._tasks.values() for job in task.jobs]
                jobs += self._placement.empty()
                self.__exit__()
                for job in jobs:
                    yield job.work.job, Answer(None, interrupted("start"), 0.0, 0.0, "")
                return
            self._look()
            self._submit()
            with suppress(Empty):
                ended = self._ended.get(timeout=_TICK)
                if isinstance(ended, _Candidate):
                    # a node that has answered counts
                    self._candidates.discard(ended.node)
                    if ended.installed.exception() is None:
                        self._processors[ended.node] = ended.processors
                        self._wanting.add(ended.node)
                        self._placement.joins(ended.node, ended.installed.result())
                elif ended in self._tasks:
                    yield from self._answers(self._tasks.pop(ended))

    def _look(self) -> None:
        """See which nodes have come and gone."""
        now = time.monotonic()
        if now < self._looked + _LOOK:
            return
        self._looked = now
        self._wanting.update(self._processors)
        found = self._nodes.present()
        for node in self._processors.keys() - found.keys():
            self._leaves(node)
        for node in found.keys() - self._processors.keys():
            if now >= self._asked.get(node, -math.inf) + _PAUSE:
                self._ask(node, found[node])

    def _ask(self, node: str, processors: int) -> None:
        """Ask a node to take part."""
        self._asked[node] = time.monotonic()
        self._candidates.add(node)
        candidate = _Candidate(node, processors, self._nodes.joins(node, processors))
        candidate.installed.add_done_callback(lambda _: self._ended.put(candidate))

    def _leaves(self, node: str) -> None:
        """Count on a node no more; its orders end with errors."""
        if self._processors.pop(node, None) is not None:
            self._asked[node] = time.monotonic()
            self._rejoin_until = self._asked[node] + _REJOIN
            self._placement.leaves(node)
            self._nodes.leave(node)

    def _submit(self) -> None:
        """Give each node as much as it has processors, and what comes next.

        Raises UsageError where jobs wait for a toolchain that no node can have.
        """
        while self._wanting:
            node = self._wanting.pop()
            while self._busy[node] < self._processors.get(node, -_NEXT) + _NEXT and (jobs := self._batch(node)):
                self._begin(node, jobs)
        if self._unfit and not self._candidates and time.monotonic() > self._rejoin_until:
            toolchain = self._placement.unplaceable()
            if toolchain is not None:
                why = next(why for (_, name), why in self._unfit.items() if name == toolchain)
                raise UsageError(f"--cluster: no node can have toolchain {toolchain}: {why}")

    def _batch(self, node: str) -> Sequence[QueuedJob[_Request]]:
        """The next jobs of a node that one process does."""
        first = self._placement.take(node)
        if first is None:
            return ()
        parallel = sum(self._processors.values())
        alike = 1 + self._placement.alike(first)
        more = share(alike, len(self._placement), parallel) - 1 if first.work.worker.fork else 0
        return [first, *self._placement.take_alike(first, more)]

    def _begin(self, node: str, jobs: Sequence[QueuedJob[_Request]]) -> None:
        first, number = jobs[0].work, next(self._numbers)
        order = Order(tuple(job.work.job for job in jobs), first.recipe, first.worker.fork)
        self._begins(first.job)
        self._busy[node] += 1
        self._nodes.running += len(jobs)
        self._tasks[number] = task = _RunningOrder(jobs, node, self._nodes.do(node, order))
        task.delivery.add_done_callback(lambda _: self._ended.put(number))

    def _answers(self, task: _RunningOrder) -> Iterator[tuple[Job, Answer]]:
        """Yield what an order came to, files written; nothing if another node has to do it. Raises UsageError."""
        self._busy[task.node] -= 1
        self._nodes.running -= len(task.jobs)
        self._wanting.add(task.node)
        try:
            delivery = task.delivery.result()
        except (self._nodes.lost, OSError) as error:  # it is gone, or has no room for files: it begins anew
            self._leaves(task.node)
            yield from self._again(task, error)
            return
        except UsageError as error:  # tilelang was not imported: it cannot be, or a dying node's worker went first
            if max(job.work.lost for job in task.jobs) + 1 == _TRIES:
                raise
            yield from self._again(task, error)
            return
        if delivery.versions is None:
            self._elsewhere(task, delivery)
            return
        for job, answer, output in zip(task.jobs, delivery.answers, delivery.outputs, strict=True):
            self._placement.ended(job, answer.wall)
            job.work.worker.versions = delivery.versions
            if output:
                Path(output_of(job.work.job)).write_bytes(output)
            elif isinstance(job.work.job, InputsJob) and answer.result is not None:
                self._nodes.stay(task.node, Order((job.work.job,), job.work.recipe, job.work.worker.fork))
            yield job.work.job, answer

    def _again(self, task: _RunningOrder, error: Exception) -> Iterator[tuple[Job, Answer]]:
        """Have jobs done again whose node, or actor, is gone."""
        lines = str(error).strip().splitlines() or [type(error).__name__]
        for asked in (job.work for job in task.jobs):
            if asked.lost + 1 < _TRIES:
                self._wait(replace(asked, lost=asked.lost + 1))
            else:
                failure = Failure("worker", "start", f"{_TRIES} times no node came to the end of it", lines[0])
                yield asked.job, Answer(None, failure, 0.0, 0.0, "")

    def _elsewhere(self, task: _RunningOrder, delivery: Delivery) -> None:
        toolchain = task.jobs[0].toolchain
        if (task.node, toolchain) not in self._unfit:
            print(f"tlcheck: node {delivery.host} does without {toolchain}: {delivery.unfit}", file=sys.stderr)
        self._unfit[task.node, toolchain] = delivery.unfit
        self._placement.cannot(task.node, toolchain)
        for job in task.jobs:
            self._placement.add(job)
        self._wanting.update(self._processors)


def recipe_of(worker: Worker) -> Recipe:
    """Return how a node makes the toolchain. Raises UsageError for one that is no release."""
    made = environment.load(worker.python.parents[1])
    if made is None or made.recipe.tilelang != f"tilelang=={made.recipe.name}":
        raise UsageError(f"--cluster: nodes have releases only, and {worker.python} is none's interpreter")
    return made.recipe
