"""Bulk copies have an order with all else that a kernel does to a tensor.

An H100 left 7808 of 12288 wrong elements of the chain (0.1.15, 2026-11-23): a wait with `.read` (PTX,
cp.async.bulk.wait_group) is for what a store reads, not for what it writes.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.cpu.checking import checked_runs, explained, raced

CASES = Path(__file__).with_name("bulk_cases.py")
REFUTED = {
    "chain": {
        "W": "nothing orders two accesses to W: between them a wait for what the copy writes (without .read) is missing"
    },
}
AUTHORS = {
    "overlapping": ("blocks", 78),
    "round_trip": ("blocks", 110),
    "read_back": ("asynchronous copies", 45),
    "loaded_too_early": ("statements that only T.sync_threads orders", 60),
}
BETWEEN = {"box_stored_between": "B", "box_added_between": "B", "box_loaded_between": "A"}  # and its tensor
RIGHT = ("box_stored", "box_loaded", "read_back_after_all", "loaded", "apart", "kernels")


@pytest.fixture(scope="module")
def checked(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The runs of the report, by case."""
    return checked_runs(CASES, tmp_path_factory.mktemp("bulk"), 1)


@pytest.mark.slow
@pytest.mark.toolchain
@pytest.mark.parametrize("case", [*REFUTED, *RIGHT])
def test_what_is_refuted(checked: dict[str, Any], case: str) -> None:
    claims = checked[case]["claims"]
    wrong = [claim for claim in claims if claim["verdict"] == "refuted" and claim["excuse"] is None]  # no warning
    refuted = {claim["buffer"]: claim["finding"]["what"] for claim in wrong}
    assert refuted == REFUTED.get(case, {})
    assert {claim["verdict"] for claim in claims} - {"refuted"} <= {"agreed", "proved"}


@pytest.mark.slow
@pytest.mark.toolchain
@pytest.mark.parametrize("case", AUTHORS)
def test_what_is_the_authors(checked: dict[str, Any], case: str) -> None:
    """The order of B, and what is in it, or what is read of it."""
    (who, line), claims = AUTHORS[case], explained(checked[case]["claims"])
    assert raced(checked[case]["claims"]) == [("B", line)]
    reason = f"{who} race for B (line {line}) in the source"
    outputs = [claim for claim in claims if claim["kind"] == "output"]
    assert {claim["reason"] for claim in outputs} == {reason}
    others = {c["buffer"]: c["reason"] for c in claims if c["verdict"] == "undecided" and c["kind"] != "output"}
    assert others == {"B": reason}
    assert {claim["verdict"] for claim in claims} == {"agreed", "undecided"}


@pytest.mark.toolchain
@pytest.mark.parametrize("case", BETWEEN)
def test_a_box_that_begins_between_two_units_of_16_bytes(checked: dict[str, Any], case: str) -> None:
    """An H100 stops at each of them with "illegal instruction", and does the others (0.1.15, 2026-11-24)."""
    claims = [claim for claim in checked[case]["claims"] if claim["kind"] != "output"]
    what = f"bulk copy of a box of {BETWEEN[case]} whose innermost coordinate is no multiple of 16 bytes"
    assert [claim["finding"]["what"] for claim in claims if claim["kind"] == "legality"] == [what]
    added = [claim for claim in claims if claim["kind"] == "atomic"]
    assert [claim["verdict"] for claim in added] == ["undecided"] * (case == "box_added_between")
    assert all("does not begin at a multiple of 16 bytes" in claim["reason"] for claim in added)


@pytest.mark.toolchain
def test_a_box_that_begins_with_a_unit_is_added(checked: dict[str, Any]) -> None:
    claims = checked["box_added"]["claims"]
    assert {claim["verdict"] for claim in claims} == {"proved", "agreed"}
