"""Test which pass makes a kernel wrong."""

from __future__ import annotations

import json
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from tests.cpu import wrong_kernels
from tests.cpu.checking import (
    INVARIANT,
    RIGHT,
    WRONG,
    failed,
    installed,
    make_atomic,
    make_finding,
    make_run,
    published,
)
from tlcheck.cli import bisect
from tlcheck.cli.main import main
from tlcheck.errors import UsageError
from tlcheck.execute.request import Request
from tlcheck.gate.bisect_passes import Passes, is_of_the_library, judge_passes
from tlcheck.gate.compared_passes import LoweredPasses, compare_passes
from tlcheck.report.bisect_report import Bisected, write
from tlcheck.snapshot.ir import Snapshot
from tlcheck.toolchain.releases import PINNED
from tlcheck.verdicts.results import read_snapshot

LOOP = Path("tests/fixtures/wrong/loop-0.1.15.snapshot.json")
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


def test_a_layout_of_too_few_elements_is_the_fault_of_its_pass() -> None:
    """LowerTileOp only does what LayoutInference has said: `f` has 256 elements, its layout has 100."""
    whole = every_pass(LOOP)
    (guilty,) = judge_passes(make_run(), whole, Request()).guilty
    assert guilty.pass_name == "tl.LayoutInference"
    assert guilty.notes == ("it gives f a layout for 100 of its 256 elements",)
    assert "+f: (i) -> thread i, local 0" in guilty.difference


def test_the_tir_before_and_after_it() -> None:
    (guilty,) = judge_passes(make_run(), every_pass(INVARIANT)).guilty
    removed = [line[1:].strip() for line in guilty.difference if line.startswith("-")]
    added = [line[1:].strip() for line in guilty.difference if line.startswith("+")]
    assert any(line.startswith("T.atomic_add_elem_op(") for line in removed)
    assert any(line.startswith("T.atomic_addx4_elem_op(") for line in added)


def test_the_device_library_is_to_blame_for_a_function_that_the_kernel_itself_calls() -> None:
    claim = replace(make_atomic("refuted", "B"), call="atomic_addx4_elem_op", finding=make_finding("TLA014"))
    written = ["    T.atomic_addx4_elem_op(T.access_ptr(B[0], 1, 3), T.access_ptr(A[0], 1, 1))"]
    assert is_of_the_library(claim, written)
    assert not is_of_the_library(claim, ["    T.atomic_add_elem_op(T.access_ptr(B[0], 1, 3), A[0])"])
    assert not is_of_the_library(replace(claim, finding=make_finding("TLA005")), written)


def test_a_pass_without_a_name_is_told_by_its_place() -> None:
    snapshot = every_pass(INVARIANT)
    passes = {key: "pass_fn" if name == "tl.VectorizeLoop" else name for key, name in snapshot.passes.items()}
    found = judge_passes(make_run(), replace(snapshot, passes=passes))
    unnamed = [f"pass {number} (unnamed, after tl.LowerTileOp)" for number in (4, 5)]
    assert [point.at for point in found.row.points] == ["tl.LowerTileOp", *unnamed, "tir.Simplify"]
    assert [guilty.pass_name for guilty in found.guilty] == [unnamed[1]]
    assert "  pass 5 (unnamed, after tl.LowerTileOp) makes it wrong" in reported(found)


@pytest.mark.parametrize(
    ("left_out", "line"),
    [
        (("intent", "tile-ops"), "or an earlier one: after pass 1 to pass 2 the TIR could not be saved"),
        (("tile-ops",), "or an earlier one: after pass 2 the TIR could not be saved"),
    ],
)
def test_passes_whose_tir_could_not_be_saved_may_be_guilty(left_out: tuple[str, ...], line: str) -> None:
    whole = every_pass(WRONG)
    kept = [key for key, name in whole.passes.items() if name not in [NAMES[each] for each in left_out]]
    part = replace(
        whole,
        checkpoints={key: whole.checkpoints[key] for key in kept},
        passes={key: whole.passes[key] for key in kept},
    )
    said = reported(judge_passes(make_run(), part))
    at = said.index("  tl.LowerTileOp (pass 3) makes it wrong")
    assert said[at + 1].strip() == line
    assert [guilty.role for guilty in judge_passes(make_run(), part).guilty] == ["may-break"]
    assert [guilty.role for guilty in judge_passes(make_run(), whole).guilty] == ["breaks"]
    assert not any("could not be saved" in each for each in reported(judge_passes(make_run(), whole)))


def test_what_is_equally_wrong_with_all_arguments_of_a_kernel_is_told_once() -> None:
    one, two, other = (
        judge_passes(replace(make_run(), name=name), every_pass(INVARIANT)) for name in ("f[n=1]", "f[n=2]", "g[n=1]")
    )
    said = reported(one, two, other)
    told = "  tl.VectorizeLoop (pass 5) makes it wrong"
    assert [line for line in said if line.startswith(told)] == [told, f"{told}: as in k.py::f[n=1]", told]
    assert len(said) == 2 * len(reported(one)) + 4  # that of f[n=2] has no more than its head


def reported(*found: Passes) -> list[str]:
    text = StringIO()
    write(Console(file=text, width=200), Bisected(passes=found))
    return text.getvalue().splitlines()


