"""A Ray cluster of separate processes on this machine. Not in `make test`: Ray is an extra, and is started for real.

What comes back from nodes must be, byte for byte, what this machine alone says, whatever happens to the nodes.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Thread

import pytest

from tests.cpu.checking import installed
from tlcheck.toolchain.releases import PINNED

pytest.importorskip("ray")
pytestmark = pytest.mark.timeout(3600)  # a busy machine starts ten nodes and more

RAY = Path(sys.executable).with_name("ray")
OLD = "0.1.9"
SHORT = ("matrix", "kernels", "--toolchains", PINNED, "--arch", "sm_80", "--no-cache", "--format", "json")
MATRIX = tuple(f"{OLD},{PINNED}" if word == PINNED else word for word in SHORT)
FINE = b'"state": "fine"'
MOMENTS = 10  # at which a node is killed, spread over a run
WAIT = 900.0  # seconds until what is awaited counts as one that never comes
HEADER = "import tilelang\nimport tilelang.language as T\nfrom tlcheck.case import Case\nfrom shapes import WIDTH\n\n"
KERNEL = """
@tilelang.jit
def scale_{number}(n=WIDTH):
    @T.prim_func
    def main(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32")):
        with T.Kernel(1, threads=128) as _:
            for i in T.Parallel(n):
                B[i] = A[i] * {number}
    return main

case_{number} = Case(scale_{number})
"""

Start = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture(autouse=True)
def _toolchains() -> None:
    installed(OLD), installed(PINNED)


@pytest.fixture
def port() -> int:
    return free_port()


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


# Of a node's helpers. It ends itself where they take 15 s to say which ports they chose, as on a busy machine.
AGENTS = ("runtime-env-agent-port", "metrics-export-port", "dashboard-agent-grpc-port", "dashboard-agent-listen-port")
STARTS = 5  # of a node that ends itself so, or comes to nothing


@pytest.fixture
def start(port: int, tmp_path: Path) -> Iterator[Start]:
    """Start the head, with `head=True`, or one node more; all end with the test."""
    started: list[subprocess.Popen[bytes]] = []

    def start(*, head: bool = False, **env: str) -> subprocess.Popen[bytes]:
        for _ in range(STARTS):
            process = tried(head, env)
            if process.poll() is None:
                return process
        raise AssertionError("no node starts: see node-*.log")

    def tried(head: bool, env: Mapping[str, str]) -> subprocess.Popen[bytes]:
        place = ["--head", "--port", str(port), "--include-dashboard=false"] if head else ["--address", address(port)]
        command = [str(RAY), "start", *place, "--node-ip-address=127.0.0.1", "--disable-usage-stats", "--block"]
        command += ["--num-cpus", "0" if head else "1", "--object-store-memory", "100000000"]
        command += [word for name in AGENTS for word in (f"--{name}", str(free_port()))]
        log = tmp_path / f"node-{len(started)}.log"
        with log.open("wb") as file:
            patient = {**os.environ, "RAY_raylet_start_wait_time_s": "300", "RAY_AUTH_MODE": "disabled", **env}
            process = subprocess.Popen(
                command, env=patient, stdout=file, stderr=file, cwd=tmp_path, start_new_session=True
            )
        started.append(process)
        if not comes(lambda: b"Ray runtime started" in log.read_bytes() or process.poll() is not None, 100):
            kill(process)
        return process

    yield start
    for process in started:
        kill(process)


def address(port: int) -> str:
    return f"127.0.0.1:{port}"


def wait_for(holds: Callable[[], bool], seconds: float = WAIT) -> None:
    """Wait until something holds; the test fails where it never does."""
    assert comes(holds, seconds)


def comes(holds: Callable[[], bool], seconds: float) -> bool:
    """Wait until something holds, and say whether it did in time."""
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def kill(process: subprocess.Popen[bytes]) -> None:
    """End a node as a power cut does: all of its processes at once, those that are in sessions of their own too."""
    if process.poll() is not None:
        return
    for pid in [process.pid, *descendants(process.pid)]:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    process.wait()


def descendants(pid: int) -> list[int]:
    """All processes below one: Ray starts some in threads."""
    found: list[int] = []
    with suppress(OSError):
        for children in Path(f"/proc/{pid}/task").glob("*/children"):
            found += [int(child) for child in children.read_text().split()]
    return [*found, *(below for child in found for below in descendants(child))]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Six kernels in two files, which import a third one from another folder."""
    project = tmp_path / "project"
    (project / "kernels").mkdir(parents=True)
    (project / "lib").mkdir()
    (project / "pyproject.toml").write_text('[tool.tlcheck]\npythonpath = ["lib"]\n')
    (project / "lib" / "shapes.py").write_text("WIDTH = 512\n")
    for name, numbers in {"a": range(2, 6), "b": range(6, 8)}.items():
        text = "".join(KERNEL.format(number=number) for number in numbers)
        (project / "kernels" / f"{name}.py").write_text(HEADER + text)
    return project


def begin(folder: Path, *arguments: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tlcheck", *arguments]
    return subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)


def run(folder: Path, *arguments: str) -> tuple[bytes, str]:
    out, err = begin(folder, *arguments).communicate(timeout=WAIT)
    return out, err.decode()


def test_a_cluster_says_what_one_machine_says_whatever_its_nodes_do(
    start: Start, port: int, folder: Path, tmp_path: Path
) -> None:
    alone, _ = run(folder, *MATRIX)
    assert alone.count(FINE) == 12
    start(head=True)
    no_index = {"PIP_INDEX_URL": "http://127.0.0.1:9/", "PIP_CONFIG_FILE": os.devnull, "PIP_RETRIES": "0"}
    unable = {"TLCHECK_CACHE": str(tmp_path / "empty"), **no_index}
    start(**unable)
    victim = start()

    started = begin(folder, *MATRIX, "--cluster", address(port))
    late = Thread(target=start)  # what the victim has not done is its
    late.start()
    wait_for(lambda: jobs(victim) > 0)
    kill(victim)
    out, err = started.communicate(timeout=WAIT)
    late.join()

    assert out == alone, err.decode()
    assert "tlcheck: node " in err.decode()
    assert " does without 0.1." in err.decode()


def test_a_node_may_die_at_any_moment(start: Start, port: int, folder: Path) -> None:
    alone, _ = run(folder, *SHORT)
    assert alone.count(FINE) == 6
    start(head=True)
    nodes = [start(), start()]
    command = (*SHORT, "--cluster", address(port))
    started = working(folder, nodes, *command)
    began = time.monotonic()
    assert started.communicate(timeout=WAIT)[0] == alone
    whole, in_time = time.monotonic() - began, 0
    for moment in range(MOMENTS):
        started = working(folder, nodes, *command)
        time.sleep(whole * moment / MOMENTS)
        victim = max(nodes, key=lambda node: len(descendants(node.pid)))  # the one that has most to do
        at, running = jobs(victim), started.poll() is None
        kill(victim)
        nodes = [*(node for node in nodes if node is not victim), start()]
        out, err = started.communicate(timeout=WAIT)
        print(f"killed after {moment} of {MOMENTS}: running {running}, {at} jobs there, equal {out == alone}")
        assert out == alone, err.decode()
        in_time += running
    assert in_time >= MOMENTS // 2


def working(folder: Path, nodes: Sequence[subprocess.Popen[bytes]], *command: str) -> subprocess.Popen[bytes]:
    """Begin a command, and wait for its first job."""
    started = begin(folder, *command)
    wait_for(lambda: started.poll() is not None or any(map(jobs, nodes)))
    return started


def jobs(node: subprocess.Popen[bytes]) -> int:
    """Return how many jobs a node is at: each is a copy of a worker, which has imported tilelang."""
    return sum(len(workers(worker)) for worker in workers(node.pid))


def workers(pid: int) -> list[int]:
    """The workers below a process."""
    return [each for each in descendants(pid) if is_worker(each)]


def is_worker(pid: int) -> bool:
    with suppress(OSError):
        return b"worker/__main__.py" in Path(f"/proc/{pid}/cmdline").read_bytes()
    return False


def test_ctrl_c_leaves_no_job_behind(start: Start, port: int, folder: Path) -> None:
    start(head=True)
    node = start()
    started = begin(folder, *MATRIX, "--cluster", address(port))
    wait_for(lambda: jobs(node) > 0)
    at_work = workers(node.pid)  # who outlives its parent is below the node no more
    started.send_signal(signal.SIGINT)
    started.communicate(timeout=WAIT)
    assert started.returncode == 130
    wait_for(lambda: not any(is_worker(pid) for pid in at_work) and not workers(node.pid))


SUMS = """import tilelang
import tilelang.language as T

@tilelang.jit
def sums():
    @T.prim_func
    def main(A: T.Tensor((64, 8), "float16"), O: T.Tensor((64,), "float16"), X: T.Tensor((64,), "float16")):
        with T.Kernel(1, threads=64) as _:
            tx = T.get_thread_binding()
            X[tx] = A[tx, 0] + T.float16(1)
            O[tx] = T.float16(0)
            for k in T.vectorized(8):
                O[tx] = O[tx] + A[tx, k]
    return main
"""


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (("reduce",), b"T.vectorized"),
        (("fix",), b"TIR_DISABLE_VECTORIZE=True: all claims agree"),
        (("report", "--reduced"), b"# [Bug] tl.VectorizeLoop: `O` is read before it is written"),
    ],
    ids=["reduce", "fix", "report"],
)
def test_nodes_try_what_one_machine_tries(
    start: Start, port: int, folder: Path, command: tuple[str, ...], said: bytes
) -> None:
    (folder / "kernels" / "sums.py").write_text(SUMS)
    kernel = ("kernels/sums.py::sums", "--toolchain", OLD, "--arch", "sm_80", "--no-cache", "-q")
    command = (*command, *kernel)
    alone, told = run(folder, *command)
    assert said in alone, told
    assert command[0] != "reduce" or b"X" not in alone.split(b"import tilelang\n")[1]
    start(head=True)
    nodes = [start(), start()]
    started = working(folder, nodes, *command, "--cluster", address(port))
    out, err = started.communicate(timeout=WAIT)
    assert out == alone, err.decode()


def test_what_does_not_travel_is_one_line(start: Start, port: int, folder: Path, tmp_path: Path) -> None:
    start(head=True)
    (tmp_path / "outside.py").write_text(HEADER)
    elsewhere = run(folder, "check", "../outside.py", "--cluster", address(port))[1]
    assert elsewhere.startswith("tlcheck: error: --cluster: ../outside.py is not below the current folder")
    nobody = run(folder, "check", "kernels", "--cluster", "127.0.0.1:1")[1]
    assert nobody.startswith("tlcheck: error: --cluster 127.0.0.1:1: ")
    assert nobody.count("\n") == 1
