"""A job that goes wrong is reported, and only that job."""

from __future__ import annotations

import os
import resource
import select
import signal
import subprocess
import sys
import textwrap
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from tests.cpu.client import Client, Ended
from tests.cpu.worker.conftest import Write
from tests.cpu.worker.processes import WORKER, children_of, wait_until_gone
from tlcheck.errors import UsageError
from tlcheck.lower.client import Worker
from tlcheck.worker.jobs import DiscoverJob, Job, LowerJob
from tlcheck.worker.protocol import OUTPUT_TAIL, Answer

pytestmark = pytest.mark.slow  # a process for each test

MakeJob = Callable[..., LowerJob]

WAYS_TO_FAIL = {
    "os.abort()": ("crash", "build", "SIGABRT"),
    "import ctypes; ctypes.string_at(0)": ("crash", "build", "SIGSEGV"),
    "raise ValueError('no such tile')": ("exception", "build", "ValueError: no such tile"),
    "raise KeyboardInterrupt": ("exception", "build", "KeyboardInterrupt"),
    "sys.exit(3)": ("exit", "build", "SystemExit: 3"),
    "os._exit(3)": ("exit", "build", "code 3"),
    "os.kill(os.getpid(), signal.SIGKILL)": ("killed", "build", "memory"),
    "return PrimFunc(os.abort)": ("crash", "lower", "SIGABRT"),
    "return PrimFunc(lambda: 1 / 0)": ("exception", "lower", "ZeroDivisionError"),
    "return 3": ("usage", "build", "kernel returned int, not a PrimFunc"),
}


@pytest.mark.slow
@pytest.mark.parametrize("fork", [True, False])
def test_each_failure_is_told_apart_and_the_others_go_on(write: Write, lowered: MakeJob, fork: bool) -> None:
    branches = "".join(f"    if way == {n}: {code}\n" for n, code in enumerate(WAYS_TO_FAIL))
    file = write(f"import os, signal, sys\n@tilelang.jit\ndef kernel(way):\n{branches}")
    jobs = [lowered(file, args={"way": str(n)}) for n in range(len(WAYS_TO_FAIL))]
    with Client(Worker(*WORKER, fork=fork), parallel=2) as worker:
        results = {result.job.args["way"]: result for result in worker.lower(jobs)}
    assert len(results) == len(WAYS_TO_FAIL)
    for n, (code, (kind, phase, message)) in enumerate(WAYS_TO_FAIL.items()):
        failure = results[str(n)].failure
        assert failure is not None, code
        assert (failure.kind, failure.phase) == (kind, phase), code
        assert message in failure.message, code


def test_jobs_that_share_a_process_come_to_what_they_come_to_alone(
    process: Worker, write: Write, lowered: MakeJob
) -> None:
    """Three that go well are done together; one that does not is done again alone, and those after it go on."""
    branches = "".join(f"    if way == {n}: {code}\n" for n, code in enumerate(WAYS_TO_FAIL))
    mark = "globals()[f'in_{os.getpid()}'] = PrimFunc(None)"
    file = write(f"import os, signal, sys\n{mark}\n@tilelang.jit\ndef kernel(way):\n    print('way', way)\n{branches}")
    good = [DiscoverJob(file) for _ in range(3)]
    bad = [lowered(file, args={"way": str(n)}) for n in range(len(WAYS_TO_FAIL))]
    work: list[Job] = [
        *good,
        *(job for pair in zip(bad, (DiscoverJob(file) for _ in bad), strict=True) for job in pair),
    ]
    work = [replace(job, number=number) for number, job in enumerate(work)]
    for job in work:
        process.send(job, more=job is not work[-1])
    answers: dict[int, Answer] = {}
    while process.running:
        answers |= {job.number: answer for job, answer in process.receive()}
    found = [answers[job.number].result for job in work[: len(good)]]
    places = {name for result in found if result for name in result["kernels"] if "in_" in name}
    assert len(places) == 1
    lowerings = [job for job in work if isinstance(job, LowerJob)]
    for job, (code, (kind, phase, message)) in zip(lowerings, WAYS_TO_FAIL.items(), strict=True):
        failure = answers[job.number].failure
        assert failure is not None, code
        assert (failure.kind, failure.phase) == (kind, phase), code
        assert message in failure.message, code
        assert {line for line in answers[job.number].output.splitlines() if "way" in line} <= {f"way {job.args['way']}"}
    imports = [answers[job.number].failure for job in work if isinstance(job, DiscoverJob)]
    assert imports == [None] * (len(good) + len(bad))


