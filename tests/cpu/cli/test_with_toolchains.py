"""Commands from end to end with real toolchains."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path
from typing import Any

import pytest

from tests.cpu.checking import installed
from tlcheck.cli.main import main
from tlcheck.toolchain.releases import PINNED

pytestmark = pytest.mark.toolchain

ROOT = Path(__file__).parents[3]
ATTENTION = "cases/attention_sink_bwd.py::full"


@pytest.fixture(autouse=True)
def _root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def check(capsys: pytest.CaptureFixture[str], *argv: str | Path) -> tuple[int, Any]:
    code = main(["check", *map(str, argv), "--format", "json", "--arch", "sm_90"])
    return code, json.loads(capsys.readouterr().out)


@pytest.mark.slow
@pytest.mark.xdist_group("0.1.7")
@pytest.mark.usefixtures("kept_results")
def test_the_attention_kernel_is_refuted_in_the_release_that_has_it_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    installed("0.1.7")
    code, report = check(capsys, f"{ATTENTION}@0.1.7", "--no-expect", "--quick")
    (run,) = report["runs"]
    dq, dv, dk = (claim for claim in run["claims"] if claim["kind"] == "atomic")
    assert code == 1
    assert (dq["buffer"], dq["verdict"], dq["finding"]["checkpoint"]) == ("dQ", "refuted", "lower-tile-op")
    assert dq["source"]["text"].startswith("T.atomic_add(dQ[")
    assert dq["finding"]["right_from"] == "0.1.7.post1"
    assert (dq["finding"]["witness"]["stride"], dq["finding"]["witness"]["lane"]) == (32, 1)
    for atomic, buffer in ((dv, "dV"), (dk, "dK")):
        assert (atomic["buffer"], atomic["verdict"]) == (buffer, "proved")
        assert {stage["status"] for stage in atomic["stages"]} == {"same"}
    code, report = check(capsys, f"{ATTENTION}@0.1.7", "--quick")
    assert (report["summary"]["expected"], report["summary"]["proved"]) == (1, 2)


@pytest.mark.slow
@pytest.mark.usefixtures("kept_results")
def test_it_is_proved_in_the_pinned_release(capsys: pytest.CaptureFixture[str]) -> None:
    """Executed with fewer keys: a block does the same for each tile of them."""
    installed(PINNED)
    code, report = check(capsys, ATTENTION, "--arg", "seq_len=256", "--blocks", "1", "--seeds", "1")
    summary = report["summary"]
    assert (code, summary["proved"], summary["refuted"], summary["undecided"]) == (0, 6, 0, 0)
    (run,) = report["runs"]
    outputs = [claim for claim in run["claims"] if claim["kind"] == "output"]
    assert {claim["buffer"] for claim in outputs} == {"dQ", "dK", "dV"}
    assert {claim["verdict"] for claim in outputs} == {"proved"}
    assert {claim["verdict"] for claim in run["claims"] if claim["kind"] in ("order", "legality")} == {"agreed"}


@pytest.mark.slow
@pytest.mark.xdist_group("0.1.14")
@pytest.mark.usefixtures("kept_results")
def test_the_pass_configuration_that_is_advised_avoids_the_finding(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    installed("0.1.14")
    source = """
        import tilelang
        import tilelang.language as T

        def kernel(n=512):
            @T.prim_func
            def main(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32")):
                with T.Kernel(1, threads=128) as _:
                    for i in T.Parallel(n):
                        T.atomic_add(B[0], A[i])
            return main

        advised = tilelang.jit(pass_configs={tilelang.PassConfigKey.PLACE: True})(kernel)
    """
    file = tmp_path / "kernels.py"
    file.write_text(textwrap.dedent(source).replace("PLACE", "TL_ENABLE_FAST_MATH"))
    _, report = check(capsys, f"{file}::kernel@0.1.14")
    advised = report["runs"][0]["claims"][0]["finding"]["pass_config"]
    assert check(capsys, f"{file}::advised@0.1.14")[0] == 1
    file.write_text(textwrap.dedent(source).replace("PLACE", advised))
    assert check(capsys, f"{file}::advised@0.1.14")[0] == 0


def test_every_pass_is_dumped(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    installed(PINNED)
    case = "cases/atomics.py::tile_x2"
    assert main(["dump", case, "--arch", "sm_90", "--every-pass", "-o", str(tmp_path)]) == 0
    capsys.readouterr()
    assert len(list(tmp_path.glob("*.py"))) > 40
    assert main(["dump", case, "--arch", "sm_90", "--every-pass", "--at", "LayoutInference"]) == 0
    assert "after tl.LayoutInference\n" in capsys.readouterr().out
