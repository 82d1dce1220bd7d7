"""What runs on a node: a job, by a worker of its toolchain, and the judging of a snapshot.

Ray keeps its processes, one for each processor, for later tasks, and a process keeps its workers: each imports tilelang
once.
"""

from __future__ import annotations

import select
import socket
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import msgspec

from tlcheck.errors import UsageError
from tlcheck.execute.given import GivenInputs
from tlcheck.execute.request import Request
from tlcheck.lower.client import START_SECONDS, Worker
from tlcheck.lower.scripts import pytest_folder
from tlcheck.toolchain import environment
from tlcheck.toolchain.environment import Environment, Recipe
from tlcheck.toolchain.install import install
from tlcheck.verdicts.judge import JudgingProcess
from tlcheck.worker.protocol import Answer, Job, read_job


@dataclass(frozen=True)
class Order:
    """A job for a node. folder: the user's, whose files came along. fork: see `Worker`."""

    job: Job
    recipe: Recipe
    folder: str
    fork: bool


@dataclass(frozen=True)
class Delivery:
    """What became of an order, on which host. unfit: why it has no such toolchain; then there is no answer."""

    host: str
    answer: Answer | None = None
    versions: Mapping[str, str] | None = None
    unfit: str = ""


class _NoReporter:
    """Tells nobody how far an install is."""

    def step(self, text: str) -> None:
        pass

    def detail(self, text: str) -> None:
        pass


_KEPT = 2  # workers of a process: each takes hundreds of megabytes
_workers: dict[Path, Worker] = {}  # the one that was used last comes last
_judges: list[JudgingProcess] = []


def installed() -> tuple[str, ...]:
    """The toolchains that this node has."""
    found = (environment.load(folder) for folder in environment.folders())
    return tuple(made.recipe.name for made in found if made is not None)


def do(order: Order) -> tuple[Delivery, bytes]:
    """Do a job; with it comes what it wrote, empty if nothing. Raises UsageError if tilelang cannot be imported."""
    try:
        made = environment.find(order.recipe) or install(order.recipe, _NoReporter())
    except UsageError as error:
        return Delivery(socket.gethostname(), unfit=str(error)), b""
    here = str(Path.cwd())
    with tempfile.TemporaryDirectory(prefix="tlcheck-") as folder:
        job = _moved(order.job, order.folder, here)
        if job.interpreter:
            job = replace(job, tools=pytest_folder(), interpreter=sys.executable)
        output = Path(folder) / Path(order.job.output).name if order.job.output else None
        worker = _worker(made, fork=order.fork)
        answer = _answer(worker, replace(job, output=str(output or "")))
        written = output.read_bytes() if output is not None and output.exists() else b""
    answer = msgspec.json.decode(msgspec.json.encode(answer).replace(here.encode(), order.folder.encode()), type=Answer)
    return Delivery(socket.gethostname(), answer, worker.versions), written


def _moved(job: Job, old: str, new: str) -> Job:
    """The job with its paths in another folder."""
    return read_job(msgspec.json.decode(msgspec.json.encode(asdict(job)).replace(old.encode(), new.encode())))


def _worker(made: Environment, *, fork: bool) -> Worker:
    worker = _workers.pop(made.python, None)
    if worker is None:
        worker = Worker(made.python, made.worker_env(), fork=fork)
        worker.start()
    _workers[made.python] = worker
    while len(_workers) > _KEPT:
        _workers.pop(next(iter(_workers))).close()
    return worker


def _answer(worker: Worker, job: Job) -> Answer:
    """Raises UsageError for a worker that cannot import tilelang, or takes too long."""
    worker.send(job)
    while True:
        if not select.select([worker], [], [], None if worker.versions else START_SECONDS)[0]:
            raise worker.too_slow()
        for _, answer in worker.receive():
            return answer


def judge(snapshot: bytes, request: Request | None, inputs: GivenInputs | None, arrays: bytes) -> bytes:
    """Judge a snapshot. arrays: the file of the inputs. See `JudgingProcess`."""
    if not _judges:
        _judges.append(JudgingProcess())
    with tempfile.TemporaryDirectory(prefix="tlcheck-") as folder:
        file = Path(folder) / "kernel.snapshot.json"
        file.write_bytes(snapshot)
        if inputs is not None:
            inputs = replace(inputs, file=str(Path(folder) / "inputs"))
            Path(inputs.file).write_bytes(arrays)
        try:
            return _judges[0].verdicts(file, request, inputs)
        except (EOFError, OSError):
            raise JudgingDiedError(_judges.pop().end()) from None


class JudgingDiedError(Exception):
    """A judging process died, with an exit code."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code