def test_the_first_job_of_a_process_is_not_done_again(
    process: Worker, write: Write, lowered: MakeJob, tmp_path: Path
) -> None:
    """Nothing ran before it; the second did not run alone."""
    marks = f"open({str(tmp_path / 'marks')!r}, 'a').write(way)"
    file = write(f"@tilelang.jit\ndef kernel(way):\n    {marks}\n    print(way)\n    raise ValueError(way)")
    failing = [lowered(file, args={"way": way}) for way in ("'a'", "'b'", "'c'")]
    jobs: list[Job] = [*failing, DiscoverJob(file), failing[0]]
    jobs = [replace(job, number=number) for number, job in enumerate(jobs)]
    for job in jobs:
        process.send(job, more=job is not jobs[-1])
    answers: dict[int, Answer] = {}
    while process.running:
        answers |= {job.number: answer for job, answer in process.receive()}
    assert [answers[number].output for number in (0, 1, 2, 4)] == ["a\n", "b\n", "c\n", "a\n"]
    assert [answers[number].failure is None for number in range(5)] == [False] * 3 + [True, False]
    assert Counter((tmp_path / "marks").read_text()) == {"a": 3, "b": 1, "c": 1}


def test_a_process_that_has_imported_a_file_goes_on_to_its_kernels(
    process: Worker, write: Write, lowered: MakeJob, tmp_path: Path
) -> None:
    """Once, where what it imported the file for is the same; its limit of wall time begins anew."""
    note = f"open({str(tmp_path / 'notes')!r}, 'a').write(f'{{what}} {{os.getpid()}} ')"
    file = write(f"import os\ndef note(what): {note}\nnote('import')\ndef kernel(): note('kernel'); 1 / 0")
    lower = lowered(file, timeout=60)
    discover = DiscoverJob(file, timeout=60)
    assert [answer.failure for answer in answers_of(process, discover)] == [None]
    for job in (replace(lower, arch="sm_80"), lower, lower):
        (answer,) = answers_of(process, job)
        assert answer.failure is not None
        assert "ZeroDivisionError" in answer.failure.message
        assert answer.wall < 30
    what, places = (tmp_path / "notes").read_text().split()[::2], (tmp_path / "notes").read_text().split()[1::2]
    assert what == ["import", "import", "kernel", "kernel", "import", "kernel"]
    assert [places.index(place) for place in places] == [0, 1, 1, 0, 4, 4]


def test_processes_that_wait_are_few_and_end_with_the_worker(process: Worker, write: Write, lowered: MakeJob) -> None:
    file = write("def kernel(): 1 / 0")
    for number in range(12):
        answers_of(process, DiscoverJob(file, args={"n": str(number)}))
    assert process._process is not None
    server = process._process.pid  # not below this process: what has just started has no command line for a moment
    waiting = children_of(server)
    deadline = time.monotonic() + 60
    while len(waiting) > 8 and time.monotonic() < deadline:
        waiting = children_of(server)
    assert len(waiting) == 8
    os.kill(min(waiting), signal.SIGKILL)
    (answer,) = answers_of(process, lowered(file))
    assert answer.failure is not None
    assert "ZeroDivisionError" in answer.failure.message
    process.stop()
    assert not wait_until_gone(waiting)


def test_answers_for_jobs_that_share_a_process_do_not_wait_for_the_last(
    process: Worker, write: Write, tmp_path: Path
) -> None:
    quick = Path(write("print('printed')\nkernel = PrimFunc(None)")).rename(tmp_path / "quick.py")
    gate = tmp_path / "gate"
    wait = f"import pathlib, time\nwhile not pathlib.Path({str(gate)!r}).exists(): time.sleep(0.01)\nkernel = None"
    slow = Path(write(wait)).rename(tmp_path / "slow.py")
    first, last = (DiscoverJob(str(file), timeout=60, number=n) for n, file in enumerate((quick, slow)))
    process.send(first, more=True)
    process.send(last)
    answers: list[tuple[Job, Answer]] = []
    while not answers and select.select([process], [], [], 20)[0]:
        answers = process.receive()
    assert [(job, answer.output) for job, answer in answers] == [(first, "printed\n")]
    gate.touch()
    while process.running:
        answers += process.receive()
    assert [job for job, _ in answers] == [first, last]


@pytest.mark.slow
def test_time_that_others_took_is_no_failure(process: Worker, write: Write) -> None:
    """The limit is for one job: what is left undone in a process that has spent it is done again in another."""
    spin = (
        "import time\nend = time.process_time() + 0.75\nwhile time.process_time() < end: pass\nkernel = PrimFunc(None)"
    )
    files = [Path(write(spin)).rename(Path(write(spin)).with_name(f"k{n}.py")) for n in range(3)]
    jobs = [DiscoverJob(str(file), timeout=1, number=n) for n, file in enumerate(files)]
    for job in jobs:
        process.send(job, more=job is not jobs[-1])
    answers: list[Answer] = []
    while process.running:
        answers += [answer for _, answer in process.receive()]
    assert [answer.failure for answer in answers] == [None] * len(jobs)


