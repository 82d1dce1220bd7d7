"""The controller's end of a worker: start it in a toolchain's interpreter, give it jobs, take the answers.

    with Worker(toolchain.python, toolchain.env) as worker:
        for found in worker.discover([Job("discover", "kernels.py")]): ...
        for result in worker.lower(jobs): ...

Both yield in order of completion, one result for each job whatever happens to it: a job that crashes, hangs or is
killed has a `failure` instead of what it should have made, and the others go on. Leaving the context, also by Ctrl-C,
ends the worker and every process that it started.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import tempfile
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

from tlcheck.case import Expect
from tlcheck.errors import UsageError
from tlcheck.worker import failures, protocol
from tlcheck.worker.protocol import Answer, Failure, Job

__all__ = ["DeclaredCase", "Discovered", "Failure", "Job", "LowerResult", "Worker"]

_MAIN = Path(protocol.__file__).with_name("__main__.py")
_START_SECONDS = 300.0  # the first import of a fresh installation compiles bytecode and may be on a slow disk
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
    """A case as its file declares it. args: as text, for people; targets: archs."""

    name: str
    args: Mapping[str, str]
    targets: tuple[str, ...]
    expects: tuple[Expect, ...]


@dataclass(frozen=True)
class Discovered:
    """What a kernel file has. cases: all declared ones, or for a job with a name that one (a kernel becomes a case).

    kernels: names of its JIT functions and PrimFuncs.
    """

    job: Job
    cases: tuple[DeclaredCase, ...] = ()
    kernels: tuple[str, ...] = ()
    failure: Failure | None = None
    output_tail: str = ""


@dataclass(frozen=True)
class LowerResult:
    """One kernel lowered for one arch: `snapshot` is the file written, or `failure` says why there is none.

    checkpoints: name -> pass. unsaved: checkpoint -> why TVM could not save it. phase_seconds: processor seconds of
    `import`, `build`, `lower`, `extract`. output_tail: the end of what the kernel file printed.
    """

    job: Job
    snapshot: Path | None = None
    checkpoints: Mapping[str, str] = field(default_factory=dict)
    unsaved: Mapping[str, str] = field(default_factory=dict)
    phase_seconds: Mapping[str, float] = field(default_factory=dict)
    failure: Failure | None = None
    cpu_seconds: float = 0.0
    wall_seconds: float = 0.0
    output_tail: str = ""


class Worker:
    """A worker process, started anew if it ends. Raises UsageError where the toolchain cannot import tilelang.

    python, env: the toolchain's interpreter, and what to add to the environment variables.
    parallel: jobs at a time, by default the processors that this process may use.
    fork: import tilelang once and run jobs in copies of that process; else in fresh ones.
    """

    def __init__(self, python: Path, env: Mapping[str, str], *, parallel: int | None = None, fork: bool = True) -> None:
        self._command = [str(python), str(_MAIN), *([] if fork else ["--no-fork"])]
        self._env = env
        self._parallel = parallel or len(os.sched_getaffinity(0))
        self._sent = 0
        self.versions: Mapping[str, str] = {}

    def __enter__(self) -> Worker:
        self._scratch = tempfile.TemporaryDirectory(prefix="tlcheck-worker-", ignore_cleanup_errors=True)
        try:
            self._start()
        except BaseException:
            self._scratch.cleanup()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()
        self._scratch.cleanup()

    def discover(self, jobs: Iterable[Job]) -> Iterator[Discovered]:
        """Import kernel files and report their cases."""
        for job, answer in self._run(jobs):
            result = answer.result or {}
            cases = tuple(_declared(fields) for fields in result.get("cases", ()))
            yield Discovered(job, cases, tuple(result.get("kernels", ())), answer.failure, answer.output)

    def lower(self, jobs: Iterable[Job]) -> Iterator[LowerResult]:
        """Lower kernels and write their snapshots."""
        for job, answer in self._run(jobs):
            result = answer.result or {}
            yield LowerResult(
                job,
                Path(job.output) if answer.result is not None else None,
                result.get("checkpoints", {}),
                result.get("unsaved", {}),
                result.get("seconds", {}),
                answer.failure,
                answer.cpu,
                answer.wall,
                answer.output,
            )

    def _run(self, jobs: Iterable[Job]) -> Iterator[tuple[Job, Answer]]:
        waiting = deque(jobs)
        running: dict[int, Job] = {}
        while waiting or running:
            while waiting and len(running) < self._parallel:
                job = waiting.popleft()
                running[self._send(job)] = job
            message = self._receive()
            if message is None:
                yield from [(job, self._died()) for job in running.values()]
                running.clear()
                self._restart()
            elif message["id"] in running:
                yield running.pop(message["id"]), protocol.read_answer(message["answer"])

    def _send(self, job: Job) -> int:
        self._sent += 1
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # a worker that has ended is noticed where its answer is awaited
            self._process.stdin.write(protocol.encode({"id": self._sent, "job": asdict(job)}))
            self._process.stdin.flush()
        return self._sent

    def _receive(self) -> dict[str, Any] | None:
        """The next message; None when the worker has ended."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        return dict(json.loads(line)) if line.endswith(b"\n") else None

    def _start(self) -> None:
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=self._environment(),
                start_new_session=True,  # Ctrl-C comes to the controller alone, which then ends the worker
            )
        try:
            self._greet()
        except BaseException:
            self._stop()
            raise

    def _greet(self) -> None:
        """Wait for the worker's hello. Raises UsageError if it has none."""
        assert self._process.stdout is not None
        if not select.select([self._process.stdout], [], [], _START_SECONDS)[0]:
            raise UsageError(f"{self._command[0]}: importing tilelang did not end in {_START_SECONDS:g} s")
        hello = self._receive()
        if hello is None:
            raise UsageError(f"{self._command[0]}: cannot import tilelang: {self._last_words()}")
        if "failed" in hello:
            raise UsageError(f"{self._command[0]}: cannot import tilelang: {hello['failed']['message']}")
        self.versions = hello["ready"]

    def _stop(self) -> None:
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            self._process.stdin.close()
        try:
            self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()

    def _restart(self) -> None:
        self._stop()
        self._start()

    def _died(self) -> Answer:
        code = self._process.wait()
        message = f"the worker ended with code {code} while this ran"
        return Answer(None, Failure("worker", "start", message, self._last_words()), 0.0, 0.0, "")

    def _last_words(self) -> str:
        text = self._log.read_bytes()[-protocol.OUTPUT_TAIL :].decode(errors="replace")
        return "\n".join(failures.last_lines(text)) or "it said nothing"

    @property
    def _log(self) -> Path:
        return Path(self._scratch.name) / "worker.log"

    def _environment(self) -> dict[str, str]:
        kept = {key: value for key, value in os.environ.items() if key not in _UNWANTED}
        scratch = {"TILELANG_CACHE_DIR": self._scratch.name, "TILELANG_TMP_DIR": self._scratch.name}
        return {**kept, **SETTINGS, **scratch, **self._env}


def _declared(fields: Mapping[str, Any]) -> DeclaredCase:
    expects = tuple(Expect(**{**expect, "targets": tuple(expect["targets"])}) for expect in fields["expects"])
    return DeclaredCase(fields["name"], fields["args"], tuple(fields["targets"]), expects)
