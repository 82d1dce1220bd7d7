"""Lowers each kernel that a script compiles, and reports it at once: a script that crashes afterwards loses nothing.

Without a GPU each is lowered in a process of its own, so that one that crashes the compiler fails alone. With one it is
lowered here: the script itself compiles it as well, and a copy of a process that uses CUDA must not outlive a thread's
locks.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import sys
import tempfile
import threading
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, NoReturn

import torch
from tilelang import tvm

from tlcheck.snapshot import codec
from tlcheck.worker import failures, lowering, process_limits, snapshots
from tlcheck.worker.assumed_device import known_target
from tlcheck.worker.capture.refusals import Refusals
from tlcheck.worker.capture.script_calls import Call
from tlcheck.worker.jobs import CaptureJob
from tlcheck.worker.pass_configs import set_over
from tlcheck.worker.protocol import Failure
from tlcheck.worker.statement_lines import StatementLines

_STAMP = (1980, 1, 1, 0, 0, 0)  # equal content, equal file
_structural_hash = getattr(tvm.ir, "structural_hash", None)


@dataclass(frozen=True)
class RecordedKernel:
    """A kernel that was recorded. number: its snapshot's name in the zip file, empty if it has none. source: CUDA."""

    number: str = ""
    source: str = ""


class Recording:
    """The kernels of one script. `report` is told of each; their snapshots are in `job.output`, a zip file.

    told: what it was told of each. lock: held while the zip file is written.
    """

    def __init__(
        self, job: CaptureJob, lines: StatementLines, refusals: Refusals, report: Callable[[Mapping[str, Any]], None]
    ) -> None:
        self._named, self._lines, self._refusals, self._report = job.file, lines, refusals, report
        self._job = replace(job, file=str(Path(job.file).resolve()))  # the script may go to another folder
        self._folder = Path.cwd()
        Path(job.output).write_bytes(b"")  # written before it is read: else it would count as something that is read
        self._target = lowering.make_target(job.arch)
        self._process = os.getpid()
        self.told: list[Mapping[str, Any]] = []
        self._labels: set[str] = set()
        self._kernels: dict[Any, RecordedKernel] = {}
        self.lock = threading.RLock()  # tuners compile in several threads

    @property
    def count(self) -> int:
        """Kernels until now."""
        return len(self._kernels)

    def add(self, prim_func: Any, pass_configs: Mapping[str, Any], call: Call, kind: str) -> RecordedKernel:
        """Lower a kernel, unless it was there before.

        kind: of the target that the script wants, empty for the device's. Processes that the script forks record
        nothing. Raises what TileLang raises where the script expects that.
        """
        if os.getpid() != self._process:
            return RecordedKernel()
        kind = kind or known_target(self._job.arch).kind
        pass_configs = set_over(pass_configs, self._job.pass_configs)
        key = (kind, *_key(prim_func, pass_configs))
        with self.lock:
            if key not in self._kernels:
                self._kernels[key] = RecordedKernel()
                try:
                    self._kernels[key] = self._record(prim_func, pass_configs, call, kind)
                except BaseException:
                    del self._kernels[key]
                    raise
            return self._kernels[key]

    def _record(self, prim_func: Any, pass_configs: Mapping[str, Any], call: Call, kind: str) -> RecordedKernel:
        name = self._unique(call.label)
        own = Path(call.file).resolve() == Path(self._job.file)
        meta = {
            "case": name,
            "file": self._named if own or not call.file else call.file,
            "line": call.line,
            "args": dict(call.given),
        }
        kernel: dict[str, Any] = {"name": name, "args": meta["args"], "origin": call.origin(self._job.file)}
        wanted = known_target(self._job.arch).kind
        if kind != wanted:
            message = f"the script compiles it for {kind}, not for a {wanted.upper()} device"
            failure = Failure("target", "build", message)
            self._tell({**kernel, "failure": asdict(failure)})
            return RecordedKernel()
        beside = Path(self._job.output).parent  # who began this removes it, also where this process is killed
        with tempfile.TemporaryDirectory(prefix="tlcheck-capture-", dir=beside) as folder:
            output = Path(folder, "snapshot")
            run = _here if self._job.live else _apart
            with _in(self._folder):
                done = run(lambda: self._lower(prim_func, pass_configs, meta, output), self._job)
            if self._refusals.expected and done.get("failure", {}).get("kind") == "exception":
                self._refuse(prim_func, pass_configs, name, done["failure"]["message"])
            content = output.read_text(encoding="utf-8") if "failure" not in done else ""
        if content:
            kernel["snapshot"] = f"{self.count:04}"
            with zipfile.ZipFile(self._job.output, "a", zipfile.ZIP_DEFLATED) as archive:
                archive.writestr(zipfile.ZipInfo(kernel["snapshot"], _STAMP), content, zipfile.ZIP_DEFLATED)
        self._tell({**kernel, **done})
        return RecordedKernel(kernel["snapshot"], codec.loads(content).cuda) if content else RecordedKernel()

    def _tell(self, kernel: Mapping[str, Any]) -> None:
        self.told.append(kernel)
        self._report({"kernel": kernel})

    def _lower(
        self, prim_func: Any, configs: Mapping[str, Any], meta: Mapping[str, Any], output: Path
    ) -> dict[str, Any]:
        stamped = self._lines.stamp(prim_func)
        begun: list[tuple[str, float]] = []
        done = snapshots.lower(
            stamped, configs, self._target, self._job, meta, output, lambda p: begun.append((p, time.process_time()))
        )
        return {**done, "seconds": {phase: round(end - begin, 6) for (phase, begin), (_, end) in pairwise(begun)}}

    def _refuse(self, prim_func: Any, configs: Mapping[str, Any], name: str, message: str) -> NoReturn:
        """Raise what the script waits for, as TileLang raises it: in this process."""
        self._labels.discard(name)
        self._refusals.seen.append(name)
        try:
            with torch._C.DisableTorchFunction():
                lowering.lower(prim_func, configs, self._target, self._job.every_pass)
        except failures.PassError as error:
            raise (error.__cause__ or error) from None
        raise RuntimeError(message)

    def _unique(self, label: str) -> str:
        number, found = 1, label
        while found in self._labels:
            number += 1
            found = f"{label}-{number}"
        self._labels.add(found)
        return found


