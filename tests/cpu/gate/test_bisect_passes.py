"""Which pass makes a kernel wrong."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.cpu.checking import INVARIANT, RIGHT, WRONG, installed, make_run, published
from tlcheck.cli.main import main
from tlcheck.errors import UsageError
from tlcheck.gate.bisect_passes import judge_passes
from tlcheck.snapshot.ir import Snapshot
from tlcheck.toolchain.releases import PINNED
from tlcheck.verdicts.results import read_snapshot

PASSES = {
    "source": "",
    "intent": "tl.Simplify",
    "tile-ops": "tl.LayoutInference",
    "lower-tile-op": "tl.LowerTileOp",
    "type-cast": "pass_fn",
}
NAMES = {**PASSES, "vectorize-loop": "tl.VectorizeLoop", "device-tir": "tir.Simplify"}


def every_pass(file: Path) -> Snapshot:
    """A saved snapshot as if its checkpoints were all the passes that there are."""
    saved = read_snapshot(file)
    names = {f"{n:03}-{NAMES[name]}": name for n, name in enumerate(saved.checkpoints)}
    checkpoints = {key: saved.checkpoints[name] for key, name in names.items()}
    return replace(saved, checkpoints=checkpoints, passes={key: NAMES[name] for key, name in names.items()})


@pytest.mark.parametrize(
    ("file", "states", "guilty"),
    [
        (WRONG, ["wrong"] * 3, ["tl.LowerTileOp"]),
        (INVARIANT, ["right", "right", "wrong", "wrong"], ["tl.VectorizeLoop"]),
        (RIGHT, ["right"] * 4, []),
    ],
)
def test_the_first_pass_after_which_it_is_wrong(file: Path, states: list[str], guilty: list[str]) -> None:
    found = judge_passes(make_run(), every_pass(file))
    assert [point.state for point in found.row.points] == states
    assert [g.pass_name for g in found.guilty] == guilty


def test_the_tir_before_and_after_it() -> None:
    (guilty,) = judge_passes(make_run(), every_pass(INVARIANT)).guilty
    removed = [line[1:].strip() for line in guilty.difference if line.startswith("-")]
    added = [line[1:].strip() for line in guilty.difference if line.startswith("+")]
    assert any(line.startswith("T.atomic_add_elem_op(") for line in removed)
    assert any(line.startswith("T.atomic_addx4_elem_op(") for line in added)


def test_a_snapshot_of_checkpoints_is_refused() -> None:
    with pytest.raises(UsageError, match="nothing to judge passes by"):
        judge_passes(make_run(), read_snapshot(RIGHT))


@pytest.mark.toolchain
@pytest.mark.parametrize(
    ("case", "release", "name"),
    [
        ("cases/atomics.py::annotated_gemm", "0.1.7", "tl.LowerTileOp"),
        ("cases/atomics.py::invariant_rows", "0.1.14", "tl.VectorizeLoop"),
    ],
)
def test_a_real_kernel(
    case: str, release: str, name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    installed(release)
    monkeypatch.chdir(Path(__file__).parents[3])
    argv = ["bisect", case, "--arch", "sm_90", "--toolchain", release, "--passes"]
    assert main([*argv, "--format", "json"]) == 1
    (row,) = published(capsys.readouterr().out, "bisect")["rows"]
    assert [guilty["pass"] for guilty in row["guilty"]] == [name]
    assert len(row["points"]) > 40
    assert row["points"][-1]["state"] == "wrong"


@pytest.mark.slow
@pytest.mark.toolchain
@pytest.mark.usefixtures("kept_results")
@pytest.mark.parametrize(
    ("case", "arch", "release", "name", "output"),
    [
        ("gemm --arg m=32 --arg n=32 --arg k=160 --arg block=32", "sm_80", "0.1.9", "tl.InjectSoftwarePipeline", "C"),
        ("reused", "sm_90", "0.1.13", "tl.ProducerConsumerWarpSpecialized", "R"),
    ],
)
def test_an_output_is_executed_after_every_pass(
    case: str,
    arch: str,
    release: str,
    name: str,
    output: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    installed(release)
    monkeypatch.chdir(Path(__file__).parents[3])
    argv = [
        "bisect",
        *f"tests/wrong_code/kernels.py::{case}".split(),
        "--arch",
        arch,
        "--toolchain",
        release,
        "--passes",
    ]
    assert main([*argv, "--format", "json"]) == 1
    (row,) = json.loads(capsys.readouterr().out)["rows"]
    assert [guilty["pass"] for guilty in row["guilty"] if guilty["finding"]["buffer"] == output] == [name]
    states = {point["at"]: point["state"] for point in row["points"]}
    assert states[name] == "wrong"
    assert row["points"][0]["state"] == "right"


@pytest.mark.toolchain
@pytest.mark.usefixtures("kept_results")
def test_what_the_code_generator_does_is_no_fault_of_a_pass(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A difference of 8 bits wraps in TIR and is an int in CUDA; its inputs are those that the whole kernel has."""
    installed(PINNED)
    monkeypatch.chdir(Path(__file__).parents[3])
    case = ["tests/wrong_code/kernels.py::widened", "--arch", "sm_80", "--toolchain", PINNED]
    assert main(["bisect", *case, "--passes", "--format", "json"]) == 1
    (row,) = json.loads(capsys.readouterr().out)["rows"]
    (guilty,) = row["guilty"]
    assert (guilty["pass"], guilty["number"]) == ("", len(row["points"]) + 1)
    *before, last = [point["state"] for point in row["points"]]
    assert (set(before), last) == ({"right"}, "wrong")
