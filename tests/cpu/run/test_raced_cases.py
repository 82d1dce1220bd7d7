"""What the author has left open is not TileLang's: neither the order of accesses nor what comes of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.cpu.checking import checked_runs, explained, installed, line_of, published, raced
from tlcheck.cli.main import main
from tlcheck.toolchain.releases import PINNED

CASES = Path(__file__).with_name("raced_cases.py")
OPEN = {  # the buffer that is raced for, the one whose order is open, who races, in which statement
    "neighbours": ("s", "s", "iterations or threads", "s[tx] = s[(tx + 1) % 128] + s[tx]"),
    "reversed_in_place": ("s", "C", "iterations or threads", "s[i] = s[255 - i]"),
    "without_barriers": ("s", "s", "iterations or threads", "C[tx] = s[127 - tx]"),
    "blocks_disagree": ("C", "C", "blocks", "C[i] = A[b, i]"),
}


@pytest.fixture(scope="module")
def checked(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The runs of the report, by case."""
    return checked_runs(CASES, tmp_path_factory.mktemp("raced"), 1)


@pytest.mark.toolchain
@pytest.mark.parametrize("case", OPEN)
def test_who_races_and_where(checked: dict[str, Any], case: str) -> None:
    raced_for, buffer, who, statement = OPEN[case]
    line = line_of(statement, CASES)
    assert raced(checked[case]["claims"]) == [(raced_for, line)]
    claims = explained(checked[case]["claims"])
    assert {claim["verdict"] for claim in claims} <= {"agreed", "proved", "undecided"}
    undecided = [claim for claim in claims if claim["verdict"] == "undecided"]
    assert {claim["buffer"] for claim in undecided} == {buffer, "C"}
    for claim in undecided:
        assert claim["reason"].startswith(f"{who} race for ")
        assert claim["reason"].endswith(f"(line {line}) in the source")


@pytest.mark.toolchain
def test_barriers_of_tilelang_are_expected_where_it_puts_them(checked: dict[str, Any]) -> None:
    assert {claim["verdict"] for claim in checked["with_tilelangs_barrier"]["claims"]} <= {"agreed", "proved"}


@pytest.mark.toolchain
@pytest.mark.usefixtures("kept_results")
def test_a_race_as_written_is_its_authors_with_both_accesses(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    installed(PINNED)
    output = tmp_path / "report.json"
    found_raced = {case: OPEN[case] for case in OPEN if case != "reversed_in_place"}  # which has an order as lowered
    cases = [f"{CASES}::{case}" for case in (*found_raced, "with_tilelangs_barrier")]
    assert main(["run", *cases, "--device", "cpu", "--arch", "sm_90", "-o", str(output)]) == 1
    *raced, right = published(output.read_text(), "run-cpu")["runs"]
    said = capsys.readouterr().out
    assert (right["written"]["answer"], right["lowered"]["answer"]) == ("no reference", "agrees")
    for found, (_, buffer, who, statement) in zip(raced, found_raced.values(), strict=True):
        line = line_of(statement, CASES)
        assert (found["written"]["answer"], found["lowered"]["answer"]) == ("races", "undecided")
        assert f"as written: RACES (line {line})   as lowered: undecided (" in said
        (finding,) = found["written"]["findings"]
        assert (finding["kind"], finding["buffer"]) == ("race", buffer)
        assert finding["message"].startswith(f"{buffer}[")
        assert finding["message"].endswith(f"; {who} race in line {line}")
        assert f"    -> the kernel's author: {finding['message']}\n" in said
        assert finding["message"].count(" of block (") == 2
