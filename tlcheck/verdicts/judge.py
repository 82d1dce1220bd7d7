"""Judging lowered kernels by one policy, on all processors.

with Judge(Policy(acceptances), cache) as judge:
    for lowered, result in judge.each(session.lower(selections)):
        ...

Verdicts depend on a snapshot alone and are kept under its hash. What a case expects and a project accepts is applied
to them each time.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing import Pipe
from pathlib import Path
from threading import Event, Lock, Semaphore
from typing import Protocol

from tlcheck.cache.store import Cache
from tlcheck.execute.request import GivenInputs, Request
from tlcheck.lower.client import ALLOCATOR, processors
from tlcheck.lower.machines import MachinePool, SnapshotJudge
from tlcheck.lower.runs import Lowered, MadeInputs, Run
from tlcheck.lower.session import Watcher
from tlcheck.lower.warm import WarmProcesses
from tlcheck.verdicts.acceptance import Acceptances
from tlcheck.verdicts.expectations import advise, settle
from tlcheck.verdicts.kept import Verdicts, keep, known, loads
from tlcheck.verdicts.results import Result, notes_of, result_of
from tlcheck.worker.protocol import Failure, interrupted

# The child imports what this process does, and nothing of the folder that it stands in.
_START = """import sys
sys.path[:] = sys.argv[2:]
from tlcheck.verdicts.judging import end_with_parent, serve
end_with_parent()
serve(int(sys.argv[1]))
"""

_INTERRUPTED = Verdicts(failure=interrupted("check", ": lowered, not judged"))


@dataclass(frozen=True)
class Policy:
    """The way in which findings count. acceptances: the project's; None where neither they nor comments in the source
    take part.

    excusing: whether what a case expects of a release is excused there. It is always advised on. execute: how kernels
    are executed on the CPU; None for proofs only.
    """

    acceptances: Acceptances | None = None
    excusing: bool = True
    execute: Request | None = None

    def apply(self, result: Result) -> Result:
        """Add excuses, and expectations that do not hold. Raises UsageError for one that cannot be read."""
        result = advise(settle(result) if self.excusing else result)
        return self.acceptances.settle(result) if self.acceptances is not None else result


@dataclass(frozen=True)
class JudgedSnapshot:
    """The verdicts of a snapshot. seconds: that judging took; 0 where they were known."""

    verdicts: Verdicts
    seconds: float = 0.0


class JudgeWatcher(Watcher, Protocol):
    """A listener that is also told how far judging is, from several threads."""

    def goal(self, text: str) -> None:
        """Say what all of it is for, and how far that is; empty where that is plain."""

    def judges(self, run: Run) -> None:
        """A kernel is being judged."""

    def has_judged(self, run: Run) -> None:
        """The next of the results is there."""

    def has_judged_ahead(self) -> None:
        """One more kernel is judged whose tests still run."""


class Judge:
    """Judges by a policy, in up to `jobs` processes at a time, which start as they are needed.

    One that raises or dies is the failure of one run; the others go on. To be closed, as by `with`.
    """

    def __init__(
        self,
        policy: Policy,
        cache: Cache,
        jobs: int | None = None,
        cluster: MachinePool | None = None,
        watcher: JudgeWatcher | None = None,
        warm: WarmProcesses | None = None,
    ) -> None:
        """cluster: where it is judged, if not on this machine. warm: where processes are taken from, and left."""
        self.policy, self.cache = policy, cache
        self._cluster, self._watcher = cluster, watcher
        self._warm = None if cluster is not None else warm
        parallel = cluster.processors if cluster else jobs or processors()
        self.anticipates = cluster is None and parallel > 1  # one processor runs the tests
        self._threads = ThreadPoolExecutor(parallel, "judge")
        self._early_threads = ThreadPoolExecutor(max(1, parallel - 1), "judge-early")
        self._early: dict[str, tuple[str, Future[JudgedSnapshot]]] = {}  # hash of a snapshot -> digest with inputs
        self._room = Semaphore(parallel)  # for judging processes at work
        self._lock, self._closed = Lock(), False
        self._stopped = Event()
        self._all: list[SnapshotJudge] = []
        self._idle: list[SnapshotJudge] = []
        self._known: dict[str, Verdicts] = {}  # that `knows` has found

    def __enter__(self) -> Judge:
        return self

    def __exit__(self, *exception: object) -> None:
        """End all processes, also in the middle of their work."""
        for threads in (self._threads, self._early_threads):
            threads.shutdown(wait=False, cancel_futures=True)
        with self._lock:
            self._closed = True
            idle = [] if self._warm is None or self._stopped.is_set() else self._idle
            for process in self._all:
                if process not in idle:
                    process.kill()
        for process in idle:
            leave(process, self._warm)

    def stop(self) -> None:
        """End all judging: what has no verdict yet fails as interrupted."""
        self._stopped.set()
        for process in [*self._all]:
            process.kill()

    def __call__(self, lowered: Lowered) -> Result:
        """Judge one lowered kernel."""
        return self._result(lowered, self._begin(lowered))

    def knows(self, lowered: Lowered) -> bool:
        """Say whether the verdicts of a lowered kernel are kept: judging it will read no inputs."""
        if lowered.snapshot is None or self.cache.folder is None:
            return False
        digest = _digest(lowered)
        found = known(self.cache, digest, self.policy.execute)
        if found is not None:
            self._known[digest] = found
        return found is not None

    def each(self, lowered: Iterable[Lowered]) -> Iterator[tuple[Lowered, Result]]:
        """Judge many, in their order: some are judged while the next are still being lowered.

        Their snapshots have to be there until the last result came.
        """
        waiting: deque[tuple[Lowered, Future[JudgedSnapshot]]] = deque()
        for one in lowered:
            waiting.append((one, self._begin(one)))
            while waiting and waiting[0][1].done():
                first, verdicts = waiting.popleft()
                yield first, self._result(first, verdicts)
        for first, verdicts in waiting:
            yield first, self._result(first, verdicts)

    def anticipate(self, lowered: Lowered) -> None:
        """Begin to judge a kernel of a test file that still runs. Its verdicts count if it comes again as it is.

        The watcher hears how many are judged, not which: progress names the test that runs.
        """
        if lowered.snapshot is not None:
            begun = self._early_threads.submit(self._verdicts, lowered, lowered.snapshot, silent=True)
            begun.add_done_callback(self._judged_ahead)
            self._early[lowered.hash] = _digest(lowered), begun

    def _judged_ahead(self, begun: Future[JudgedSnapshot]) -> None:
        if self._watcher is not None and not begun.cancelled():
            self._watcher.has_judged_ahead()

    def _begin(self, lowered: Lowered) -> Future[JudgedSnapshot]:
        if lowered.snapshot is not None:
            digest, early = self._early.pop(lowered.hash, ("", None)) if self._early else ("", None)
            if early is not None and not early.cancel():  # it is being judged, or was
                if digest == _digest(lowered) or lowered.inputs is None:  # interrupted tests say nothing of calls
                    return early
                return self._threads.submit(self._verdicts_of_more, lowered, lowered.snapshot, early)
            return self._threads.submit(self._verdicts, lowered, lowered.snapshot)
        failed: Future[JudgedSnapshot] = Future()
        failed.set_result(JudgedSnapshot(Verdicts(failure=lowered.failure)))
        return failed

    def _result(self, lowered: Lowered, judged: Future[JudgedSnapshot]) -> Result:
        found = judged.result()
        result = result_of(lowered.run, found.verdicts)
        if self._watcher is not None:
            self._watcher.has_judged(lowered.run)
        saved = str(lowered.snapshot) if lowered.saved else ""
        seconds = found.seconds + sum(lowered.seconds.values()) if found.seconds else 0.0
        notes = (*result.notes, *notes_of(lowered))
        return self.policy.apply(replace(result, saved=saved, notes=notes, seconds=seconds))

    def _verdicts(self, lowered: Lowered, snapshot: Path, *, silent: bool = False) -> JudgedSnapshot:
        """Take what is kept, or have a process judge it. Runs in a thread."""
        inputs = lowered.inputs or MadeInputs()
        if inputs.failure is not None:
            return JudgedSnapshot(Verdicts(failure=inputs.failure))
        digest = _digest(lowered) if self.cache.folder is not None else ""
        found = self._known.get(digest) or (known(self.cache, digest, self.policy.execute) if digest else None)
        if found is not None:
            return JudgedSnapshot(found)
        with self._room:
            if self._watcher is not None and not silent:
                self._watcher.judges(lowered.run)
            begin = time.monotonic()
            found = self._asked(snapshot, inputs.given)
            seconds = time.monotonic() - begin
        if digest:
            keep(self.cache, digest, self.policy.execute, found)
        return JudgedSnapshot(found, seconds)

    def _verdicts_of_more(self, lowered: Lowered, snapshot: Path, early: Future[JudgedSnapshot]) -> JudgedSnapshot:
        """Judge a kernel that was called again since it was judged. Interrupted, its first calls' verdicts count."""
        found = self._verdicts(lowered, snapshot)
        return early.result() if found.verdicts is _INTERRUPTED and early.done() else found

    def _asked(self, snapshot: Path, inputs: GivenInputs | None) -> Verdicts:
        if self._stopped.is_set():
            return _INTERRUPTED
        process = self._process()
        try:
            found = loads(process.verdicts(snapshot, self.policy.execute, inputs))
        except (EOFError, OSError):
            if self._stopped.is_set():
                return _INTERRUPTED
            return Verdicts(failure=_death(process.end()))
        with self._lock:
            self._idle.append(process)
        return found

    def _process(self) -> SnapshotJudge:
        """One that has nothing to do, or a new one. Raises CancelledError after the end."""
        with self._lock:
            if self._closed:
                raise CancelledError
            if not self._idle:
                self._all.append(self._cluster.judge() if self._cluster is not None else judging_process(self._warm))
                self._idle.append(self._all[-1])
            return self._idle.pop()


