"""Processes that run jobs: how they start, what of their output is kept, how they end."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from resource import struct_rusage
from typing import Any

from tlcheck.worker import failures, process_limits, protocol, tasks
from tlcheck.worker.dependencies import Dependencies
from tlcheck.worker.jobs import DiscoverJob, Job, LowerJob, as_fields, kind_of
from tlcheck.worker.protocol import OUTPUT_TAIL, Answer, Failure

_BACKSTOP = 10  # wall seconds for each processor second of a job's timeout
_CHUNK = 64 * 1024  # what a pipe holds
_MOST = 100  # jobs of one process: a kernel leaves something behind
_OF_AN_IMPORT = ("file", "args", "arch", "pythonpath", "timeout")  # fields of a job that it depends on
_LEFT, _KERNEL = b'{"left":', b'{"kernel":'  # how lines of a script begin: a test starts, a kernel was captured
_REPORT = 2**24  # bytes that a job may report: the cases of a large file


class OutputStream:
    """The reading end of a pipe, and the last bytes that came through it."""

    def __init__(self, descriptor: int, keep: int) -> None:
        os.set_blocking(descriptor, False)
        self.descriptor = descriptor
        self._keep = keep
        self._data = bytearray()

    def pull(self) -> bool:
        """Read what is there, at most one chunk; False at the end of the stream."""
        try:
            chunk = os.read(self.descriptor, _CHUNK)
        except BlockingIOError:
            return True
        self._data += chunk
        if len(self._data) > 2 * self._keep:
            del self._data[: -self._keep]
        return bool(chunk)

    def text(self) -> str:
        """Return what was kept."""
        return bytes(self._data[-self._keep :]).decode(errors="replace")

    def last(self, beginning: bytes) -> str:
        """The last complete line that begins so; empty if there is none."""
        start = self._data.rfind(b"\n" + beginning) + 1 or (0 if self._data.startswith(beginning) else -1)
        end = self._data.find(b"\n", start) if start >= 0 else -1
        return bytes(self._data[start:end]).decode(errors="replace") if end >= 0 else ""

    def count(self, beginning: bytes) -> int:
        """Return how many lines begin so."""
        return self._data.count(b"\n" + beginning) + self._data.startswith(beginning)

    def take(self) -> str:
        """The complete lines that came since they were taken last."""
        end = self._data.rfind(b"\n") + 1
        taken = bytes(self._data[:end])
        del self._data[:end]
        return taken.decode(errors="replace")

    def close(self) -> str:
        """Return what was kept, with what is still in the pipe."""
        self.pull()
        os.close(self.descriptor)
        return self.text()


Numbered = tuple[int, Job]
FileStamp = tuple[int, int, int] | None  # when and where a file was written, and its size; None for no file


@dataclass
class Child:
    """A running process. `output` is what it prints, `lines` what it reports (see `tlcheck.worker.tasks`).

    orders: where a process that has imported a file is told which of its kernels to lower next; None once it is to end,
    and for others. before: how many jobs it did before these, after which a failure may hang on them. imported: the
    file as it was when the process began. read: what else it has read, as far as that is known.
    """

    work: Sequence[Numbered]
    pid: int
    output: OutputStream
    lines: OutputStream
    orders: int | None
    started: float = field(default_factory=time.monotonic)
    late: bool = False
    stopped: bool = False
    before: int = 0
    answered: int = 0  # jobs, before it has ended
    told: str = ""  # the last line that was news
    unread: list[dict[str, Any]] = field(default_factory=list)  # messages of the job after those, until it ends
    imported: FileStamp = None
    read: Dependencies | None = None
    began: int = field(default_factory=time.time_ns)

    @property
    def job(self) -> Job:
        """The first; several are alike but for the kernel."""
        return self.work[0][1]

    @property
    def deadline(self) -> float:
        return self.started + _BACKSTOP * self.job.timeout

    @property
    def waits(self) -> bool:
        """Whether it has done what it was told, and can be told more."""
        return self.orders is not None and self.answered == len(self.work) and not self.stopped

    def can_go_on_with(self, job: Job) -> bool:
        """Whether it waits, and has imported the file as lowering this kernel would: nobody has edited it since."""
        first = self.job
        if not self.waits or not isinstance(job, LowerJob) or self.before + len(self.work) >= _MOST:
            return False
        if self.imported != _stamp(job.file) or any(map(self._is_newer, self.read.files if self.read else ())):
            return False
        if isinstance(first, LowerJob):
            return kind_of(first) == kind_of(job)
        return all(getattr(first, name) == getattr(job, name) for name in _OF_AN_IMPORT)

    def _is_newer(self, file: str) -> bool:
        """Whether a file that it has read was written since it answered: timestamps lag behind the clock by less than
        an answer takes. What was written before that is in no `Dependencies`.
        """
        with suppress(OSError):
            return Path(file).stat().st_ctime_ns >= self.began
        return False

    def go_on(self, work: Sequence[Numbered]) -> None:
        """Have it do this, and wait again."""
        assert self.orders is not None
        self.before += sum(isinstance(job, LowerJob) for _, job in self.work)
        self.work, self.answered, self.started = work, 0, time.monotonic()
        with suppress(BrokenPipeError), os.fdopen(self.orders, "w", closefd=False) as orders:
            orders.write(json.dumps([as_fields(job) for _, job in work]) + "\n")

    def dismiss(self) -> None:
        """Have it end."""
        if self.orders is not None:
            os.close(self.orders)
            self.orders = None

    def kill(self) -> None:
        """End its whole process group: a kernel file may have started processes of its own."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)

    def news(self) -> Mapping[str, Any] | None:
        """Return which test of a test file runs, and how many kernels were captured; None where that is as it was."""
        line = self.lines.last(_LEFT)
        if not line or line == self.told:
            return None
        self.told = line
        return {**json.loads(line), "kernels": self.lines.count(_KERNEL)}

    def finished(self) -> list[tuple[int, Answer]]:
        """Return what jobs came to whose process goes on."""
        if len(self.work) == 1 and self.orders is None:
            return []
        self.output.pull()
        return self._results(self.output.text(), self.lines.take())

    def answers(self, status: int, usage: struct_rusage) -> tuple[list[tuple[int, Answer]], list[Sequence[Numbered]]]:
        """Return what the other jobs came to, and what is to be done again: the process has ended and been waited for.

        Of several jobs only results count. The first without one is done again alone, so that what is said of it
        depends on no other kernel, unless it was the first of its process; then those after it.
        """
        self.kill()
        self.dismiss()
        output, text = self.output.close(), self.lines.close()
        if self.answered == len(self.work):
            return [], []
        if len(self.work) == 1 and not self.before:
            return [(self.work[0][0], self._answer(output, [*self.unread, *_parse(text)], status, usage))], []
        answers = self._results(output, text)
        rest = self.work[self.answered :]
        if self.stopped:
            ended = Answer(None, protocol.interrupted("lower"), 0.0, 0.0, "")
            return [*answers, *((number, ended) for number, _ in rest)], []
        if not self.answered and not self.before:
            answers, rest = [(rest[0][0], self._answer(output, self.unread, status, usage))], rest[1:]
            return answers, [rest] if rest else []
        return answers, [again for again in (rest[:1], rest[1:]) if again]

    def _results(self, output: str, text: str) -> list[tuple[int, Answer]]:
        """Yield the results of several jobs that were not answered yet. text: what came since."""
        # the messages of each job that has come to its end, then those after them
        parts: list[list[dict[str, Any]]] = [[]]
        for message in [*self.unread, *_parse(text)]:
            parts[-1].append(message)
            if "spent" in message:
                parts.append([])
        results = [part for part in parts[:-1] if "result" in part[-1]]
        self.unread = [message for part in parts[len(results) :] for message in part]
        new = zip(self.work[self.answered :], results, strict=False)
        self.answered += len(results)
        answers = []
        for (number, _), part in new:
            cpu, wall = part[-1]["spent"]
            read = _dependencies(part)
            self.read = read or self.read
            answers.append((number, Answer(part[-1]["result"], None, cpu, wall, output, read)))
        return answers

    def _answer(self, output: str, messages: list[dict[str, Any]], status: int, usage: struct_rusage) -> Answer:
        last: dict[str, Any] = messages[-1] if messages else {}
        failure, result = None, last.get("result")
        if result is None:
            failure = self._failure(status, messages, output)
        elif result.get("ended"):  # a script, of itself
            told = failures.from_diagnostics(Failure(**result["ended"]), output)
            result = {**result, "ended": asdict(told)}
        if kernels := [message["kernel"] for message in messages if "kernel" in message]:
            ended = asdict(failure) if failure else None  # a script that dies does not take its kernels with it
            failure, result = None, {"ended": ended, "names": [], **(result or {}), "kernels": kernels}
        cpu, wall = usage.ru_utime + usage.ru_stime, time.monotonic() - self.started
        return Answer(result, failure, round(cpu, 3), round(wall, 3), output, _dependencies(messages))

    def _failure(self, status: int, messages: list[dict[str, Any]], output: str) -> Failure:
        phase = next((message["phase"] for message in reversed(messages) if "phase" in message), "start")
        if messages and "failure" in messages[-1]:
            return failures.from_diagnostics(Failure(**messages[-1]["failure"]), output)
        if self.stopped:
            return protocol.interrupted(phase, _left(messages))
        ended_by = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
        if self.late or ended_by == signal.SIGXCPU:
            spent = (
                f"{_BACKSTOP * self.job.timeout:g} s of wall" if self.late else f"{self.job.timeout:g} s of processor"
            )
            return Failure("timeout", phase, f"no end after {spent} time{_left(messages)}")
        if ended_by:
            return failures.from_signal(ended_by, phase, output, str(Path(self.job.file).resolve()))
        return failures.from_exit(os.waitstatus_to_exitcode(status), phase, output)


