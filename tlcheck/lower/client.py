"""The controller's end of a worker: starts it in a toolchain's interpreter, gives it jobs, takes the answers.

Every job is answered, whatever happens to it: one that crashes, hangs or is killed has a `failure` instead of what it
should have made, and the others go on. `tlcheck.lower.executor` runs workers of several toolchains at once.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from tlcheck.case import Expect
from tlcheck.errors import UsageError
from tlcheck.lower.warm import WarmProcesses
from tlcheck.worker import borrowed, failures, protocol
from tlcheck.worker.dependencies import OWN_VARIABLES
from tlcheck.worker.jobs import Job, as_fields
from tlcheck.worker.protocol import Answer, Failure

_MAIN = Path(protocol.__file__).with_name("__main__.py")
_CHUNK = 64 * 1024
# A lowering takes and frees some 60 MB again and again. glibc would give them back to the system each time.
ALLOCATOR = {"MALLOC_TRIM_THRESHOLD_": str(2**28), "MALLOC_MMAP_THRESHOLD_": str(2**28)}
START_SECONDS = 300.0  # the first import of a fresh installation compiles bytecode and may be on a slow disk
_END_SECONDS = 5.0
# What would make lowering slow, talkative or write files; and a seed, so that sets have one order in all processes.
_UNWANTED = ("TL_LOWER_TRACE", "TILELANG_PASS_DIFF", "TILELANG_PASS_PROFILE", "TILELANG_DEFAULT_TARGET")
SETTINGS = {
    "PYTHONHASHSEED": "0",
    "TILELANG_DISABLE_CACHE": "1",
    "TILELANG_PRINT_ON_COMPILATION": "0",
    "TILELANG_ENABLE_IR_SPAN": "1",
    "TVM_FFI_DISABLE_TORCH_C_DLPACK": "1",  # else tvm_ffi compiles an extension for half a minute at its first import
}


@dataclass(frozen=True)
class DeclaredCase:
    """A case as its file declares it. args: as text, for people; targets: archs. inputs, reference: whether it has its
    own. numbers: build arguments that are whole numbers by default.
    """

    name: str
    args: Mapping[str, str]
    targets: tuple[str, ...]
    expects: tuple[Expect, ...]
    inputs: bool = False
    reference: bool = False
    numbers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Discovered:
    """A record of what a kernel file has. cases: all declared ones, or for a job with a name that one (a kernel becomes
    a case).

    kernels: names of its JIT functions and PrimFuncs.
    """

    job: Job
    cases: tuple[DeclaredCase, ...] = ()
    kernels: tuple[str, ...] = ()
    failure: Failure | None = None
    output_tail: str = ""


@dataclass(frozen=True)
class _IdleWorker:
    """A worker's process that has imported tilelang and runs no job."""

    process: subprocess.Popen[bytes]
    scratch: tempfile.TemporaryDirectory[str]
    versions: Mapping[str, str]

    @property
    def is_alive(self) -> bool:
        return self.process.poll() is None

    def kill(self) -> None:
        _end(self.process)
        self.scratch.cleanup()


@dataclass(frozen=True)
class TestNews:
    """A test of a test file begins. all, left: how many tests there are, and are not done. kernels: captured so far."""

    __test__ = False  # no test class, for pytest

    test: str
    all: int
    left: int
    kernels: int

    @property
    def words(self) -> str:
        """`test 3 of 24 (test_gemm[64]), 5 kernels so far`."""
        kernels = f"{self.kernels} kernel{'s' * (self.kernels != 1)} so far"
        return f"test {self.all - self.left + 1} of {self.all} ({self.test}), {kernels}"