@pytest.mark.parametrize("code", ["os.abort()", "raise ValueError", "import nowhere; nowhere.there()"])
def test_a_failure_names_the_line_in_the_users_file(worker: Client, write: Write, lowered: MakeJob, code: str) -> None:
    file = write(f"import os\n\ndef helper():\n    {code}\n\ndef kernel():\n    helper()")
    failure = only(worker, lowered(file)).failure
    assert failure is not None
    assert failure.where == f"{file}:6"


def test_what_was_printed_before_a_crash_is_the_message(worker: Client, write: Write, lowered: MakeJob) -> None:
    file = write("import os\ndef kernel():\n    os.write(2, b'CHECK failed: lanes == 4\\n')\n    os.abort()")
    failure = only(worker, lowered(file)).failure
    assert failure is not None
    assert failure.message == "SIGABRT: CHECK failed: lanes == 4"


def test_a_busy_loop_ends_after_its_processor_time(worker: Client, write: Write, lowered: MakeJob) -> None:
    result = only(worker, lowered(write("def kernel():\n    while True: pass"), timeout=0.5))
    assert result.failure is not None
    assert (result.failure.kind, result.failure.message) == ("timeout", "no end after 0.5 s of processor time")
    assert 0.5 <= result.answer.cpu < 3  # what the message says; the system counts whole seconds only roughly


def test_a_sleep_ends_after_ten_times_that_wall_time(worker: Client, write: Write, lowered: MakeJob) -> None:
    result = only(worker, lowered(write("import time\ndef kernel(): time.sleep(600)"), timeout=0.1))
    assert result.failure is not None
    assert (result.failure.kind, result.failure.message) == ("timeout", "no end after 1 s of wall time")
    assert result.answer.wall > 0.9
    assert result.answer.cpu < 1


def test_a_gigabyte_of_output_costs_no_memory(worker: Client, write: Write, lowered: MakeJob) -> None:
    source = (
        "def kernel():\n    for _ in range(1024): os.write(1, b'x' * 2**20)\n    print('end', flush=True)\n    1 / 0"
    )
    source = f"import os\n{source}"
    result = only(worker, lowered(write(source)))
    assert result.failure is not None
    assert "ZeroDivisionError" in result.failure.message
    assert result.answer.output.endswith("xend\n")
    assert len(result.answer.output) == OUTPUT_TAIL
    peaks = [peak_memory(pid) for pid in children_of(os.getpid())]
    assert max(peaks) < 200 * 2**20


def test_what_a_kernel_file_starts_ends_with_it(worker: Client, write: Write, lowered: MakeJob, tmp_path: Path) -> None:
    file = write(f"""
        import subprocess
        def kernel():
            sleeper = subprocess.Popen(["sleep", "600"])
            open({str(tmp_path / "pid")!r}, "w").write(str(sleeper.pid))
            raise ValueError
        """)
    only(worker, lowered(file))
    assert not wait_until_gone({int((tmp_path / "pid").read_text())})


def test_a_killed_worker_fails_the_jobs_it_had_and_a_new_one_does_the_rest(
    write: Write, lowered: MakeJob, tmp_path: Path
) -> None:
    pid = tmp_path / "pid"
    killer = f"open({str(pid)!r}, 'w').write(str(os.getpid())); os.kill(os.getppid(), signal.SIGKILL); time.sleep(600)"
    file = write(f"import os, signal, time\n@tilelang.jit\ndef kernel(kill):\n    if kill: {killer}\n    1 / 0")
    jobs = [lowered(file, args={"kill": str(n == 1)}) for n in range(4)]
    with Client(Worker(*WORKER), parallel=1) as worker:
        kinds = [result.failure.kind for result in worker.lower(jobs) if result.failure]
    assert sorted(kinds) == ["exception", "exception", "exception", "worker"]
    assert not wait_until_gone({*children_of(os.getpid()), int(pid.read_text())})


def test_leaving_early_ends_running_jobs(write: Write, lowered: MakeJob) -> None:
    file = write("import time\n@tilelang.jit\ndef kernel(seconds):\n    time.sleep(seconds)\n    1 / 0")
    with Client(Worker(*WORKER), parallel=2) as worker:
        results = worker.lower([lowered(file, args={"seconds": "600"}), lowered(file, args={"seconds": "0"})])
        next(iter(results))
        running = children_of(os.getpid())
        assert len(running) == 2
    assert not wait_until_gone(running, seconds=0)


