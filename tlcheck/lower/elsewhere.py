"""What lowering and judging want of those who do the work: this machine, or a cluster (`tlcheck.cluster`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

from tlcheck.execute.request import GivenInputs, Request
from tlcheck.lower.client import Worker
from tlcheck.worker.jobs import Job
from tlcheck.worker.protocol import Answer


class Hands(Protocol):
    """Who does jobs. See `lower.crew.Crew`."""

    def __enter__(self) -> Hands: ...

    def __exit__(self, *_: object) -> None: ...

    def add(self, worker: Worker, *jobs: Job) -> None: ...

    def stop(self) -> None: ...

    def answers(self) -> Iterator[tuple[Job, Answer]]: ...


class Judging(Protocol):
    """Who judges one snapshot after the other. See `verdicts.judge.JudgingProcess`."""

    def verdicts(self, snapshot: Path, request: Request | None, inputs: GivenInputs | None) -> bytes: ...

    def end(self) -> int: ...

    def kill(self) -> None: ...


class MachinePool(Protocol):
    """Machines that do jobs and judge."""

    @property
    def processors(self) -> int:
        """Say how many snapshots may be judged at a time."""

    def crew(self, begins: Callable[[Job], None]) -> Hands:
        """Open a crew. begins: see `Crew`."""

    def judging(self) -> Judging:
        """Start what judges there."""

    @property
    def place(self) -> str:
        """Say where it happens, and how much at once: ` on 3 nodes (5 jobs)`."""
