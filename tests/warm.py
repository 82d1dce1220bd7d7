"""Processes that outlive a command: importing tilelang takes seconds, and after that a worker is the same for all jobs.

Each job is a copy of its worker as it was after the import, and what a judging process says depends on the snapshot
alone: so the next command of a test's process takes over what the last one has left. Tests of the processes themselves
use `fresh_processes`.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tlcheck import workshop
from tlcheck.lower import session
from tlcheck.lower.client import Worker, environment
from tlcheck.run.processes import CopiedProcess
from tlcheck.toolchain.resolve import Toolchain
from tlcheck.verdicts import bench, judge
from tlcheck.verdicts.judge import JudgingProcess as Process

WRAPPER = str(Path(__file__).with_name("warm_worker.py"))
MOST = 6  # workers that wait: each takes half a gigabyte
# What tests set, and no import reads but to find nvcc, which no worker runs.
VARIABLES = tuple(
    "TLCHECK_CACHE TLCHECK_NO_CACHE PYTEST_CURRENT_TEST PYTEST_DISABLE_PLUGIN_AUTOLOAD BLOCK COLUMNS CUDA_HOME PWD"
    " OLDPWD".split()
)

Key = tuple[tuple[str, ...], frozenset[tuple[str, str]]]


class WarmWorker(Worker):
    """A worker that takes the process of an earlier one where that is the same but for `VARIABLES`."""

    waiting: dict[Key, WarmWorker] = {}  # noqa: RUF012

    def start(self) -> None:
        self._plain = tuple(self._command)
        variables = environment(self._env)
        command = tuple(map(_placed, self._plain))
        self._key = command, frozenset((k, _placed(v)) for k, v in variables.items() if k not in VARIABLES)
        earlier = self.waiting.pop(self._key, None)
        if earlier is not None and earlier._process.poll() is None:
            self._scratch, self._process, self.versions = earlier._scratch, earlier._process, earlier.versions
            self._tell()
        else:
            super().start()

    def close(self) -> None:
        """Leave the process to the next one, unless it is in the middle of something."""
        if not self.versions or self.running or self._process.poll() is not None or self._key in self.waiting:
            super().close()
            return
        self.stop()  # copies that have imported a file: the next test may have another one by its name
        self.waiting[self._key] = self
        while len(self.waiting) > MOST:
            self.waiting.pop(next(iter(self.waiting))).end()

    def end(self) -> None:
        super().close()

    def _start(self) -> None:
        self._command = [self._plain[0], WRAPPER, str(self._place), *self._plain[1:]]
        self._tell()
        super()._start()

    @property
    def _place(self) -> Path:
        return Path(self._scratch.name) / "place.json"

    def _tell(self) -> None:
        self._place.write_text(_situation())


def _placed(value: str) -> str:
    """Paths in it by the folders where they are: a test's cache has the user's toolchains by a link."""
    parts = ((part, *os.path.split(part)) for part in value.split(os.pathsep))
    return os.pathsep.join(
        str(Path(folder).resolve() / name) if folder.startswith("/") else part for part, folder, name in parts
    )


class WarmProcess(Process):
    """A judging process that takes the place of an earlier one that is idle."""

    waiting: list[WarmProcess] = []  # noqa: RUF012

    def __init__(self) -> None:
        self._busy = False
        while self.waiting:
            earlier = self.waiting.pop()
            if earlier._process.poll() is None:
                self._asking, self._process = earlier._asking, earlier._process
                return
        super().__init__()

    def verdicts(self, *asked: Any) -> bytes:
        self._busy = True
        found = super().verdicts(*asked)
        self._busy = False
        return found

    def kill(self) -> None:
        """Leave it to the next one, unless it is in the middle of something."""
        if self._busy or self._process.poll() is not None:
            super().kill()
        else:
            self.waiting.append(self)

    def stop(self) -> None:
        super().kill()


class WarmCopies:
    """Hands a process for tasks without a GPU over to the next command of its toolchain."""

    waiting: dict[str, CopiedProcess] = {}  # noqa: RUF012
    begin, end = CopiedProcess.__init__, CopiedProcess.close

    @staticmethod
    def take(process: CopiedProcess, toolchain: Toolchain) -> None:
        """Begin one, or take over an earlier one's."""
        WarmCopies.begin(process, toolchain)
        earlier = WarmCopies.waiting.pop(_placed(process.command[0]), None)
        if earlier is not None:
            process._scratch.cleanup()
            process._scratch, process._process, process.command = earlier._scratch, earlier._process, earlier.command
        place = Path(process._scratch.name) / "place.json"
        if earlier is None:
            process.command[1:1] = [WRAPPER, str(place)]
        place.write_text(_situation())

    @staticmethod
    def leave(process: CopiedProcess) -> None:
        """Leave it to the next one."""
        key = _placed(process.command[0])
        if process._process is None or key in WarmCopies.waiting:
            WarmCopies.end(process)
        else:
            WarmCopies.waiting[key] = process


def _situation() -> str:
    """Return where a test is, for `warm_worker`."""
    return json.dumps((str(Path.cwd()), {name: os.environ.get(name) for name in VARIABLES}))


def install(patch: pytest.MonkeyPatch) -> None:
    """Have commands use them."""
    for module in (session, workshop, bench):
        patch.setattr(module, "Worker", WarmWorker)
    patch.setattr(judge, "JudgingProcess", WarmProcess)
    patch.setattr(CopiedProcess, "__init__", WarmCopies.take)
    patch.setattr(CopiedProcess, "close", WarmCopies.leave)


def uninstall(patch: pytest.MonkeyPatch) -> None:
    """Have commands start their own."""
    for module in (session, workshop, bench):
        patch.setattr(module, "Worker", Worker)
    patch.setattr(judge, "JudgingProcess", Process)
    patch.setattr(CopiedProcess, "__init__", WarmCopies.begin)
    patch.setattr(CopiedProcess, "close", WarmCopies.end)


def end() -> None:
    """End all that wait."""
    for worker in WarmWorker.waiting.values():
        worker.end()
    for process in WarmProcess.waiting:
        process.stop()
    for copies in WarmCopies.waiting.values():
        WarmCopies.end(copies)
    WarmWorker.waiting.clear()
    WarmProcess.waiting.clear()
    WarmCopies.waiting.clear()