def test_ctrl_c_ends_everything(write: Write, tmp_path: Path) -> None:
    file = write("import time\ndef kernel():\n    time.sleep(600)")
    controller = textwrap.dedent(f"""
        from pathlib import Path
        from tlcheck.lower.client import Worker
        from tlcheck.lower.executor import LocalExecutor
        from tlcheck.worker.jobs import LowerJob
        worker = Worker(Path({str(WORKER[0])!r}), {WORKER[1]!r})
        with LocalExecutor(2) as executor:
            for number in range(2):
                executor.add(worker, LowerJob({file!r}, "kernel", output="nowhere", number=number))
            list(executor.answers())
        """)
    with subprocess.Popen(
        [sys.executable, "-c", controller], stderr=subprocess.DEVNULL, start_new_session=True
    ) as process:
        deadline = time.monotonic() + 60
        while len(running := children_of(process.pid)) < 3 and time.monotonic() < deadline:
            time.sleep(0.02)
        os.killpg(process.pid, signal.SIGINT)
        process.wait(60)
    assert len(running) == 3
    assert not wait_until_gone(running)


def test_jobs_end_with_a_controller_that_is_killed(write: Write) -> None:
    file = write("import time\ndef kernel():\n    time.sleep(600)")
    controller = textwrap.dedent(f"""
        from pathlib import Path
        from tlcheck.lower.client import Worker
        from tlcheck.lower.executor import LocalExecutor
        from tlcheck.worker.jobs import LowerJob
        worker = Worker(Path({str(WORKER[0])!r}), {WORKER[1]!r})
        with LocalExecutor(2) as executor:
            for number in range(1):
                executor.add(worker, LowerJob({file!r}, "kernel", output="nowhere", number=number))
            list(executor.answers())
        """)
    with subprocess.Popen([sys.executable, "-c", controller]) as process:
        deadline = time.monotonic() + 60
        while len(running := children_of(process.pid)) < 2 and time.monotonic() < deadline:
            time.sleep(0.02)
        process.kill()
    assert len(running) == 2
    assert not wait_until_gone(running)


def test_an_interpreter_without_tilelang_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="cannot import tilelang: ModuleNotFoundError: No module named 'tilelang'"):
        only_job(WORKER[0], {})


def test_an_import_that_crashes_is_a_usage_error(tmp_path: Path) -> None:
    (tmp_path / "tilelang.py").write_text("import os; os.write(2, b'no libcuda\\n'); os.abort()")
    with pytest.raises(UsageError, match="cannot import tilelang: no libcuda"):
        only_job(WORKER[0], {"PYTHONPATH": str(tmp_path)})


def test_no_file_descriptor_is_lost(worker: Client, write: Write, lowered: MakeJob) -> None:
    """Three belong to each process that waits for more kernels of a file; how many do differs."""
    job = lowered(write("def kernel(): raise ValueError"))
    discover = DiscoverJob(job.file)
    only(worker, job)
    (server,) = children_of(os.getpid())
    counts = []
    for _ in range(3):
        assert len(list(worker.discover([discover] * 8))) == 8
        assert len(list(worker.lower([job] * 8))) == 8
        counts.append(_settled(lambda: len(list(Path(f"/proc/{server}/fd").iterdir())) - 3 * len(children_of(server))))
    assert counts[0] == counts[2]


def _settled(count: Callable[[], int]) -> int:
    """The count when it no longer changes: a process that has answered ends a little later."""
    latest, before = count(), -1
    while latest != before:
        time.sleep(0.2)
        latest, before = count(), latest
    return latest


def test_a_core_is_never_written(write: Write, lowered: MakeJob) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_CORE)
    source = "import resource\ndef kernel():\n    print(resource.getrlimit(resource.RLIMIT_CORE)[0]); 1 / 0"
    resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))
    try:
        with Client(Worker(*WORKER)) as worker:
            assert only(worker, lowered(write(source))).answer.output.startswith("0\n")
    finally:
        resource.setrlimit(resource.RLIMIT_CORE, (soft, hard))


def only_job(python: Path, env: Mapping[str, str]) -> None:
    """Ask an interpreter for something."""
    with Client(Worker(python, env)) as client:
        list(client.discover([DiscoverJob("k.py")]))


def answers_of(worker: Worker, job: Job) -> list[Answer]:
    """Return what a job that has a process of its own comes to."""
    worker.send(job)
    answers: list[Answer] = []
    while worker.running:
        answers += [answer for _, answer in worker.receive()]
    return answers


def only(worker: Client, job: LowerJob) -> Ended:
    (result,) = worker.lower([job])
    return result


def peak_memory(pid: int) -> int:
    """Bytes."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) * 1024
    return 0