def _key(prim_func: Any, pass_configs: Mapping[str, Any]) -> tuple[Any, ...]:
    content = _structural_hash(prim_func, True) if _structural_hash else str(prim_func)
    return content, tuple(sorted((str(key), str(value)) for key, value in pass_configs.items()))


@contextmanager
def _in(folder: Path) -> Iterator[None]:
    """Change to the working folder from which the user has named the files."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def _here(work: Callable[[], Mapping[str, Any]], job: CaptureJob) -> dict[str, Any]:
    """Return what `work` returns, or `{"failure": ...}`."""
    gc.disable()  # a collection would go through all that tilelang and torch have imported
    try:
        return dict(work())
    except Exception as error:
        return {"failure": asdict(failures.from_exception(error, "lower", job.file))}
    finally:
        gc.enable()


def _apart(work: Callable[[], Mapping[str, Any]], job: CaptureJob) -> dict[str, Any]:
    """Return what `work` returns in a copy of this process, or `{"failure": ...}`."""
    sys.stdout.flush()
    sys.stderr.flush()
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        _work(work, job, writer)
    os.close(writer)
    with os.fdopen(reader, "rb") as stream:
        text = stream.read()
    status = os.waitpid(pid, 0)[1]
    return dict(json.loads(text)) if text else {"failure": asdict(_ended(status, job))}


def _work(work: Callable[[], Mapping[str, Any]], job: CaptureJob, writer: int) -> None:
    """Do the work in the copy; does not return."""
    gc.disable()
    try:
        process_limits.die_with_parent()
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        process_limits.limit_processor_time(job.timeout)
        try:
            with torch._C.DisableTorchFunction():
                done: Mapping[str, Any] = work()
        except BaseException as error:
            done = {"failure": asdict(failures.from_exception(error, "lower", job.file))}
        with os.fdopen(writer, "wb") as stream:
            stream.write(json.dumps(done).encode())
        with suppress(Exception):
            sys.stdout.flush()
    finally:
        os._exit(0)


def _ended(status: int, job: CaptureJob) -> Failure:
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        if number == signal.SIGXCPU:
            return Failure("timeout", "lower", f"no end after {job.timeout:g} s of processor time")
        return failures.from_signal(number, "lower", "", job.file)
    return failures.from_exit(os.waitstatus_to_exitcode(status), "lower", "")
