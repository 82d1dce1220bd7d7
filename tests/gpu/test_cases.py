"""The project's own cases on a GPU: right in the pinned release, wrong as predicted in older ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cpu.prove.oracle import Kernel
from tests.gpu.conftest import Runner, find_toolchain
from tlcheck.cli.main import main
from tlcheck.snapshot import codec
from tlcheck.toolchain.releases import PINNED

SMALL = ("cases/atomics.py::tile_x4", "cases/atomics.py::annotated_gemm", "cases/topk_selector.py")
REAL = ("cases/attention_sink_bwd.py::causal", "cases/indexer_logits.py::factored", "cases/topk_selector.py")


def test_all_cases_pass_and_are_what_was_checked(run: Runner) -> None:
    code, report = run("cases", "--exact", "--seeds", "3")
    (examination,) = report["examinations"]
    assert code == 0
    assert {r["status"] for r in examination["runs"] if not r["excused"]} == {"passed"}
    assert {r["source"] for r in examination["runs"] if r["status"] == "passed"} == {"same"}
    assert examination["device"]["name"]


def test_a_witness_is_what_the_device_does(run: Runner, tmp_path: Path) -> None:
    """Every lane goes to an element of its own instead of B[0]: predicted from the IR, element by element."""
    torch = pytest.importorskip("torch")
    case = "cases/atomics.py::invariant_global"
    code, report = run(case, "--record", tmp_path / "traces", "--seeds", "1", release="0.1.14")
    ((found,),) = [e["runs"] for e in report["examinations"]]
    assert (code, found["status"], [claim["finding"]["rule"] for claim in found["refuted"]]) == (
        0,
        "failed",
        ["TLA001"],
    )
    assert found["excused"]
    trace = torch.load(tmp_path / "traces" / "atomics-invariant_global" / "inputs-0.pt", weights_only=True)
    source, before = trace["inputs"]
    for addition in additions(tmp_path, case):
        _, memory, element = addition.value
        assert memory == "A"
        before[addition.offset] += source[element]
    assert torch.equal(before, trace["outputs"]["B"])
    assert bool(before[:4].all())
    witness = found["refuted"][0]["finding"]["witness"]
    (trial,) = found["trials"]
    watched = {element["offset"]: element for element in trial["outputs"]["B"]["watched"]}
    for offset in (witness["intended"], witness["written"]):
        assert watched[offset]["got"] == float(before[offset]) != watched[offset]["expected"]


def additions(folder: Path, case: str) -> Any:
    """Return what the lowered code adds, by the oracle that runs it in plain Python."""
    main(["check", case, "--arch", "sm_90", "--toolchain", find_toolchain("0.1.14"), "--save", str(folder / "saved")])
    (snapshot,) = (folder / "saved").glob("*.json")
    return Kernel(codec.loads(snapshot.read_text())).additions("device-tir", {"blockIdx.x": 0})


def test_a_misaligned_vector_stops_the_device(run: Runner) -> None:
    code, report = run("cases/attention_sink_bwd.py::full", "--seeds", "1", release="0.1.7")
    ((found,),) = [e["runs"] for e in report["examinations"]]
    assert (code, found["status"]) == (0, "failed")
    assert [f["kind"] for f in found["findings"]] == ["fault"]
    assert found["findings"][0]["message"].startswith("misaligned address")
    assert [(a["rule"], a["buffer"]) for a in found["refuted"]] == [("TLA001", "dQ")]
    assert "1366" in found["excused"]


def test_another_release_gives_the_recorded_outputs(run: Runner, tmp_path: Path) -> None:
    traces = tmp_path / "traces"
    assert run(*SMALL, "--record", traces, "--seeds", "1")[0] == 0
    assert run(*SMALL, "--replay", traces, release="0.1.14")[0] == 0


def test_the_same_release_is_as_fast_as_itself(run: Runner) -> None:
    pinned = find_toolchain(PINNED)
    code, report = run(*REAL, "--from", pinned, "--to", pinned)
    assert code == 0
    assert [case["change"]["verdict"] for case in report["cases"]] == ["same"] * len(REAL)


def test_the_gate_has_the_evidence_of_both_sides(tmp_path: Path) -> None:
    """An upgrade that fixes the misaligned vector, and the way back."""
    old, new = find_toolchain("0.1.7"), find_toolchain(PINNED)
    shown = {}
    for before, after in ((old, new), (new, old)):
        output = tmp_path / "gate.json"
        command = [
            "gate",
            "--from",
            before,
            "--to",
            after,
            "cases/attention_sink_bwd.py::full",
            "--arch",
            "sm_90",
            "--run",
            "--seeds",
            "1",
        ]
        code = main([*command, "--format", "json", "-o", str(output)])
        report = json.loads(output.read_text())
        if report["device"]["to"]["missing"]:
            pytest.skip(report["device"]["to"]["missing"])
        (compared,) = report["comparisons"]
        (outcome,) = (o for o in compared["outcomes"] if o["kind"] == "device")
        shown[after] = code, outcome["class"], outcome["before"], outcome["after"]
    bug = "failed (misaligned address)"
    assert shown == {new: (0, "fixed", bug, "passed"), old: (1, "wrong", "passed", bug)}
