"""Describe what runs on a node: one actor, which does jobs and judges snapshots.

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
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from threading import Lock

import msgspec

from tlcheck.cluster.folder import unpacked
from tlcheck.cluster.paths import MachinePaths
from tlcheck.cluster.sharing import SharedWorker
from tlcheck.errors import UsageError
from tlcheck.execute.request import GivenInputs, Request
from tlcheck.toolchain import environment
from tlcheck.toolchain.environment import Environment, Recipe
from tlcheck.toolchain.install import install
from tlcheck.verdicts.judge import JudgingProcess
from tlcheck.worker.jobs import CaptureJob, DiscoverJob, InputsJob, Job, as_fields, output_of, read_job
from tlcheck.worker.protocol import Answer


@dataclass(frozen=True)
class Order:
    """Jobs that one process does one after the other. fork: see `Worker`.

    text: of the kernel file, where that is not in the user's folder.
    """

    jobs: tuple[Job, ...]
    recipe: Recipe
    fork: bool
    text: str = ""


@dataclass(frozen=True)
class Delivery:
    """A record of what became of an order, on which host. outputs: of each job; empty if it wrote nothing, or inputs
    that stay.

    unfit: why the node has no such toolchain; then there are no answers.
    """

    host: str
    answers: tuple[Answer, ...] = ()
    outputs: tuple[bytes, ...] = ()
    versions: Mapping[str, str] | None = None
    unfit: str = ""


class _NoReporter:
    """Tells nobody how far an install is."""

    def step(self, text: str) -> None:
        pass

    def detail(self, text: str) -> None:
        pass


@dataclass(frozen=True)
class Arrays:
    """The file of a case's own inputs: what is in it, or the order that makes it, where it stays on a node."""

    content: bytes = b""
    order: Order | None = None


class NoInputsError(Exception):
    """A node cannot make the inputs of a case, which another one has made."""


class JudgingDiedError(Exception):
    """A judging process died, with an exit code."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


_ANSWER = msgspec.json.Decoder(Answer)  # before there are threads: see `verdicts.kept`
_TRAVELLING = 1 << 23  # bytes of inputs, at most
_STAYING = 4  # files of inputs that are larger: hundreds of megabytes each
_KEPT = 2  # workers: each takes hundreds of megabytes


class Node:
    """Does jobs and judges; several threads may ask it at once. packed: the user's folder. asking: who asks."""

    def __init__(self, packed: bytes, asking: MachinePaths) -> None:
        folder = unpacked(packed)
        os.chdir(folder)  # as all that a command starts is in the user's folder
        self._here, self._asking = MachinePaths.here(folder), asking
        self._lock = Lock()  # of what is below
        self._workers: dict[Path, SharedWorker] = {}  # the one that was used last comes last
        self._judges: list[JudgingProcess] = []  # that have nothing to do
        self._staying = Path(tempfile.mkdtemp(prefix="tlcheck-"))
        self._numbers = count()  # of files there
        self._inputs: dict[str, Path] = {}  # that stay, the last ones, by what the asking calls their file

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
            jobs = [self._with_paths_here(job, folder) for job in order.jobs]
            if order.text:
                file = Path(folder) / "kernel.py"
                file.write_text(order.text, encoding="utf-8")
                jobs = [replace(job, file=str(file)) for job in jobs]
            texts = (msgspec.json.encode(answer) for answer in worker.answers(jobs))
            answers = tuple(_ANSWER.decode(self._here.translated(text, self._asking)) for text in texts)
            outputs = tuple(map(self._output, order.jobs, jobs))
        return Delivery(host, answers, outputs, worker.versions)

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

    def _with_paths_here(self, job: Job, folder: str) -> Job:
        """The job with its paths on this node. folder: for what it writes."""
        job = read_job(msgspec.json.decode(self._asking.translated(msgspec.json.encode(as_fields(job)), self._here)))
        if isinstance(job, CaptureJob):
            job = replace(job, interpreter=sys.executable)
        return job if isinstance(job, DiscoverJob) else replace(job, output=str(Path(folder) / Path(job.output).name))

    def _output(self, asked: Job, done: Job) -> bytes:
        """The file that a job wrote. Large inputs stay here: to send them twice takes longer than to make them."""
        file = Path(output_of(done))
        if not file.is_file():
            return b""
        if not isinstance(asked, InputsJob) or file.stat().st_size <= _TRAVELLING:
            return file.read_bytes()
        with self._lock:
            old = [asked.output] if asked.output in self._inputs else [*self._inputs][: -_STAYING + 1]
            for output in old:
                self._inputs.pop(output).unlink()
            self._inputs[asked.output] = file.rename(self._staying / str(next(self._numbers)))
        return b""

    def judge(self, snapshot: bytes, request: Request | None, inputs: GivenInputs | None, arrays: Arrays) -> bytes:
        """Judge a snapshot. Raises NoInputsError. See `JudgingProcess`."""
        with tempfile.TemporaryDirectory(prefix="tlcheck-") as folder:
            file = Path(folder) / "kernel.snapshot.json"
            file.write_bytes(snapshot)
            if inputs is not None:
                inputs = replace(inputs, file=str(self._file_of(arrays, Path(folder) / "inputs")))
            with self._lock:
                process = self._judges.pop() if self._judges else JudgingProcess()
            try:
                found = process.verdicts(file, request, inputs)
            except (EOFError, OSError):
                raise JudgingDiedError(process.end()) from None
        with self._lock:
            self._judges.append(process)
        return self._here.translated(found, self._asking)

    def _file_of(self, arrays: Arrays, file: Path) -> Path:
        """Put the inputs into a file: several kernels have the same. Raises NoInputsError where they have to be made
        again, and cannot.
        """
        if arrays.order is None:
            file.write_bytes(arrays.content)
            return file
        output = output_of(arrays.order.jobs[0])
        if not self._linked(output, file):
            self.do(arrays.order)
            if not self._linked(output, file):
                raise NoInputsError(output)
        return file

    def _linked(self, asked: str, file: Path) -> bool:
        """Give inputs that stay here another name, so that they may go meanwhile."""
        with self._lock:
            if asked in self._inputs:
                file.hardlink_to(self._inputs[asked])
            return asked in self._inputs
