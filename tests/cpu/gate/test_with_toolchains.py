"""The gate with two real releases: the pinned one and 0.1.7."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cpu.checking import installed
from tlcheck.cli.main import main
from tlcheck.toolchain.releases import PINNED

pytestmark = [pytest.mark.toolchain, pytest.mark.xdist_group("0.1.7")]

ROOT = Path(__file__).parents[3]
OLD = "0.1.7"
ATTENTION = "cases/attention_sink_bwd.py::full"


@pytest.fixture(autouse=True)
def _root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    for release in (OLD, PINNED):
        installed(release)


def gate(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, Any]:
    """By proofs: the gate of a copied release executes, see `test_checkout`."""
    code = main(["gate", *argv, "--quick", "--arch", "sm_90", "--format", "json"])
    return code, json.loads(capsys.readouterr().out)


@pytest.mark.slow
@pytest.mark.usefixtures("kept_results")
def test_an_upgrade_that_fixes_a_bug_passes_and_the_way_back_fails(capsys: pytest.CaptureFixture[str]) -> None:
    cases = (ATTENTION, "cases/indexer_logits.py::naive")
    # Proofs alone do not decide the order of what stood behind barriers that are gone: sync-risk is let through.
    code, report = gate(capsys, "--from", OLD, "--to", PINNED, "--fail", "wrong,weaker,broken", *cases)
    attention, naive = report["comparisons"]
    assert code == 0
    assert ("fixed", "TLA001", "dQ") in [(o["class"], o["kind"], o["subject"]) for o in attention["outcomes"]]
    assert naive["class"] == "fails-in-both"
    assert report["summary"]["wrong"] == report["summary"]["broken"] == 0
    assert all(attention[side]["seconds"] > 0 for side in ("before", "after"))
    code, report = gate(capsys, "--from", PINNED, "--to", OLD, cases[0])
    (attention,) = report["comparisons"]
    assert (code, attention["class"]) == (1, "wrong")
    (wrong,) = (outcome for outcome in attention["outcomes"] if outcome["class"] == "wrong")
    assert (wrong["subject"], wrong["rule"]) == ("dQ", "TLA001")
    assert "T.atomic_add(dQ[" in Path("cases/attention_sink_bwd.py").read_text().splitlines()[wrong["line"] - 1]


@pytest.mark.parametrize(
    ("release", "case"),
    [
        # it places shared memory differently in each process
        pytest.param(OLD, "cases/attention_sink_bwd.py::causal", marks=pytest.mark.slow),
        (PINNED, "cases/atomics.py::loop_pipelined"),
    ],
)
def test_a_release_against_itself_is_the_same(capsys: pytest.CaptureFixture[str], release: str, case: str) -> None:
    code, report = gate(capsys, "--from", release, "--to", release, case)
    assert (code, report["summary"]["same"], report["groups"]) == (0, 1, [])


@pytest.mark.slow
@pytest.mark.usefixtures("kept_results")
def test_real_interpreters_that_find_no_gpu_have_run_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    code, report = gate(capsys, "--from", PINNED, "--to", PINNED, "cases/atomics.py::tile_x2", "--run", "--seeds", "1")
    found = report["device"]["to"]
    if found["gpu"] is not None:
        pytest.skip("there is a GPU")
    (compared,) = report["comparisons"]
    assert (code, compared["class"], compared["after"]["device"]["status"]) == (3, "same", "not run")
    assert compared["after"]["device"]["reason"] == f"no GPU: {found['missing']}"
