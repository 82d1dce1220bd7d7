"""The worker: imports tilelang once, then starts processes for jobs and answers in order of completion.

One thread, one loop over descriptors: nothing here waits for a single job. It ends, and its jobs with it, when the
controller closes its end of the pipe or ends.
"""

from __future__ import annotations

import ctypes
import gc
import importlib.util
import json
import os
import selectors
import signal
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tlcheck.worker import children, failures, protocol, release
from tlcheck.worker.children import Child, Numbered, OutputStream
from tlcheck.worker.failures import RequestError
from tlcheck.worker.jobs import CaptureJob, read_job
from tlcheck.worker.protocol import Answer

_CHUNK = 64 * 1024
_WAITING = 8  # processes that have imported a file and may be told to lower its kernels: some 30 MB each


def main(fork: bool) -> None:
    """Serve on standard input and output, which jobs then do not see."""
    requests, answers = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(2, 1)
    os.close(null)
    try:
        hello: dict[str, Any] = {"ready": _prepare(fork)}
    except BaseException as error:
        protocol.send(answers, {"failed": asdict(failures.from_exception(error, "start", ""))})
        os._exit(1)
    protocol.send(answers, hello)
    server = Server(requests, answers, fork)
    try:
        server.serve()
    finally:
        server.kill()
        os._exit(0)


def _prepare(fork: bool) -> Mapping[str, str]:
    """Import tilelang, and where jobs are copies of this process all that they need, before the first one."""
    if not fork:
        return release.import_tilelang()
    gc.disable()  # until all is there that stays
    _read_symbols()
    versions = release.import_tilelang()
    _warm_lowering()
    gc.freeze()  # what is there now stays: collections in jobs need not go through it, and copy its pages
    gc.enable()
    return versions


def _read_symbols() -> None:
    """Have TVM's exceptions name functions: for the first one the symbols of all libraries that are loaded are read.

    Before torch is, that takes a third of the time. Later libraries are then unknown to it, which is all the same: of
    frames in C++ nothing is shown.
    """
    package = importlib.util.find_spec("tvm_ffi")  # 0.1.6 has none: there `_warm_lowering` does it
    if package is not None and package.origin is not None:
        with suppress(OSError, AttributeError):
            library = ctypes.CDLL(str(Path(package.origin).parent / "lib" / "libtvm_ffi.so"))
            library.TVMFFIBacktrace(None, 0, None, 0)


def _warm_lowering() -> None:
    from tlcheck.worker import discovery, lowering, snapshots  # noqa: F401

    with suppress(RequestError):  # TVM's first exception reads symbols (see above): here, once for all jobs
        lowering.make_target("none")
    with suppress(Exception):  # a release that cannot lower this kernel says so of the user's
        from tlcheck.worker import rehearsal

        rehearsal.rehearse()


class Server:
    """The loop. `requests` and `answers` are descriptors."""

    def __init__(self, requests: int, answers: int, fork: bool) -> None:
        self._requests, self._answers, self._fork = requests, answers, fork
        self._children: dict[int, Child] = {}
        self._gathered: list[Numbered] = []
        self._unread = b""
        self._selector = selectors.DefaultSelector()
        # this pipe becomes readable when a child ends
        reader, writer = os.pipe()
        os.set_blocking(reader, False)
        os.set_blocking(writer, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        self._wake = reader, writer
        for descriptor in (requests, self._wake[0]):
            self._selector.register(descriptor, selectors.EVENT_READ)

    def serve(self) -> None:
        """Serve until the controller has gone."""
        while True:
            for key, _ in self._selector.select(self._patience()):
                if key.fd == self._requests:
                    if not self._read_requests():
                        return
                elif key.fd == self._wake[0]:
                    os.read(self._wake[0], _CHUNK)
                else:
                    self._hear(*key.data)
            for child in self._children.values():
                if time.monotonic() > child.deadline and not child.late and not child.waits:
                    child.late = True
                    child.kill()
            self._reap()

    def kill(self) -> None:
        """End all jobs and wait for them: nothing is left behind."""
        for child in self._children.values():
            child.kill()
            os.waitpid(child.pid, 0)

    def _patience(self) -> float | None:
        """Seconds to the next deadline; None if there is no job."""
        deadlines = [child.deadline for child in self._children.values() if not child.late and not child.waits]
        return max(0.0, min(deadlines) - time.monotonic()) if deadlines else None

    def _read_requests(self) -> bool:
        chunk = os.read(self._requests, _CHUNK)
        *lines, self._unread = (self._unread + chunk).split(b"\n")
        for line in lines:
            message = json.loads(line)
            if "stop" in message:
                for child in self._children.values():
                    child.stopped = True
                    child.kill()
                continue
            self._gathered.append((message["id"], read_job(message["job"])))
            if not message["more"]:
                self._start(self._gathered)
                self._gathered = []
        return bool(chunk)

    def _start(self, work: Sequence[Numbered], fresh: bool = False) -> None:
        """Have a process do jobs. fresh: in which nothing ran before."""
        if isinstance(work[0][1], CaptureJob) and self._fork:
            # import what captures need of torch, which takes seconds, once for all; one that cannot will say so itself
            with suppress(Exception):
                from tlcheck.worker.capture import script

                script.warm()
        waiting = next((child for child in self._children.values() if child.can_go_on_with(work[0][1])), None)
        if waiting is not None and not fresh:
            waiting.go_on(work)
            return
        inherited = [self._requests, self._answers, *self._wake]
        for other in self._children.values():
            inherited += [other.output.descriptor, other.lines.descriptor]
            inherited += [] if other.orders is None else [other.orders]
        child = children.start(work, self._fork, inherited)
        self._children[child.pid] = child
        for stream in (child.output, child.lines):
            self._selector.register(stream.descriptor, selectors.EVENT_READ, (child, stream))

    def _hear(self, child: Child, stream: OutputStream) -> None:
        """Take what a child says, and answer for those of its jobs that have ended."""
        if not stream.pull():
            self._selector.unregister(stream.descriptor)
        if stream is child.lines:
            if (news := child.news()) is not None:
                protocol.send(self._answers, {"id": child.work[0][0], "news": news})
            self._answer(child.finished())
        waiting = [other for other in self._children.values() if other.waits]
        for other in waiting[:-_WAITING]:
            other.dismiss()

    def _reap(self) -> None:
        """Answer for every child that has ended."""
        for child in list(self._children.values()):
            pid, status, usage = os.wait4(child.pid, os.WNOHANG)
            if pid:
                del self._children[child.pid]
                for stream in (child.output, child.lines):
                    with suppress(KeyError):  # it has come to its end before
                        self._selector.unregister(stream.descriptor)
                answers, again = child.answers(status, usage)
                self._answer(answers)
                for work in again:
                    self._start(work, fresh=True)

    def _answer(self, answers: Iterable[tuple[int, Answer]]) -> None:
        for number, answer in answers:
            protocol.send(self._answers, {"id": number, "answer": asdict(answer)})