def test_a_compiler_that_fails_is_compared_up_to_there() -> None:
    whole = every_pass(RIGHT)
    kept = list(whole.checkpoints)[:3]
    part = replace(whole, checkpoints={key: whole.checkpoints[key] for key in kept})
    old = LoweredPasses(make_run(), whole)
    new = LoweredPasses(replace(make_run(), toolchain="./edited"), part, failed=failed(message="no such tile"))
    found = compare_passes(old, new)
    assert found.first is not None
    assert (found.first.name, found.first.new) == ("tl.LowerTileOp", None)
    file = StringIO()
    write(Console(file=file, width=200), Bisected(compared=(found,)))
    assert "  ./edited: fails  build: no such tile" in file.getvalue()


def test_a_snapshot_of_checkpoints_is_refused() -> None:
    with pytest.raises(UsageError, match="nothing to judge passes by"):
        judge_passes(make_run(), read_snapshot(RIGHT))


@pytest.mark.slow
@pytest.mark.toolchain
@pytest.mark.parametrize(
    ("case", "release", "name"),
    [
        pytest.param(case, release, name, marks=pytest.mark.xdist_group(release))
        for case, release, name in (
            ("cases/atomics.py::annotated_gemm", "0.1.7", "tl.LowerTileOp"),
            ("cases/atomics.py::invariant_rows", "0.1.14", "tl.VectorizeLoop"),
        )
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
    ("case", "arch", "release", "name", "output", "inputs"),
    [
        pytest.param(
            "gemm --arg m=32 --arg n=32 --arg k=160 --arg block=32",
            "sm_80",
            "0.1.9",
            "tl.InjectSoftwarePipeline",
            "C",
            "(random inputs of seed 0;",
            marks=pytest.mark.xdist_group("0.1.9"),
        ),
        ("reused", "sm_90", PINNED, "tl.ProducerConsumerWarpSpecialized", "R", "(inputs of seed 0;"),
        # block 0 alone shows it: beside others its copy lands while they wait
        ("empty", "sm_90", PINNED, "tl.ProducerConsumerWarpSpecialized", "R", "(inputs of seed 0;"),
    ],
)
def test_an_output_is_executed_after_every_pass(
    case: str,
    arch: str,
    release: str,
    name: str,
    output: str,
    inputs: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    installed(release)
    monkeypatch.chdir(Path(__file__).parents[3])
    file = wrong_kernels.written(case.partition(" ")[0], tmp_path)
    argv = ["bisect", *f"{file}::{case}".split(), "--arch", arch, "--toolchain", release, "--passes"]
    assert main([*argv, "--format", "json"]) == 1
    (row,) = json.loads(capsys.readouterr().out)["rows"]
    (guilty,) = (guilty for guilty in row["guilty"] if guilty["finding"]["buffer"] == output)
    assert guilty["pass"] == name
    assert inputs in guilty["finding"]["witness"]  # the case's own, where it declares some
    states = {point["at"]: point["state"] for point in row["points"]}
    assert states[name] == "wrong"
    assert row["points"][0]["state"] == "right"


@pytest.mark.slow
@pytest.mark.toolchain
@pytest.mark.usefixtures("kept_results")
def test_what_the_code_generator_does_is_no_fault_of_a_pass(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A difference of 8 bits wraps in TIR and is an int in CUDA; its inputs are those that the whole kernel has."""
    installed(PINNED)
    monkeypatch.chdir(Path(__file__).parents[3])
    case = [f"{wrong_kernels.written('widened', tmp_path)}::widened", "--arch", "sm_80", "--toolchain", PINNED]
    assert main(["bisect", *case, "--passes", "--format", "json"]) == 1
    (row,) = json.loads(capsys.readouterr().out)["rows"]
    (guilty,) = row["guilty"]
    assert (guilty["pass"], guilty["number"]) == ("", len(row["points"]) + 1)
    *before, last = [point["state"] for point in row["points"]]
    assert (set(before), last) == ({"right"}, "wrong")


@pytest.mark.slow
@pytest.mark.toolchain
@pytest.mark.usefixtures("kept_results")
@pytest.mark.parametrize("ran", [True, False])
def test_an_order_is_asked_of_the_pass_that_should_make_it(
    ran: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """0.1.15 puts no fence after a pipeline's loop; a checkout without that pass is told that it lacks it."""
    installed(PINNED)
    monkeypatch.chdir(Path(__file__).parents[3])
    if not ran:
        monkeypatch.setattr(bisect, "read_snapshot", lambda file: without(read_snapshot(file), "tl.InjectFenceProxy"))
    case = [f"{wrong_kernels.written('drained', tmp_path)}::drained", "--arch", "sm_90", "--toolchain", PINNED]
    assert main(["bisect", *case, "--passes", "--format", "json"]) == 1
    (row,) = json.loads(capsys.readouterr().out)["rows"]
    assert {guilty["pass"] for guilty in row["guilty"]} == {"tl.InjectFenceProxy"}
    places = [point["at"] for point in row["points"]]
    number = places.index("tl.InjectFenceProxy") + 1 if ran else 0
    assert {guilty["number"] for guilty in row["guilty"]} == {number}
    assert row["points"][-2]["state"] == ("wrong" if ran else "undecided")


def without(snapshot: Snapshot, name: str) -> Snapshot:
    """A snapshot of every pass as a compiler records it that does not have one of them."""
    kept = [key for key, found in snapshot.passes.items() if found != name]
    return replace(
        snapshot,
        checkpoints={key: snapshot.checkpoints[key] for key in kept},
        passes={key: snapshot.passes[key] for key in kept},
    )
