"""Workers of several toolchains share the processors."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pytest

from tests.cpu.checking import StandInWorker
from tests.cpu.worker.processes import WORKER
from tlcheck.errors import UsageError
from tlcheck.toolchain.client import Job, Worker
from tlcheck.toolchain.crew import Crew
from tlcheck.worker.protocol import Answer


@dataclass(eq=False)
class Recorded(StandInWorker):
    """Answers one job at a time. closed: how often it was."""

    closed: int = 0

    def receive(self) -> list[tuple[Job, Answer]]:
        return [(self.running.pop(0), Answer({}, None, 0.0, 0.0, ""))]

    def close(self) -> None:
        super().close()
        self.closed += 1


def add(crew: Crew, worker: StandInWorker, count: int, name: str = "k.py") -> None:
    for _ in range(count):
        crew.add(cast(Worker, worker), Job("discover", name))


def test_both_begin_at_once_and_together_have_no_more_than_allowed() -> None:
    first, second = Recorded(), Recorded()
    with Crew(3) as crew:
        add(crew, first, 5)
        add(crew, second, 5)
        answers = crew.answers()
        next(answers)
        assert (first.started, second.started) == (1, 1)
        assert len(first.running) + len(second.running) == 3
        for _ in answers:
            assert len(first.running) + len(second.running) <= 3
    assert (len(first.jobs), len(second.jobs), first.closed, second.closed) == (5, 5, 1, 1)


def test_when_one_has_nothing_left_the_other_gets_all_processors() -> None:
    short, long = Recorded(), Recorded()
    with Crew(4) as crew:
        add(crew, short, 1)
        add(crew, long, 8)
        assert len(list(crew.answers())) == 9
    assert long.most == 4


def test_jobs_may_be_added_with_the_last_answer() -> None:
    worker = Recorded()
    with Crew(2) as crew:
        add(crew, worker, 1, "first.py")
        names = []
        for job, _ in crew.answers():
            names.append(job.file)
            if len(names) == 1:
                add(crew, worker, 2, "second.py")
    assert names == ["first.py", "second.py", "second.py"]
    assert worker.started == 1


def test_leaving_early_ends_all_workers() -> None:
    first, second = Recorded(), Recorded()
    with Crew(2) as crew:
        add(crew, first, 2)
        add(crew, second, 2)
        next(crew.answers())
    assert (first.closed, second.closed) == (1, 1)


def test_a_toolchain_that_does_not_import_stops_all(tmp_path: Path) -> None:
    (tmp_path / "tilelang.py").write_text("raise ImportError('libcuda.so.1')")
    (tmp_path / "k.py").touch()
    good, broken = Worker(*WORKER), Worker(WORKER[0], {"PYTHONPATH": str(tmp_path)})
    with Crew(2) as crew:
        for worker in (good, broken):
            crew.add(worker, Job("discover", str(tmp_path / "k.py")))
        with pytest.raises(UsageError, match=r"cannot import tilelang: .*libcuda"):
            list(crew.answers())
    assert good._process.poll() is not None
    assert broken._process.poll() is not None
