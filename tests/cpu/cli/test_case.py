"""`tlcheck case`: the stub of a case with a reference."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cpu.checking import installed, published
from tlcheck.cli.main import main
from tlcheck.toolchain.releases import PINNED

KERNEL = """\
import tilelang
import tilelang.language as T
from tlcheck.case import Case


@tilelang.jit
def scale(M, N=64, block=64, dtype="float32"):
    @T.prim_func
    def main(A: T.Tensor((M, N), dtype), B: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(M, block), threads=128) as bx:
            for i, j in T.Parallel(block, N):
                B[bx * block + i, j] = A[bx * block + i, j] * 2.0

    return main


def helper():
    pass


small = Case(scale, args={"M": 128}, targets=("sm_90",))
"""


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("k.py").write_text(KERNEL)


def refused(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    assert main(["case", *argv]) == 2
    return capsys.readouterr().err


def test_a_kernel_function(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["case", "k.py::scale", "--arg", "M=128", "--arg", "dtype=float16"]) == 0
    assert capsys.readouterr().out.startswith("k_cases.py: fill in `reference`, then `tlcheck run k_cases.py ")
    text = Path("k_cases.py").read_text()
    compile(text, "k_cases.py", "exec")
    assert "from k import scale\n" in text
    assert '        "M": 128,\n        "N": 64,\n' in text
    assert '"dtype": "float16"' in text
    assert "torch.randn((M, N), generator=generator, device=device).to(getattr(torch, dtype)),  # A" in text
    assert ".to(torch.float32),  # B" in text
    assert 'return {"B": B.double()}' in text
    assert "is there" in refused(capsys, "k.py::scale", "--arg", "M=128")
    assert main(["case", "k.py::scale", "--arg", "M=1", "--force", "-o", "k_cases.py"]) == 0
    assert '"M": 1,' in Path("k_cases.py").read_text()


def test_a_declared_case_gets_a_reference() -> None:
    assert main(["case", "k.py::small", "-o", "other.py"]) == 0
    text = Path("other.py").read_text()
    compile(text, "other.py", "exec")
    assert text.endswith("small_referenced = replace(small, inputs=inputs, reference=reference)\n")


def test_what_is_missing_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert "scale needs --arg M=..." in refused(capsys, "k.py::scale")
    assert "scale has no build argument 'K'; it takes M, N, block, dtype" in refused(capsys, "k.py::scale", "--arg=K=1")
    assert "did you mean scale?" in refused(capsys, "k.py::scales")
    assert "no T.prim_func with tensors stands in it" in refused(capsys, "k.py::helper")
    assert "name a kernel" in refused(capsys, "k.py")
    assert "no such file" in refused(capsys, "nowhere.py::scale")
    Path("bad.py").write_text("def f(:\n")
    assert "bad.py:1: " in refused(capsys, "bad.py::f")
    assert not Path("k_cases.py").exists()


@pytest.mark.slow
@pytest.mark.toolchain
@pytest.mark.usefixtures("kept_results")
def test_what_is_written_is_checked_and_has_a_reference(capsys: pytest.CaptureFixture[str]) -> None:
    installed(PINNED)
    main(["case", "k.py::scale", "--arg", "M=128"])
    capsys.readouterr()
    assert main(["check", "k_cases.py", "--arch", "sm_90"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("ok  k_cases.py::scale_case  sm_90  same results as the source in ")
    assert "no reference" not in out
    assert main(["check", "k.py::small", "--format", "json"]) == 0
    assert published(capsys.readouterr().out, "check")["runs"][0]["case"] == "k.py::small"
    assert main(["check", "k.py::small"]) == 0
    assert "`tlcheck case k.py::small` writes the stub of a case with a reference" in capsys.readouterr().out
