"""A copied TileLang with edited Python, by its path: lowered for real, and called by path and commit."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import textwrap
from pathlib import Path

import pytest

from tests.cpu.checking import installed
from tlcheck.cli.main import main
from tlcheck.config import Config
from tlcheck.toolchain import environment
from tlcheck.toolchain.health import examine
from tlcheck.toolchain.releases import PINNED

pytestmark = [pytest.mark.toolchain, pytest.mark.usefixtures("kept_results"), pytest.mark.xdist_group("checkout")]

KERNEL = """
    import tilelang.language as T

    from tlcheck.case import Case

    def reversal():
        @T.prim_func
        def main(A: T.Tensor((128,), "float32"), B: T.Tensor((128,), "float32")):
            with T.Kernel(1, threads=128) as _:
                staged = T.alloc_shared((128,), "float32")
                for i in T.Parallel(128):
                    staged[i] = A[i]
                for i in T.Parallel(128):
                    T.atomic_add(B[i], staged[127 - i])
        return main

    reverse = Case(reversal, targets=("sm_80",))
"""


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the pinned release's `tilelang` folder whose pipeline synchronizes no threads, its Python in git."""
    root = tmp_path_factory.mktemp("copies") / "edited"
    toolchain = installed(PINNED)
    packages = environment.site_packages(toolchain.python.parents[1])
    shutil.copytree(packages / "tilelang", root / "tilelang", symlinks=True)
    pipeline = root / "tilelang" / "cuda" / "pipeline.py"
    lines = pipeline.read_text().splitlines(keepends=True)
    kept = [line for line in lines if "ThreadSync(" not in line]
    assert len(kept) < len(lines)
    git = ["git", "-C", str(root), "-c", "user.name=a", "-c", "user.email=a@b"]
    for command in (["init", "-q"], ["add", "tilelang/__init__.py", "tilelang/cuda"], ["commit", "-q", "-m", "one"]):
        subprocess.run([*git, *command], check=True)
    pipeline.write_text("".join(kept))
    return root


@pytest.fixture
def title(copy: Path) -> str:
    """Return what the copy is called: edited after its commit."""
    command = ["git", "-C", str(copy), "rev-parse", "--short=9", "HEAD"]
    return f"{copy} at {subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()}+"


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> str:
    file = tmp_path_factory.mktemp("case") / "kernels.py"
    file.write_text(textwrap.dedent(KERNEL))
    return str(file)


@pytest.mark.slow
def test_its_barriers_are_gone(copy: Path, case: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = []
    for toolchain in (PINNED, str(copy)):
        assert main(["dump", case, "--toolchain", toolchain, "--at", "device-tir"]) == 0
        found.append(capsys.readouterr().out.count("tvm_storage_sync"))
    assert found == [1, 0]


@pytest.mark.slow
def test_the_gate_says_so_and_what_it_is_called(
    copy: Path, title: str, case: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    command = ["gate", case, "--from", PINNED, "--to", str(copy / "tilelang"), "--format", "text,json"]
    assert main([*command, "-o", str(tmp_path / "reports")]) == 1
    told = capsys.readouterr().out
    assert "barrier removed" in told
    assert "TLR001" in told
    assert f"tilelang {PINNED} -> {PINNED} ({title.replace(' at ', '/tilelang at ')})" in told
    side = json.loads((tmp_path / "reports" / "gate.json").read_text())["to"]
    assert side["name"] == str(copy / "tilelang")
    assert side["versions"]["commit"] == title.rpartition(" at ")[2]


@pytest.mark.slow
def test_so_do_check_and_doctor(copy: Path, title: str, case: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", case, "--toolchain", str(copy)]) == 1
    told = " ".join(capsys.readouterr().out.split())  # however long the path is, and where its line ends
    assert "TLR001 unordered-accesses" in told
    assert f"[TileLang {PINNED} ({title}), sm_80]" in told
    in_use = next(item for item in examine(Config(toolchain=str(copy))) if item.name == "in use")
    assert (in_use.state, in_use.detail.endswith(f", {title} in {installed(PINNED).python}")) == ("ok", True)


@pytest.mark.slow
def test_bisect_names_the_pass_since_which_two_compilers_differ(
    copy: Path, case: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bisect", f"{case}::reverse", "--passes", "--from", PINNED, "--to", str(copy)]) == 1
    said = capsys.readouterr().out
    assert re.search(rf"they differ since tl\.ThreadSync \(\d of \d\), only in {re.escape(PINNED)}\n", said), said
    assert "-    T.tvm_storage_sync(" in said
    assert f"  {PINNED}: right\n" in said
    assert "TLR001 nothing orders two accesses to staged" in said