def judging_process(warm: WarmProcesses | None) -> JudgingProcess:
    """Return a process that judges: an idle one, or a new one."""
    idle = warm.take(JudgingProcess) if warm is not None else None
    return idle if isinstance(idle, JudgingProcess) else JudgingProcess()


def leave(process: SnapshotJudge, warm: WarmProcesses | None) -> None:
    """Keep a process for others that has nothing to do, or end it."""
    if warm is not None and isinstance(process, JudgingProcess):
        warm.keep(JudgingProcess, process)
    else:
        process.kill()


class JudgingProcess:
    """A process that judges one snapshot after the other. Ctrl-C is for its parent alone."""

    def __init__(self) -> None:
        self._asking, asked = Pipe()
        with asked:
            command = [sys.executable, "-I", "-c", _START, str(asked.fileno()), *sys.path]
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, pass_fds=[asked.fileno()], start_new_session=True, env=_environment()
            )

    def verdicts(self, snapshot: Path, request: Request | None, inputs: GivenInputs | None) -> bytes:
        """Return what `dumps` makes of its verdicts. Raises EOFError or OSError where the process is dead."""
        self._asking.send_bytes(os.fsencode(snapshot.absolute()))
        self._asking.send_bytes(pickle.dumps((request, inputs)))
        return self._asking.recv_bytes()

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def end(self) -> int:
        """Exit code of a process that has died."""
        self._asking.close()
        return self._process.wait()

    def kill(self) -> None:
        """End it; who waits for its answer gets EOFError."""
        self._process.kill()
        self._process.wait()


def _digest(lowered: Lowered) -> str:
    """Under which its verdicts are kept: of the snapshot and of the case's own inputs."""
    return lowered.hash + (lowered.inputs or MadeInputs()).digest


def _environment() -> dict[str, str]:
    """One thread for products of matrices: there is a process for each processor, and sums have one order."""
    threads = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    return {**os.environ, **threads, **ALLOCATOR}


def _death(code: int) -> Failure:
    """Return what is to be said of a snapshot whose judging died."""
    how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
    detail = "too little memory, or a bug: then please report it with the snapshot (--save DIR)"
    return Failure("killed" if code == -signal.SIGKILL else "crash", "check", f"judging ended with {how}", detail)
