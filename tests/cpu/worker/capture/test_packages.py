"""Kernels in packages and their tests: how their imports are found, and what is told of what ends them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import pytest

from tests.cpu.checking import installed, published
from tlcheck.cli.main import main
from tlcheck.toolchain.releases import PINNED
from tlcheck.worker.packages import import_path, place_of, project_folders

KERNEL = """
import tilelang
import tilelang.language as T
from ..common import half

@tilelang.jit(out_idx=[1])
def double(n, block=64):
    @T.prim_func
    def main(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32")):
        with T.Kernel(n // block, threads=half(block)) as bx:
            for i in T.Parallel(block):
                B[bx * block + i] = A[bx * block + i] * 2.0
    return main
"""
RUN = 'if __name__ == "__main__":\n    double(128)'
SLEEP = "double(128)\nimport time\ntime.sleep(600)"
REFUSED = """
import pytest
from pkg.ops.run import double, narrow, refused, tilelang

def test_refused():
    with pytest.raises(ValueError, match="k_dim 12"):
        refused(12)

def test_refused_by_a_pass():
    with pytest.raises(Exception, match="divisible by 16"):
        narrow(8)

def test_right():
    double(256)
"""
POOL = """
from concurrent.futures import ThreadPoolExecutor
import tilelang
from pkg.ops.run import double

def test_pool():
    prims = [double.get_tir(n) for n in (64, 192)]
    with ThreadPoolExecutor() as pool:
        list(pool.map(tilelang.compile, prims))
"""
REFUSED_KERNEL = """
@tilelang.jit
def refused(n):
    @T.prim_func
    def main(A: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=128) as bx:
            a = T.alloc_shared((64, n), "float16")
            c = T.alloc_fragment((64, 64), "float32")
            T.gemm(a, a, c, transpose_B=True)
            T.copy(c, A)
    return main

@tilelang.jit
def narrow(m):
    @T.prim_func
    def main(A: T.Tensor((m, 64), "float32")):
        with T.Kernel(1, threads=128) as bx:
            a = T.alloc_shared((m, 64), "float16")
            b = T.alloc_shared((64, 64), "float16")
            c = T.alloc_fragment((m, 64), "float32")
            T.gemm(a, b, c)
            T.copy(c, A)
    return main
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package in folders, one of them without an `__init__.py`."""
    for file, text in {
        "pyproject.toml": "[tool.tlcheck]\n[tool.pytest.ini_options]\naddopts = '--no-such-plugin'\n",
        "pkg/__init__.py": "",
        "pkg/common.py": "def half(n):\n    return n // 2\n",
        "pkg/ops/run.py": KERNEL + REFUSED_KERNEL + RUN,
        "pkg/ops/library.py": KERNEL.replace("double", "twice"),
        "tests/test_pool.py": POOL,
        "tests/test_refused.py": REFUSED,
        "tests/test_skipped.py": "import pytest\npytest.skip('wants two GPUs', allow_module_level=True)\n",
        "tests/sub/conftest.py": "from tilelang import gone_since\n",
        "tests/sub/test_conftest.py": "def test_nothing(): pass\n",
    }.items():
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(textwrap.dedent(text))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def check(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, Any]:
    code = main(["check", *argv, "--format", "json"])
    return code, published(capsys.readouterr().out, "check")


def test_places_of_modules(project: Path) -> None:
    run = place_of(project / "pkg" / "ops" / "run.py")
    assert (run.root, run.name, run.package, run.relative) == (project, "pkg.ops.run", "pkg.ops", True)
    test = place_of(project / "tests" / "test_pool.py")
    assert (test.root, test.name, test.relative) == (project / "tests", "test_pool", False)
    (project / "src").mkdir()
    assert project_folders(project / "pkg" / "ops" / "run.py") == [project, project / "src"]
    assert import_path(project / "pkg" / "common.py") == ([project / "pkg"], [project, project / "src"])


@pytest.mark.slow
@pytest.mark.toolchain
def test_modules_are_run_in_their_package(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    installed(PINNED)
    code, report = check(capsys, "pkg")
    assert (code, [run["case"] for run in report["runs"]]) == (0, ["pkg/ops/run.py::double[n=128]"])
    notes = "\n".join(report["notes"])
    assert "pkg/ops/library.py (sm_90): defines twice, which nothing in it compiles" in notes
    assert main(["check", "pkg/ops/library.py::twice", "--arg", "n=-4"]) == 2
    assert "A would have the shape (-4,)" in capsys.readouterr().out
    assert main(["capture", "pkg/ops/run.py", "-o", "elsewhere/kept"]) == 0
    capsys.readouterr()
    code, report = check(capsys, "elsewhere/kept/run_cases.py")
    assert (code, [run["case"] for run in report["runs"]]) == (0, ["elsewhere/kept/run_cases.py::double_case"])


@pytest.mark.slow
@pytest.mark.toolchain
def test_a_case_file_names_each_folder_once(project: Path) -> None:
    installed(PINNED)
    (project / "scripts").mkdir()
    (project / "scripts" / "go.py").write_text("from pkg.ops.run import double\ndouble(128)\n")
    assert main(["capture", "scripts/go.py", "-o", "kept", "--pythonpath", "."]) == 0
    assert Path("kept/go_cases.py").read_text().count('".."') == 1


@pytest.mark.slow
@pytest.mark.toolchain
def test_tests_of_a_folder_are_run(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    installed(PINNED)
    code, report = check(capsys, "tests")
    runs = {run["case"]: (run["failure"] or {"message": ""})["message"] for run in report["runs"]}
    assert code == 3
    message = runs.pop("tests/sub/test_conftest.py")
    assert "conftest" in message
    assert "cannot import name 'gone_since'" in message
    kernels = ["test_pool.py::double[n=64]", "test_pool.py::double[n=192]", "test_refused.py::double[n=256]"]
    assert sorted(runs.items()) == sorted((f"tests/{kernel}", "") for kernel in kernels)
    notes = "\n".join(report["notes"])
    assert "tests/test_refused.py (sm_90): 2 kernels refused, as it expects: refused[n=12], narrow[m=8]" in notes
    assert "failed" not in notes
    assert "1 test skipped: wants two GPUs" in notes


@pytest.mark.slow
@pytest.mark.toolchain
def test_a_signal_keeps_what_is_done(project: Path, tmp_path: Path) -> None:
    installed(PINNED)
    (project / "slow.py").write_text(KERNEL.replace("from ..", "from pkg.") + SLEEP)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    command = [sys.executable, "-m", "tlcheck", "check", "slow.py", "pkg/ops/run.py", "--jobs", "1", "--save", "kept"]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "TMPDIR": str(scratch)}
    process = subprocess.Popen(
        [*command, "--format", "json", "-o", "report.json"], stderr=subprocess.PIPE, text=True, env=env
    )
    for _ in range(2400):
        if any(file.stat().st_size > 1000 for file in scratch.glob("tlcheck-*/*.zip")):
            break
        time.sleep(0.1)
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=120)
    assert "interrupted: reporting what is done" in said
    assert process.returncode == 128 + signal.SIGTERM
    report = json.loads(Path("report.json").read_text())
    runs = {run["case"]: (run["failure"] or {"message": ""})["message"] for run in report["runs"]}
    assert runs["slow.py::double[n=128]"] == "", "a kernel that was captured is judged"
    assert runs["pkg/ops/run.py"] == "interrupted"
    assert any("slow.py" in note and "interrupted" in note for note in report["notes"])
    assert [file.name for file in Path("kept").iterdir()] == ["slow-double[n=128]-sm_90-0.1.15.snapshot.json"]
    assert [file.name for file in scratch.iterdir() if "tlcheck" in file.name] == []


@pytest.mark.slow
@pytest.mark.toolchain
def test_a_signal_while_a_kernel_is_lowered_leaves_no_folder(project: Path, tmp_path: Path) -> None:
    installed(PINNED)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    command = [sys.executable, "-m", "tlcheck", "check", "pkg/ops/run.py", "--no-cache"]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "TMPDIR": str(scratch)}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env)
    while not (begun := list(scratch.rglob("tlcheck-capture-*"))) and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=120)
    assert begun
    assert [file.name for file in scratch.iterdir() if "tlcheck" in file.name] == []
