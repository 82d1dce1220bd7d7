"""Workers of several toolchains share the processors."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from threading import Event
from typing import cast

import pytest

from tests.cpu.checking import StandInWorker
from tests.cpu.worker.processes import WORKER
from tlcheck.errors import UsageError
from tlcheck.lower.client import Worker
from tlcheck.lower.executor import LocalExecutor
from tlcheck.worker.jobs import DiscoverJob, Job, LowerJob, output_of
from tlcheck.worker.protocol import Answer

NUMBERS = count()


@dataclass(eq=False)
class Recorded(StandInWorker):
    """Answers one job at a time, the first one when it is let. others: whose jobs count together with its own."""

    others: list[Recorded] = field(default_factory=list)
    at_once: int = 0
    closed: int = 0
    may_answer: Event = field(default_factory=Event)

    def send(self, job: Job, *, more: bool = False) -> None:
        super().send(job, more=more)
        self.at_once = max(self.at_once, sum(len(worker.running) for worker in (self, *self.others)))

    def receive(self) -> list[tuple[Job, Answer]]:
        assert self.may_answer.wait(10)
        return [(self.running.pop(0), Answer({}, None, 0.0, 0.0, ""))] if self.running else []

    def close(self) -> None:
        super().close()
        self.closed += 1


@dataclass(eq=False)
class Importing(Recorded):
    """One that has to be told when its import is over."""

    imported: Event = field(default_factory=Event)

    @property
    def versions(self) -> Mapping[str, str]:
        return super().versions if self.imported.is_set() else {}

    def start(self) -> None:
        self._greeting, self._voice = os.pipe()  # before anybody sees that it has started
        super().start()

    def fileno(self) -> int:
        return super().fileno() if self.imported.is_set() else self._greeting

    def greet(self) -> None:
        self.may_answer.set()
        self.imported.set()
        os.write(self._voice, b"x")

    def close(self) -> None:
        super().close()
        os.close(self._greeting)
        os.close(self._voice)


def wait_for(what: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.001)


def pair() -> tuple[Recorded, Recorded]:
    first, second = Recorded(), Recorded()
    first.others, second.others = [second], [first]
    return first, second


def add(executor: LocalExecutor, worker: StandInWorker, count: int, name: str = "k.py") -> None:
    for _ in range(count):
        executor.add(cast(Worker, worker), DiscoverJob(name, number=next(NUMBERS)))


def test_both_begin_at_once_and_together_have_no_more_than_allowed() -> None:
    first, second = pair()
    with LocalExecutor(3) as executor:
        add(executor, first, 5)
        add(executor, second, 5)
        for worker in (first, second):
            worker.may_answer.set()
        assert len(list(executor.answers())) == 10
    assert max(first.at_once, second.at_once) == 3
    assert (len(first.jobs), len(second.jobs), first.closed, second.closed) == (5, 5, 1, 1)


def test_toolchains_import_side_by_side_however_many_jobs_the_first_has() -> None:
    first, second = Importing(), Importing()
    with LocalExecutor(2) as executor:
        add(executor, first, 3)
        wait_for(lambda: first.started == 1)
        add(executor, second, 1)
        wait_for(lambda: second.started == 1)
        assert first.jobs == second.jobs == []
        second.greet()
        wait_for(lambda: len(second.jobs) == 1)
        assert first.jobs == []
        first.greet()
        assert len(list(executor.answers())) == 4


def answered(worker: Recorded, files: Mapping[str, int], parallel: int) -> None:
    """Have a worker lower so many kernels of each file, all of them known before the first begins."""
    with LocalExecutor(parallel) as executor:
        add(executor, worker, parallel, "first.py")
        wait_for(lambda: len(worker.jobs) > 0)
        for file, count in files.items():
            for n in range(count):
                executor.add(cast(Worker, worker), LowerJob(file, str(n), output="", number=next(NUMBERS)))
        worker.may_answer.set()
        assert len(list(executor.answers())) == parallel + sum(files.values())


def test_files_with_few_kernels_come_first() -> None:
    worker = Recorded()
    answered(worker, {"many.py": 5, "one.py": 1, "some.py": 3}, 1)
    assert [job.file for job in worker.jobs] == ["first.py", "one.py", *["some.py"] * 3, *["many.py"] * 5]


def test_kernels_of_one_file_are_shared_out_to_all_processors() -> None:
    """However long each takes: four that are slow do not wait for each other in one process."""
    worker = Recorded(fork=True)
    answered(worker, {"slow.py": 4, "quick.py": 40}, 2)
    sizes = [(group[0].file, len(group)) for group in worker.together[2:]]
    assert sizes[:4] == [("slow.py", 2), ("slow.py", 1), ("slow.py", 1), ("quick.py", 10)]
    assert sizes[-3:] == [("quick.py", 1)] * 3


def test_where_many_files_wait_one_process_does_a_file() -> None:
    """The other processors have enough to do with the others."""
    worker = Recorded(fork=True)
    answered(worker, {"a.py": 4, "b.py": 4, "c.py": 4, "d.py": 20}, 2)
    sizes = [(group[0].file, len(group)) for group in worker.together[2:]]
    assert sizes[:4] == [("a.py", 4), ("b.py", 4), ("c.py", 2), ("c.py", 1)]


def test_one_processor_does_a_file_in_one_process() -> None:
    worker = Recorded(fork=True)
    answered(worker, {"slow.py": 4, "quick.py": 140}, 1)
    sizes = [(group[0].file, len(group)) for group in worker.together[1:]]
    assert sizes == [("slow.py", 4), ("quick.py", 100), ("quick.py", 40)]


def test_what_is_added_together_may_share_a_process_from_the_first_on() -> None:
    worker = Recorded(fork=True)
    with LocalExecutor(1) as executor:
        executor.add(
            cast(Worker, worker), *(LowerJob("k.py", str(n), output="", number=next(NUMBERS)) for n in range(4))
        )
        worker.may_answer.set()
        assert len(list(executor.answers())) == 4
    assert [len(group) for group in worker.together] == [4]


def test_small_kernels_of_a_file_share_processes_up_to_the_end(tmp_path: Path) -> None:
    worker = StandInWorker(fork=True)
    jobs = [
        LowerJob("k.py", str(n), arch=arch, output=str(tmp_path / f"{n}-{arch}"), number=next(NUMBERS))
        for n in range(40)
        for arch in ("sm_80", "sm_90")
    ]
    other = LowerJob("other.py", "0", output=str(tmp_path / "other"), number=next(NUMBERS))
    with LocalExecutor(2) as executor:
        for job in (other, *jobs):
            executor.add(cast(Worker, worker), job)
        answered = [job for job, _ in executor.answers()]
    assert sorted(output_of(job) for job in answered) == sorted(output_of(job) for job in (other, *jobs))
    assert {len({(job.file, job.arch) for job in group}) for group in worker.together} == {1}
    sizes = [len(group) for group in worker.together]
    assert (sizes[0], sizes[-1]) == (1, 1)
    assert 8 < max(sizes) <= 20


def test_when_one_has_nothing_left_the_other_gets_all_processors() -> None:
    short, long = pair()
    short.may_answer.set()
    with LocalExecutor(4) as executor:
        add(executor, short, 1)
        add(executor, long, 8)
        answers = executor.answers()
        next(answers)
        long.may_answer.set()
        assert len(list(answers)) == 8
    assert long.most == 4


def test_workers_go_on_while_an_answer_is_looked_at() -> None:
    worker = Recorded()
    worker.may_answer.set()
    with LocalExecutor(1) as executor:
        add(executor, worker, 5)
        answers = executor.answers()
        next(answers)
        wait_for(lambda: not worker.running and len(worker.jobs) == 5)
        assert len(list(answers)) == 4
    assert (worker.started, worker.closed) == (1, 1)


def test_jobs_may_be_added_with_the_last_answer() -> None:
    worker = Recorded()
    worker.may_answer.set()
    with LocalExecutor(2) as executor:
        add(executor, worker, 1, "first.py")
        names = []
        for job, _ in executor.answers():
            names.append(job.file)
            if len(names) == 1:
                add(executor, worker, 2, "second.py")
    assert names == ["first.py", "second.py", "second.py"]
    assert worker.started == 1


def test_leaving_early_ends_all_workers() -> None:
    first, second = pair()
    with LocalExecutor(2) as executor:
        add(executor, first, 2)
        add(executor, second, 2)
        first.may_answer.set()
        second.may_answer.set()
        next(executor.answers())
    assert (first.closed, second.closed) == (1, 1)


def test_a_signal_after_it_has_left_stops_nothing() -> None:
    """Answers are judged after the last worker has ended, and Ctrl-C comes then too."""
    worker = Recorded()
    with LocalExecutor(1) as executor:
        add(executor, worker, 1)
        worker.may_answer.set()
        assert len(list(executor.answers())) == 1
    executor.stop()
    assert worker.closed == 1


def test_a_toolchain_that_does_not_import_stops_all(tmp_path: Path) -> None:
    (tmp_path / "tilelang.py").write_text("raise ImportError('libcuda.so.1')")
    (tmp_path / "k.py").touch()
    good, broken = Worker(*WORKER), Worker(WORKER[0], {"PYTHONPATH": str(tmp_path)})
    with LocalExecutor(2) as executor:
        for worker in (good, broken):
            executor.add(worker, DiscoverJob(str(tmp_path / "k.py"), number=next(NUMBERS)))
        with pytest.raises(UsageError, match=r"cannot import tilelang: .*libcuda"):
            list(executor.answers())
    assert good._process.poll() is not None
    assert broken._process.poll() is not None


def test_a_worker_that_still_imports_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is killed, where one that can hear would end by itself."""
    monkeypatch.setattr("tlcheck.lower.client._END_SECONDS", 600)
    (tmp_path / "tilelang.py").write_text("import time\ntime.sleep(20)")
    worker = Worker(WORKER[0], {"PYTHONPATH": str(tmp_path)})
    worker.start()
    worker.close()
    assert worker._process.returncode == -signal.SIGKILL
