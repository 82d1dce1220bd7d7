"""Interfaces of the machines that lower and judge: this one, or those of a cluster (`tlcheck.cluster`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

from tlcheck.execute.request import GivenInputs, Request
from tlcheck.lower.client import Worker
from tlcheck.worker.jobs import Job, LowerJob
from tlcheck.worker.protocol import Answer


class JobExecutor(Protocol):
    """Does jobs. See `lower.executor.LocalExecutor`."""

    def __enter__(self) -> JobExecutor: ...

    def __exit__(self, *_: object) -> None: ...

    def add(self, worker: Worker, *jobs: Job) -> None: ...

    def stop(self) -> None: ...

    def answers(self) -> Iterator[tuple[Job, Answer]]: ...


class SnapshotJudge(Protocol):
    """Judges one snapshot after the other. See `verdicts.judge.JudgingProcess`."""

    def verdicts(self, snapshot: Path, request: Request | None, inputs: GivenInputs | None) -> bytes: ...

    def end(self) -> int: ...

    def kill(self) -> None: ...


class MachinePool(Protocol):
    """Machines that do jobs and judge."""

    @property
    def processors(self) -> int:
        """Say how many snapshots may be judged at a time."""

    def executor(self, begins: Callable[[Job], None]) -> JobExecutor:
        """Have jobs done there. begins: see `LocalExecutor`."""

    def judge(self) -> SnapshotJudge:
        """Have snapshots judged there."""

    def lowered(self, worker: Worker, job: LowerJob) -> bytes:
        """Lower a kernel there whose file is elsewhere than the user's folder. Return the snapshot, or nothing."""

    @property
    def place(self) -> str:
        """Say where it happens, and how much at once: ` on 3 nodes (5 jobs)`."""
