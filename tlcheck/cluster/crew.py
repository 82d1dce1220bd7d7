"""A crew whose jobs are tasks of Ray."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tlcheck.cluster.node import Delivery, Order
from tlcheck.cluster.placement import Placement, Waiting
from tlcheck.errors import UsageError
from tlcheck.lower.client import Worker
from tlcheck.toolchain import environment
from tlcheck.toolchain.environment import Recipe
from tlcheck.worker.protocol import Answer, Failure, Job, interrupted

if TYPE_CHECKING:
    from tlcheck.cluster.connection import RayCluster

_TICK = 0.2  # seconds between two looks at whether to stop
_LOOK = 1.0  # and at the nodes
_TRIES = 4  # of a job whose node dies
_NEXT = 1  # jobs more than processors that a node has: the next one is there when one ends


@dataclass(frozen=True)
class _Wish:
    """What is to be done, for whom, and on how many nodes it has been lost."""

    worker: Worker
    order: Order
    lost: int = 0


@dataclass(frozen=True)
class _Task:
    """A job that is with Ray. written: reference to what it writes."""

    job: Waiting[_Wish]
    node: str
    written: Any


class NodeCrew:
    """Does jobs as `lower.crew.Crew` does, on nodes. What a dead node was at is done again by another one.

    A node that cannot have a toolchain gets no more jobs of that toolchain.
    """

    def __init__(self, cluster: RayCluster, begins: Callable[[Job], None]) -> None:
        self._cluster, self._begins = cluster, begins
        self._placement: Placement[_Wish] = Placement()
        self._tasks: dict[Any, _Task] = {}  # by the reference to the delivery
        self._processors: dict[str, int] = {}  # of each node
        self._looked = 0.0
        self._unfit: dict[tuple[str, str], str] = {}  # node, toolchain -> why
        self._stopping = False

    def __enter__(self) -> NodeCrew:
        return self

    def __exit__(self, *_: object) -> None:
        """Cancel what runs."""
        for reference in self._tasks:
            self._cluster.cancel(reference)
        self._tasks.clear()
        self._cluster.running = 0

    def add(self, worker: Worker, job: Job) -> None:
        """Have a job done with a worker's toolchain. Raises UsageError for what does not travel."""
        for path in (job.file, *job.pythonpath):
            if not Path(path).resolve().is_relative_to(Path(self._cluster.folder).resolve()):
                raise UsageError(f"--cluster: {path} is not below the current folder, which is what travels to nodes")
        self._wait(_Wish(worker, Order(job, _recipe(worker), self._cluster.folder, worker.fork)))

    def _wait(self, asked: _Wish) -> None:
        job = asked.order.job
        self._placement.add(Waiting(asked.order.recipe.name, (job.task, job.file, job.name, job.arch), asked))

    def stop(self) -> None:
        """End all jobs. A signal's handler may call it."""
        self._stopping = True

    def answers(self) -> Iterator[tuple[Job, Answer]]:
        """Of `Crew`. Raises UsageError for a toolchain that no node can have."""
        while self._tasks or len(self._placement):
            if self._stopping:
                yield from self._interrupted()
                return
            self._look()
            self._submit()
            for reference in self._cluster.wait([*self._tasks], _TICK):
                task = self._tasks.pop(reference)
                answer = self._answer(reference, task)
                if answer is not None:
                    yield task.job.work.order.job, answer
            self._cluster.running = len(self._tasks)

    def _look(self) -> None:
        """See which nodes have come and gone."""
        if time.monotonic() < self._looked + _LOOK:
            return
        self._looked = time.monotonic()
        found = self._cluster.nodes()
        for node in [*self._processors]:
            if node not in found:
                del self._processors[node]
                self._placement.leaves(node)
        for node in found.keys() - self._processors.keys():
            self._placement.joins(node, self._cluster.installed(node))
            self._processors[node] = found[node]

    def _submit(self) -> None:
        """Give each node as much as it has processors, and what comes next."""
        busy = Counter(task.node for task in self._tasks.values())
        for node, processors in self._processors.items():
            while busy[node] < processors + _NEXT and (job := self._placement.take(node)) is not None:
                reference, written = self._cluster.do(node, job.work.order)
                self._tasks[reference] = _Task(job, node, written)
                busy[node] += 1
                self._begins(job.work.order.job)
        if (toolchain := self._placement.hopeless()) is not None:
            why = next(why for (_, name), why in self._unfit.items() if name == toolchain)
            raise UsageError(f"--cluster: no node can have toolchain {toolchain}: {why}")

    def _answer(self, reference: Any, task: _Task) -> Answer | None:
        """What a task says, its file written; None where another node has to do it."""
        asked = task.job.work
        try:
            delivery: Delivery = self._cluster.result(reference)
            written: bytes = self._cluster.result(task.written)
        except self._cluster.lost as error:
            return self._again(task, error)
        if delivery.answer is None or delivery.versions is None:
            self._elsewhere(task, delivery)
            return None
        self._placement.ended(task.job, delivery.answer.wall)
        asked.worker.versions = delivery.versions
        if written:
            Path(asked.order.job.output).write_bytes(written)
            if asked.order.job.task == "lower":
                self._cluster.snapshots[asked.order.job.output] = task.node, task.written
        return delivery.answer

    def _again(self, task: _Task, error: Exception) -> Answer | None:
        """Have a job done again whose node, or process, is gone."""
        asked = task.job.work
        if asked.lost + 1 < _TRIES:
            self._wait(_Wish(asked.worker, asked.order, asked.lost + 1))
            return None
        lines = str(error).strip().splitlines() or [type(error).__name__]
        failure = Failure("worker", "start", f"{_TRIES} times no node came to the end of it", lines[0])
        return Answer(None, failure, 0.0, 0.0, "")

    def _elsewhere(self, task: _Task, delivery: Delivery) -> None:
        toolchain = task.job.toolchain
        if (task.node, toolchain) not in self._unfit:
            print(f"tlcheck: node {delivery.host} does without {toolchain}: {delivery.unfit}", file=sys.stderr)
        self._unfit[task.node, toolchain] = delivery.unfit
        self._placement.cannot(task.node, toolchain)
        self._placement.add(task.job)

    def _interrupted(self) -> Iterator[tuple[Job, Answer]]:
        """Every job that has no answer, as interrupted."""
        jobs = [task.job for task in self._tasks.values()]
        jobs += self._placement.empty()
        self.__exit__()
        for job in jobs:
            yield job.work.order.job, Answer(None, interrupted("start"), 0.0, 0.0, "")


def _recipe(worker: Worker) -> Recipe:
    """How a node makes the toolchain. Raises UsageError for one that is no release."""
    made = environment.load(worker.python.parents[1])
    if made is None or made.recipe.tilelang != f"tilelang=={made.recipe.name}":
        raise UsageError(f"--cluster: nodes have releases only, and {worker.python} is none's interpreter")
    return made.recipe
