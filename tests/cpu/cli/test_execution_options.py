"""`tlcheck check` executes kernels: by default, as little or as much as is asked for, and what it says of that."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.cpu.execute.observe.test_order import without
from tests.cpu.execute.ops.thread.test_hardware import FORMS
from tlcheck.cli.main import main
from tlcheck.snapshot import codec


@pytest.fixture
def right(tmp_path: Path) -> Path:
    file = tmp_path / "right.snapshot.json"
    file.write_text(codec.dumps(FORMS["tma_2d"]))
    return file


@pytest.fixture
def wrong(tmp_path: Path) -> Path:
    """The same kernel without a barrier."""
    snapshot = FORMS["tma_2d"]
    lowered = without(snapshot.checkpoints["device-tir"], "tvm_storage_sync", 2)
    file = tmp_path / "wrong.snapshot.json"
    file.write_text(codec.dumps(replace(snapshot, checkpoints={**snapshot.checkpoints, "device-tir": lowered})))
    return file


def check(capsys: pytest.CaptureFixture[str], *argv: str | Path) -> tuple[int, str]:
    code = main(["check", *map(str, argv)])
    return code, capsys.readouterr().out


def claims(capsys: pytest.CaptureFixture[str], *argv: str | Path) -> Sequence[Any]:
    main(["check", "--format", "json", *map(str, argv)])
    (result,) = json.loads(capsys.readouterr().out)["runs"]
    found: Sequence[Any] = result["claims"]
    return found


def test_a_right_kernel_is_agreed(right: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out = check(capsys, right)
    assert code == 0
    assert out.startswith(f"ok  {right}  sm_90  same results as the source in 2 of 2 blocks, all inputs; no races")
    assert out.endswith("\n1 ok (1 output proved)\n")
    _, out = check(capsys, right, "-v")
    assert "1 output, 4 order claims, 5 legality claims: 1 proved, 9 agreed" in out
    assert "proved: B; agreed: order of B, a, b, mbarrier; accesses of A, B, a, b, mbarrier (2 of 2 blocks, " in out


def test_agreed_is_clean_with_strict_too(right: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check(capsys, right, "--strict")[0] == 0


def test_a_kernel_without_its_barrier_is_refuted(wrong: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out = check(capsys, wrong)
    assert code == 1
    assert "TLR001 unordered-accesses" in out
    assert re.search(r"^ +\d* \| .* (read|write): block \(0, 0, 0\), thread \d+", out, re.MULTILINE)


def test_quick_keeps_to_proofs(wrong: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out = check(capsys, wrong, "--quick")
    assert "same results" not in out
    assert "TLR001" not in out
    assert code == 3  # no claim is decided


@pytest.mark.parametrize(
    ("options", "blocks", "seeds"),
    [
        ((), 2, [0, 1]),
        (("--blocks", "1"), 1, [0, 1]),
        (("--blocks", "all", "--seeds", "3"), 2, [0, 1, 2]),
        (("--seed", "5", "--block", "1,0,0"), 1, [5]),
    ],
)
def test_what_is_executed_is_what_is_asked_for(
    options: tuple[str, ...], blocks: int, seeds: list[int], right: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for claim in claims(capsys, right, *options):
        executed = claim["executed"]
        assert (len(executed["blocks"]), executed["of"], executed["seeds"]) == (blocks, 2, seeds)


@pytest.mark.parametrize("block", ["2,0,0", "0,1", "0,0,1"])
def test_a_block_outside_of_the_grid_is_a_slip_of_who_asks(
    block: str, right: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out = check(capsys, right, "--block", block)
    assert (code, "refuted" in out) == (2, False)
    assert f"block {block + ',0' * (2 - block.count(','))} is not in the grid, which is 2 x 1 x 1 blocks" in out


def test_to_trace_a_block_outside_of_the_grid_is_one_line(right: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trace", str(right), "--element", "B[0, 0]", "--block", "1,2"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith("block 1,2,0 is not in the grid, which is 2 x 1 x 1 blocks")


def test_options_that_exclude_each_other(right: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for options in (("--quick", "--blocks", "2"), ("--seed", "1", "--seeds", "2"), ("--block", "0", "--blocks", "2")):
        assert main(["check", str(right), *options]) == 2
        assert capsys.readouterr().err.count("\n") == 1


def test_the_project_says_whether(
    right: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.tlcheck]\nexecute = false\n")
    monkeypatch.chdir(tmp_path)
    assert claims(capsys, right) == []
    (tmp_path / "pyproject.toml").write_text("[tool.tlcheck]\nseeds = 1\n")
    assert {tuple(claim["executed"]["seeds"]) for claim in claims(capsys, right)} == {(0,)}


def test_a_budget_that_is_none_names_its_line(
    right: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.tlcheck]\nblocks = 2\nbudget = "many"\n')
    monkeypatch.chdir(tmp_path)
    assert main(["check", str(right)]) == 2
    assert "budget in pyproject.toml:3: 'many' is no budget" in capsys.readouterr().err


def test_equal_runs_give_equal_bytes(wrong: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = (check(capsys, wrong, "--format", "json", "--no-cache") for _ in range(2))
    without_time = [re.sub(r'"seconds": [\d.]+$', "", text, flags=re.MULTILINE) for _, text in (first, second)]
    assert first[0] == second[0]
    assert without_time[0] == without_time[1] != first[1]
