"""Processes that outlive a session: the next one takes over what is idle, and nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tests.cpu.worker.processes import WORKER, wait_until_gone
from tlcheck.lower.client import Worker
from tlcheck.lower.warm import WarmProcesses
from tlcheck.worker.jobs import DiscoverJob, Job, LowerJob


@dataclass
class Process:
    is_alive: bool = True
    killed: bool = False

    def kill(self) -> None:
        self.killed = True


def test_the_last_process_of_a_kind_that_lives_is_taken_once() -> None:
    with WarmProcesses() as warm:
        first, dead, other = Process(), Process(is_alive=False), Process()
        for key, process in (("a", first), ("a", dead), ("b", other)):
            warm.keep(key, process)
        assert warm.take("a") is first
        assert dead.killed
        assert warm.take("a") is None
    assert other.killed
    assert not first.killed


def test_the_one_that_has_waited_longest_ends_and_all_end_with_the_context() -> None:
    with WarmProcesses(most=2) as warm:
        processes = [Process() for _ in range(3)]
        for process in processes:
            warm.keep("a", process)
        assert [process.killed for process in processes] == [True, False, False]
    warm.keep("a", late := Process())
    assert [process.killed for process in (*processes, late)] == [True] * 4


def test_a_worker_takes_over_an_idle_process_and_imports_a_changed_file_anew(tmp_path: Path) -> None:
    file = tmp_path / "k.py"
    with WarmProcesses() as warm:
        pids, answers = [], []
        lowering = LowerJob(str(file), "two", output=str(tmp_path / "o.json"), number=2)
        jobs: tuple[Job, ...] = (DiscoverJob(str(file), number=1), lowering)
        for job, name in zip(jobs, ("one", "two"), strict=True):
            file.write_text(f"from tlcheck.case import Case\n{name} = Case(lambda: 0)\n")
            worker = Worker(*WORKER, warm=warm)
            worker.start()
            answers.append(worker.answer(job))
            worker.close()
            pids.append(worker._process.pid)
        assert pids[0] == pids[1]
    assert not wait_until_gone(set(pids))
    assert answers[0].failure is None
    assert answers[1].failure is not None
    assert "two returned int" in answers[1].failure.message, "the file as it was then has no `two`"


def test_a_worker_in_the_middle_of_a_job_is_kept_for_nobody(tmp_path: Path) -> None:
    file = tmp_path / "k.py"
    file.write_text("import time\ntime.sleep(20)\n")
    with WarmProcesses() as warm:
        worker = Worker(*WORKER, warm=warm)
        worker.start()
        worker.send(DiscoverJob(str(file), number=0))
        while not worker.versions:
            worker.receive()
        worker.close()
        assert worker._process.returncode is not None
