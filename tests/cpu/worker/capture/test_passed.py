"""Kernels that a script compiles are executed on what its calls passed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cpu.checking import installed, published
from tlcheck.cli.lowered import lowered
from tlcheck.cli.main import main
from tlcheck.lower.scripts import Scripts
from tlcheck.lower.selection import Selection
from tlcheck.lower.session import Settings
from tlcheck.toolchain.releases import PINNED

# Two equal places would race. No size is a multiple of a block.
SCRIPT = """
import torch, tilelang
import tilelang.language as T

@tilelang.jit
def scatter(block=64):
    n = T.dynamic("n")
    @T.prim_func
    def main(P: T.Tensor((n,), "int32"), X: T.Tensor((n,), "float32"), Y: T.Tensor((n,), "float32")):
        with T.Kernel(T.ceildiv(n, block), threads=block) as bx:
            for i in T.Parallel(block):
                if bx * block + i < n:
                    Y[P[bx * block + i]] = X[bx * block + i]
    return main

kernel = scatter()
for n in (200, 77):
    places = torch.randn(n, device="cuda").argsort().int()
    left = torch.empty(n, device="cuda")
    kernel(places, torch.randn(n, device="cuda"), left)
    kernel(places.flip(0).contiguous(), left, torch.empty(n, device="cuda"))
"""


@pytest.mark.slow
@pytest.mark.toolchain
@pytest.mark.parametrize("seeds", [(), (0,)])
def test_calls_are_kept_only_for_who_executes(
    seeds: tuple[int, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed(PINNED)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "calls.py").write_text(SCRIPT)
    settings = Settings(cache=False, scripts=Scripts(), arch=("sm_90",), seeds=seeds)
    (kernel,) = lowered([Selection(tmp_path / "calls.py")], settings)
    assert kernel.snapshot is not None
    assert (kernel.inputs is not None) == bool(seeds)


@pytest.mark.slow
@pytest.mark.toolchain
def test_calls_say_what_a_kernel_is_executed_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    installed(PINNED)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").write_text("[tool.tlcheck]\n")
    (tmp_path / "calls.py").write_text(SCRIPT)
    (tmp_path / "alone.py").write_text(SCRIPT.partition("for n in")[0])
    keeping = ["--save", "kept", "--with-inputs"]
    (tmp_path / "counts.py").write_text(SCRIPT.partition("for n in")[0].replace("= X[", "= Y[P[bx * block + i]] + X["))
    assert main(["check", "calls.py", "alone.py", "counts.py", "--arch", "sm_90", "--format", "json", *keeping]) == 0
    runs = published(capsys.readouterr().out, "check")["runs"]
    alone, called, counted = sorted(runs, key=lambda run: str(run["file"]))
    assert {claim["verdict"] for claim in called["claims"]} == {"agreed"}
    executed = called["claims"][0]["executed"]
    assert (executed["sizes"], executed["also"], executed["inputs"]) == ({"n": 200}, [{"n": 77}], ["the script's"])
    (kept,) = map(str, (tmp_path / "kept").glob("calls-*"))
    assert main(["check", kept, "--format", "json"]) == 0
    (again,) = published(capsys.readouterr().out, "check")["runs"]
    assert [claim["executed"] for claim in again["claims"]] == [claim["executed"] for claim in called["claims"]]
    assert {claim["verdict"] for claim in alone["claims"]} == {"agreed"}
    assert alone["claims"][0]["executed"]["inputs"] == ["random, no two equal in P"]
    (output,) = [claim for claim in counted["claims"] if claim["kind"] == "output"]
    assert (output["verdict"], output["code"]) == ("undecided", "U018")


# A parameter that this configuration does not use, and one that it does.
OPTIONAL = """
import torch, tilelang
import tilelang.language as T

@tilelang.jit
def scale(n, by_factor, block=64):
    @T.prim_func
    def main(X: T.Tensor((n,), "float32"), Y: T.Tensor((n,), "float32"), F: T.Tensor((n,), "float32")):
        with T.Kernel(T.ceildiv(n, block), threads=block) as bx:
            for i in T.Parallel(block):
                if by_factor:
                    Y[bx * block + i] = X[bx * block + i] * F[bx * block + i]
                else:
                    Y[bx * block + i] = X[bx * block + i]
    return main

x, y, factors = torch.ones(128, device="cuda"), torch.empty(128, device="cuda"), torch.full((128,), 2.0, device="cuda")
scale(128, False)(x, y, None)
torch.testing.assert_close(y, x)
scale(128, True)(x, y, factors)
assert y[0].item() == 2
"""


@pytest.mark.slow
@pytest.mark.toolchain
def test_none_is_passed_for_a_tensor_that_the_kernel_does_not_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    installed(PINNED)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").write_text("[tool.tlcheck]\n")
    (tmp_path / "optional.py").write_text(OPTIONAL)
    (tmp_path / "missing.py").write_text(OPTIONAL.replace("(x, y, factors)", "(x, y, None)"))
    assert main(["check", "optional.py", "--format", "json"]) == 0
    runs = published(capsys.readouterr().out, "check")["runs"]
    assert [run["claims"][0]["executed"]["inputs"] for run in runs] == [["the script's"]] * 2
    main(["check", "missing.py", "--format", "json"])
    (note,) = published(capsys.readouterr().out, "check")["notes"]
    assert "NoValuesError" in note
    assert "the kernel accesses F, for which None was passed" in note
