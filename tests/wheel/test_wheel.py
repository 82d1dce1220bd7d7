"""The wheel, built and installed into an empty environment, used in another folder. Not in `make test`: it downloads.

What is done there is what README and the docs say: the demo kernel is checked, a project is set up, goldens are
approved, a gate is run.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cpu.checking import installed
from tlcheck.toolchain.releases import PINNED

ROOT = Path(__file__).parents[2]
Run = Callable[..., subprocess.CompletedProcess[str]]
KERNELS = """
    import tilelang
    import tilelang.language as T

    @tilelang.jit
    def scatter(n, block=128):
        @T.prim_func
        def main(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32")):
            with T.Kernel(T.ceildiv(n, block), threads=block) as bx:
                for i in T.Parallel(block):
                    T.atomic_add(B[bx * block + i], A[bx * block + i])
        return main
"""
TEST = """
    import torch
    from kernels import scatter

    def test_scatter():
        scatter(1024)(torch.ones(1024, device="cuda"), torch.zeros(1024, device="cuda"))
"""


@pytest.fixture(scope="module")
def command(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`tlcheck` as a wheel installs it, with the versions that `make` installs."""
    folder = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    subprocess.run([*pip, "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, ROOT], check=True)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / "venv"], check=True)
    (wheel,) = folder.glob("tlcheck-*.whl")
    into = ["--python", str(folder / "venv"), "install", "--quiet", "--constraint", str(ROOT / "constraints.txt")]
    subprocess.run([*pip, *into, str(wheel)], check=True)
    return folder / "venv" / "bin" / "tlcheck"


@pytest.fixture
def run(command: Path, tmp_path: Path) -> Run:
    """Runs `tlcheck` in a folder of its own; nothing of this checkout is on its path."""
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}

    def run(*arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        done = subprocess.run([command, *arguments], cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
        assert done.returncode == code, done.stdout + done.stderr
        return done

    return run


def test_a_snapshot_is_checked_and_reported_in_every_format(run: Run, tmp_path: Path) -> None:
    shutil.copy(ROOT / "tests/fixtures/demo/attention_full_0.1.7.snapshot.json", tmp_path)
    formats = "text,json,sarif,junit,markdown"
    done = run("check", "attention_full_0.1.7.snapshot.json", "--format", formats, "-o", "reports", code=1)
    assert "TLA001 lanes-not-contiguous" in done.stdout
    assert {file.suffix for file in (tmp_path / "reports").iterdir()} == {".txt", ".json", ".sarif", ".xml", ".md"}
    assert "# TLA001" in run("explain", "TLA001").stdout


@pytest.mark.toolchain
def test_a_project_is_set_up_approved_and_gated(run: Run, tmp_path: Path) -> None:
    installed(PINNED)
    for name, text in (("kernels.py", KERNELS), ("test_kernels.py", TEST)):
        (tmp_path / name).write_text(textwrap.dedent(text))
    assert "already installed" in run("toolchain", "install").stdout
    assert "; 1 atomic proved" in run("init").stdout
    run("golden", "update")
    run("golden", "accept", "--reason", "the first")
    run("golden", "check")
    assert "PASS: " in run("gate", "--to", "pinned").stdout
    assert "1 golden: 1 as approved" in run("report", "golden", "-o", "page.html").stdout
    assert (tmp_path / "page.html").stat().st_size > 0
