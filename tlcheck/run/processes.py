"""Processes in the toolchain's interpreter, one for each task: several compile at a time, one uses the GPU.

Tasks without a GPU are done in copies of one process: importing torch and tilelang takes seconds.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tlcheck.lower.client import SETTINGS, tools
from tlcheck.toolchain.resolve import Toolchain
from tlcheck.worker import failures, protocol
from tlcheck.worker.gpu import task as tasks
from tlcheck.worker.gpu.task import CaseTask, GpuTask, Task
from tlcheck.worker.protocol import Failure

_MAIN = Path(protocol.__file__).with_name("__main__.py")
_LOG_BYTES = 64 * 1024
# What a fault on the device is called, by what torch, TVM and the driver say of it.
_FAULTS = {
    "misaligned address": re.compile(r"misaligned.?address", re.IGNORECASE),
    "illegal memory access": re.compile(r"illegal (memory )?a(ccess|ddress)|ILLEGAL_ADDRESS", re.IGNORECASE),
    "illegal instruction": re.compile(r"illegal.instruction", re.IGNORECASE),
    "out of memory": re.compile(r"out.of.memory", re.IGNORECASE),
    "device-side assertion": re.compile(r"device-side assert|cudaErrorAssert", re.IGNORECASE),
    "wrong address space": re.compile(r"not supported on (global|shared|local)|INVALID_ADDRESS_SPACE", re.IGNORECASE),
    "launch failure": re.compile(r"unspecified launch failure|LAUNCH_FAILED", re.IGNORECASE),
}


_ADVICE = re.compile(r"Compile with `TORCH_USE_CUDA_DSA`.*")  # names a fault that it is not


@dataclass(frozen=True)
class EndedProcess:
    """A task that has ended. content: its answer as far as it got. fault: what the device reported, in its name."""

    task: Task
    content: Mapping[str, Any]
    failure: Failure | None = None
    fault: str = ""
    output: str = ""


Prefix = Callable[[Task], Sequence[str]]


def _no_prefix(task: Task) -> Sequence[str]:
    return ()


@dataclass
class Pool:
    """Runs tasks with one toolchain. parallel: processes at a time. variables: of their environment."""

    toolchain: Toolchain
    parallel: int
    folder: Path
    variables: Mapping[str, str] = field(default_factory=dict)
    _running: set[int] = field(default_factory=set)

    def run(self, given: Iterable[Task], prefix: Prefix = _no_prefix) -> Iterator[EndedProcess]:
        """Run each task; they end in any order. prefix: the command around the interpreter for a task."""
        executor = ThreadPoolExecutor(self.parallel)
        waiting: list[Future[EndedProcess]] = [executor.submit(self._run, task, prefix) for task in given]
        try:
            for future in as_completed(waiting):
                yield future.result()
        finally:
            executor.shutdown(wait=False, cancel_futures=True)
            for pid in list(self._running):
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(pid, signal.SIGKILL)

    def _run(self, task: Task, prefix: Prefix) -> EndedProcess:
        with tempfile.TemporaryDirectory(dir=self.folder, ignore_cleanup_errors=True) as scratch:
            file, log = Path(scratch) / "task.json", Path(scratch) / "log"
            tasks.write(task, file)
            command = [*prefix(task), str(self.toolchain.python), str(_MAIN), "--run", str(file)]
            with log.open("wb") as output:
                process = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    env={**_environment(self.toolchain, scratch), **self.variables},
                    start_new_session=True,
                )
                self._running.add(process.pid)
                code = process.wait()
                self._running.discard(process.pid)
            return _done(task, code, log.read_bytes()[-_LOG_BYTES:].decode(errors="replace"))


class CopiedProcess:
    """Does tasks that need no GPU, one after the other, each in a copy of a process that has imported tilelang."""

    def __init__(self, toolchain: Toolchain) -> None:
        self.command = [str(toolchain.python), str(_MAIN), "--run-copies"]
        self._scratch = tempfile.TemporaryDirectory(prefix="tlcheck-run-", ignore_cleanup_errors=True)
        self._variables = _environment(toolchain, self._scratch.name)
        self._process: subprocess.Popen[str] | None = None

    def run(self, task: Task) -> EndedProcess:
        """Do a task; the first one starts the process."""
        if self._process is None:
            self._process = subprocess.Popen(
                self.command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=self._variables,
                text=True,
                start_new_session=True,
            )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        file, log = (Path(self._scratch.name) / name for name in ("task.json", "log"))
        tasks.write(task, file)
        with suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps([str(file), str(log)]) + "\n")
            self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:  # it has ended instead
            code, self._process = self._process.wait(), None
            return _done(task, code, "")
        return _done(task, int(answer), log.read_bytes()[-_LOG_BYTES:].decode(errors="replace"))

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.communicate()
        self._scratch.cleanup()


def _environment(toolchain: Toolchain, scratch: str) -> dict[str, str]:
    own = {"TILELANG_CACHE_DIR": scratch, "TILELANG_TMP_DIR": scratch, "TMPDIR": scratch}
    return {**os.environ, **SETTINGS, **tools(), **own, **toolchain.env}


def _done(task: Task, code: int, output: str) -> EndedProcess:
    """Return what a process left, after it ended with this code."""
    try:
        content = json.loads(Path(task.output).read_text())
    except (OSError, ValueError):
        content = {"phase": "start"}
    failure = _failure(task, content, code, output)
    return EndedProcess(task, content, failure, fault(failure) if failure else "", output)


def _failure(task: Task, content: Mapping[str, Any], code: int, output: str) -> Failure | None:
    phase = content["phase"]
    if found := content.get("failure"):
        return Failure(**found)
    if code == -signal.SIGALRM and isinstance(task, GpuTask):
        return Failure("timeout", phase, f"no end after {task.limit:g} s on the GPU")
    if code == -signal.SIGXCPU and isinstance(task, CaseTask):
        return Failure("timeout", phase, f"no end after {task.processor:g} s of the processor")
    if code < 0:
        file = str(Path(task.file).resolve()) if isinstance(task, CaseTask) else ""
        return failures.from_signal(-code, phase, output, file)
    return None if phase == "done" else failures.from_exit(code, phase, output)


def fault(failure: Failure) -> str:
    """Return what the device did, in its own name; empty where it is not the device that failed."""
    said = _ADVICE.sub("", f"{failure.message}\n{failure.detail}")
    return next((name for name, pattern in _FAULTS.items() if pattern.search(said)), "")