class Worker:
    """A worker process, started anew if it ends.

    python, env: the toolchain's interpreter, and what to add to the environment variables.
    fork: import tilelang once and run jobs in copies of that process; else in fresh ones.
    warm: where an idle process is taken from, and left. tells: is told which test of a test file runs.
    """

    def __init__(
        self,
        python: Path,
        env: Mapping[str, str],
        *,
        fork: bool = True,
        warm: WarmProcesses | None = None,
        tells: Callable[[Job, TestNews], None] = lambda job, news: None,
    ) -> None:
        self.python = python
        self._command = [str(python), str(_MAIN), *([] if fork else ["--no-fork"])]
        self._env = env
        self.fork = fork
        self._warm = warm
        self._tells = tells
        self._unread = b""
        self.running: dict[int, Job] = {}
        self.versions: Mapping[str, str] = {}  # empty until tilelang is imported

    def start(self) -> None:
        """Start the process without waiting for it; whoever does also calls `close`."""
        idle = self._warm.take(self._likeness) if self._warm is not None else None
        if isinstance(idle, _IdleWorker):
            self._process, self._scratch, self.versions = idle.process, idle.scratch, idle.versions
            return
        self._scratch = tempfile.TemporaryDirectory(prefix="tlcheck-worker-", ignore_cleanup_errors=True)
        try:
            self._start()
        except BaseException:
            self._scratch.cleanup()
            raise

    def close(self) -> None:
        """End the process and what it runs; one without a job may be kept for others."""
        if self._warm is not None and self.versions and not self.running and self._process.poll() is None:
            self.stop()  # copies that have imported a file, which may be another one by then
            self._warm.keep(self._likeness, _IdleWorker(self._process, self._scratch, self.versions))
            return
        self._stop()
        self._scratch.cleanup()

    def fileno(self) -> int:
        """Becomes readable when `receive` has something to take."""
        assert self._process.stdout is not None
        return self._process.stdout.fileno()

    def send(self, job: Job, *, more: bool = False) -> None:
        """Give it a job; one that has not yet imported tilelang begins when it has.

        more: it shares a process with the next job, which differs only in the kernel; else it has one of its own.
        """
        self.running[job.number] = job
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # a worker that has ended is noticed where its answer is awaited
            self._process.stdin.write(protocol.encode({"id": job.number, "job": as_fields(job), "more": more}))
            self._process.stdin.flush()

    def stop(self) -> None:
        """End what runs, which is answered with what it has come to."""
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            self._process.stdin.write(protocol.encode({"stop": True}))
            self._process.stdin.flush()

    def receive(self) -> list[tuple[Job, Answer]]:
        """The answers that are there, at least a part of one awaited. Raises UsageError if it cannot import tilelang.

        The jobs of a worker that has ended fail; it is started anew.
        """
        chunk = os.read(self.fileno(), _CHUNK)
        *lines, self._unread = (self._unread + chunk).split(b"\n")
        answers = [answer for line in lines for answer in self._read(json.loads(line))]
        return answers if chunk else answers + self._restart()

    def answer(self, job: Job) -> Answer:
        """Give it a job, and wait for the answer. Raises UsageError if it cannot import tilelang."""
        self.send(job)
        while not (answers := self.receive()):
            pass
        return answers[0][1]

    def _read(self, message: dict[str, Any]) -> Iterator[tuple[Job, Answer]]:
        if "ready" in message:
            self.versions = message["ready"]
        elif "failed" in message:
            raise UsageError(f"{self._command[0]}: cannot import tilelang: {message['failed']['message']}")
        elif "news" in message:
            if message["id"] in self.running:
                self._tells(self.running[message["id"]], msgspec.convert(message["news"], TestNews))
        elif message["id"] in self.running:
            yield self.running.pop(message["id"]), msgspec.convert(message["answer"], Answer)

    def _start(self) -> None:
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env={**environment(self._env), **dict.fromkeys(OWN_VARIABLES, self._scratch.name)},
                start_new_session=True,  # Ctrl-C comes to the controller alone, which then ends the worker
            )

    def too_slow(self) -> UsageError:
        """Return the error that importing tilelang took too long."""
        return UsageError(f"{self._command[0]}: importing tilelang did not end in {START_SECONDS:g} s")

    def _stop(self) -> None:
        if not self.versions:  # it imports tilelang, hears nothing meanwhile, and has nothing to put away
            self._process.kill()
        _end(self._process)

    @property
    def _likeness(self) -> tuple[object, ...]:
        """A key that processes which do the same share."""
        return (*self._command, frozenset(self._env.items()))

    def _restart(self) -> list[tuple[Job, Answer]]:
        """Start anew, and fail what ran. Raises UsageError if the worker ended before it had imported tilelang."""
        code = self._process.wait()
        if not self.versions:
            raise UsageError(f"{self._command[0]}: cannot import tilelang: {self._last_words()}")
        failure = Failure("worker", "start", f"the worker ended with code {code} while this ran", self._last_words())
        failed = [(job, Answer(None, failure, 0.0, 0.0, "")) for job in self.running.values()]
        self.running.clear()
        self._stop()
        self._unread = b""
        self._start()
        return failed

    def _last_words(self) -> str:
        text = self._log.read_bytes()[-protocol.OUTPUT_TAIL :].decode(errors="replace")
        return "\n".join(failures.last_lines(text)) or "it said nothing"

    @property
    def _log(self) -> Path:
        return Path(self._scratch.name) / "worker.log"


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a worker's process, and wait for it."""
    assert process.stdin is not None
    with suppress(BrokenPipeError):
        process.stdin.close()
    try:
        process.wait(_END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    assert process.stdout is not None
    process.stdout.close()


def environment(env: Mapping[str, str]) -> dict[str, str]:
    """The environment variables of a worker, without those that are others in each run. env: the toolchain's."""
    kept = {key: value for key, value in os.environ.items() if key not in _UNWANTED}
    return {**kept, **SETTINGS, **ALLOCATOR, **tools(), **env}


def tools() -> dict[str, str]:
    """Return the variable that says where this environment has pytest."""
    spec = importlib.util.find_spec("pytest")
    return {borrowed.VARIABLE: str(Path(spec.origin).parents[1]) if spec is not None and spec.origin else ""}


def processors() -> int:
    """The processors that this process may use."""
    return len(os.sched_getaffinity(0))


def discovered(job: Job, answer: Answer) -> Discovered:
    """Return what the answer to a `discover` job says."""
    result = answer.result or {}
    cases = msgspec.convert(result.get("cases", ()), tuple[DeclaredCase, ...])
    return Discovered(job, cases, tuple(result.get("kernels", ())), answer.failure, answer.output)
