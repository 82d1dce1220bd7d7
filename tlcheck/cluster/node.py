"""What runs on a node: one actor, which does jobs and judges snapshots.

Ray calls it in as many threads as the node has processors. They share the workers, so that tilelang is imported once on
a node, whatever number of processors it has.
"""

from __future__ import annotations

import os
import socket
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from threading import Lock

import msgspec

from tlcheck.cluster.folder import unpacked
from tlcheck.cluster.sharing import SharedWorker
from tlcheck.errors import UsageError
from tlcheck.execute.given import GivenInputs
from tlcheck.execute.request import Request
from tlcheck.lower.scripts import pytest_folder
from tlcheck.toolchain import environment
from tlcheck.toolchain.environment import Environment, Recipe
from tlcheck.toolchain.install import install
from tlcheck.verdicts.judge import JudgingProcess
from tlcheck.worker.protocol import Answer, Job, read_job


@dataclass(frozen=True)
class Order:
    """Jobs that one process does one after the other.

    folder: the user's, whose files came along. fork: see `Worker`.
    """

    jobs: tuple[Job, ...]
    recipe: Recipe
    folder: str
    fork: bool


@dataclass(frozen=True)
class Delivery:
    """What became of an order, on which host, and what each job wrote, empty if nothing.

    unfit: why the node has no such toolchain; then there are no answers.
    """

    host: str
    answers: tuple[Answer, ...] = ()
    written: tuple[bytes, ...] = ()
    versions: Mapping[str, str] | None = None
    unfit: str = ""


class _NoReporter:
    """Tells nobody how far an install is."""

    def step(self, text: str) -> None:
        pass

    def detail(self, text: str) -> None:
        pass


class JudgingDiedError(Exception):
    """A judging process died, with an exit code."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


_ANSWER = msgspec.json.Decoder(Answer)  # before there are threads: see `verdicts.kept`
_KEPT = 2  # workers: each takes hundreds of megabytes


class Node:
    """Does jobs and judges; several threads may ask it at once. packed: the user's folder."""

    def __init__(self, packed: bytes) -> None:
        self._folder = str(unpacked(packed))
        os.chdir(self._folder)  # as all that a command starts is in the user's folder
        self._lock = Lock()  # of the two below
        self._workers: dict[Path, SharedWorker] = {}  # the one that was used last comes last
        self._judges: list[JudgingProcess] = []  # that have nothing to do

    def installed(self) -> tuple[str, ...]:
        """The toolchains that this node has."""
        found = (environment.load(folder) for folder in environment.folders())
        return tuple(made.recipe.name for made in found if made is not None)

    def do(self, order: Order) -> Delivery:
        """Do the jobs. Raises UsageError if tilelang cannot be imported."""
        host = socket.gethostname()
        try:
            made = environment.find(order.recipe) or install(order.recipe, _NoReporter())
        except UsageError as error:
            return Delivery(host, unfit=str(error))
        with tempfile.TemporaryDirectory(prefix="tlcheck-") as folder, self._worker(made, fork=order.fork) as worker:
            jobs = [_here(job, order.folder, self._folder, folder) for job in order.jobs]
            answers = tuple(_there(answer, self._folder, order.folder) for answer in worker.answers(jobs))
            written = tuple(_written(job) for job in jobs)
        return Delivery(host, answers, written, worker.versions)

    @contextmanager
    def _worker(self, made: Environment, *, fork: bool) -> Iterator[SharedWorker]:
        """A worker of a toolchain. Others that nobody uses end where there are too many."""
        with self._lock:
            worker = self._workers.pop(made.python, None)
            if worker is None or worker.broken:
                worker = SharedWorker(made, fork=fork)
            worker.users += 1
            self._workers[made.python] = worker
            unused = [python for python, other in self._workers.items() if not other.users]
            for python in unused[: max(0, len(self._workers) - _KEPT)]:
                self._workers.pop(python).close()
        try:
            yield worker
        finally:
            with self._lock:
                worker.users -= 1

    def judge(self, snapshot: bytes, request: Request | None, inputs: GivenInputs | None, arrays: bytes) -> bytes:
        """Judge a snapshot. arrays: the file of the inputs. See `JudgingProcess`."""
        with self._lock:
            process = self._judges.pop() if self._judges else JudgingProcess()
        with tempfile.TemporaryDirectory(prefix="tlcheck-") as folder:
            file = Path(folder) / "kernel.snapshot.json"
            file.write_bytes(snapshot)
            if inputs is not None:
                inputs = replace(inputs, file=str(Path(folder) / "inputs"))
                Path(inputs.file).write_bytes(arrays)
            try:
                found = process.verdicts(file, request, inputs)
            except (EOFError, OSError):
                raise JudgingDiedError(process.end()) from None
        with self._lock:
            self._judges.append(process)
        return found


def _here(job: Job, old: str, new: str, folder: str) -> Job:
    """The job with its paths on this node. folder: for what it writes."""
    job = read_job(msgspec.json.decode(msgspec.json.encode(asdict(job)).replace(old.encode(), new.encode())))
    if job.interpreter:
        job = replace(job, tools=pytest_folder(), interpreter=sys.executable)
    return replace(job, output=str(Path(folder) / Path(job.output).name) if job.output else "")


def _there(answer: Answer, old: str, new: str) -> Answer:
    """The answer with the paths of the machine that asked."""
    return _ANSWER.decode(msgspec.json.encode(answer).replace(old.encode(), new.encode()))


def _written(job: Job) -> bytes:
    return Path(job.output).read_bytes() if job.output and Path(job.output).exists() else b""