def _left(messages: Sequence[Mapping[str, Any]]) -> str:
    """Return how many tests a test file did not come to the end of, in words; empty where that is not known."""
    left = next((message["left"] for message in reversed(messages) if "left" in message), 0)
    more = "-k EXPR chooses tests, --timeout S gives more time"
    return f"; {left} of its tests {'were' if left > 1 else 'was'} left ({more})" if left else ""


def _stamp(file: str) -> FileStamp:
    try:
        found = Path(file).stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ino, found.st_size


def _dependencies(messages: Iterable[Mapping[str, Any]]) -> Dependencies | None:
    read = next((message["dependencies"] for message in messages if "dependencies" in message), None)
    return protocol.read_dependencies(read) if read else None


def start(work: Sequence[Numbered], fork: bool, inherited: Iterable[int]) -> Child:
    """Start a process: a copy of this one, or for one job a fresh interpreter, without the `inherited` descriptors."""
    output, output_end = os.pipe()
    lines, lines_end = os.pipe()
    orders_end, orders = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    imported, began = _stamp(work[0][1].file), time.time_ns()
    pid = os.fork()
    if pid == 0:
        ends = output_end, lines_end, orders_end
        _become([job for _, job in work], fork, ends, [*inherited, output, lines, orders])
    with suppress(OSError):  # the child does the same: whoever comes first
        os.setpgid(pid, pid)
    for descriptor in (output_end, lines_end, orders_end):
        os.close(descriptor)
    child = Child(
        work,
        pid,
        OutputStream(output, OUTPUT_TAIL),
        OutputStream(lines, _REPORT),
        orders,
        imported=imported,
        began=began,
    )
    if not fork or not isinstance(work[0][1], DiscoverJob | LowerJob):
        child.dismiss()
    return child


def _become(jobs: Sequence[Job], fork: bool, ends: tuple[int, int, int], inherited: Iterable[int]) -> None:
    """Cut the new process's ties to the server and run the jobs. Does not return."""
    output, lines, orders = ends
    try:
        os.setpgid(0, 0)
        process_limits.die_with_parent()
        process_limits.go_first()
        process_limits.write_no_core()
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGCHLD, signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        os.dup2(output, 1)
        os.dup2(output, 2)
        for descriptor in (*inherited, output):
            os.close(descriptor)
        if fork:
            tasks.run(jobs, lines, orders)
        else:
            # become a fresh interpreter that runs the job
            (job,) = jobs
            os.set_inheritable(lines, True)
            main = str(Path(__file__).with_name("__main__.py"))
            os.execv(sys.executable, [sys.executable, main, "--job", str(lines), json.dumps(as_fields(job))])
    finally:
        os._exit(70)


def _parse(text: str) -> list[dict[str, Any]]:
    """The complete lines of what a process reported; one that was killed leaves a piece of a line."""
    return [json.loads(line) for line in text.split("\n")[:-1]]
