"""Mistakes of a kernel's author are refuted and theirs; what depends on drawn numbers is undecided."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.cpu.checking import checked_runs, line_of

CASES = Path(__file__).with_name("faulty_cases.py")
FAULTS = {  # rule, buffer, statement, and a part of the witness
    "uncleared": ("TLS003", "c", "T.gemm(a, b, c)", "read of c[0, 0], which nothing has set"),
    "bins_not_cleared": ("TLS003", "counts", "T.atomic_add(H[tx], counts[tx])", "read of counts[0]"),
    "past_the_end": ("TLS002", "s", "B[bx * 128 + tx] = s[tx + 1] - s[tx]", "access of s[128]"),
    "half_a_barrier": ("TLS004", "T.sync_threads", "T.sync_threads()", "128 threads"),
    "crowded": ("TLS001", "counts", "counts[K[bx * 128 + tx] % 64] += 1", "nothing orders the read of block"),
}
DRAWN = {"scattered": "B", "gathered": "B"}  # and the output that is undecided


@pytest.fixture(scope="module")
def checked(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The runs of the report, by case."""
    return checked_runs(CASES, tmp_path_factory.mktemp("faulty"), 1)


@pytest.mark.toolchain
@pytest.mark.parametrize("case", FAULTS)
def test_a_fault_is_refuted_at_its_line(checked: dict[str, Any], case: str) -> None:
    rule, buffer, statement, witness = FAULTS[case]
    (claim,) = [claim for claim in checked[case]["claims"] if claim["verdict"] == "refuted"]
    finding = claim["finding"]
    assert (claim["kind"], claim["buffer"], finding["rule"], finding["blame"]) == ("source", buffer, rule, "author")
    lines = CASES.read_text().splitlines()
    assert lines[claim["source"]["line"] - 1].strip() == statement
    assert witness in finding["words"]
    if case != "half_a_barrier":  # which statement is there several times
        assert claim["source"]["line"] == line_of(statement, CASES)
    assert not [claim for claim in checked[case]["claims"] if claim["verdict"] == "undecided"]


@pytest.mark.toolchain
@pytest.mark.parametrize("case", DRAWN)
def test_of_drawn_numbers_nothing_is_refuted(checked: dict[str, Any], case: str) -> None:
    undecided = [claim for claim in checked[case]["claims"] if claim["verdict"] == "undecided"]
    assert {claim["verdict"] for claim in checked[case]["claims"]} <= {"agreed", "undecided"}
    assert {claim["buffer"] for claim in undecided} == {DRAWN[case]}
    assert all("declare `inputs` in the case" in claim["reason"] for claim in undecided)


@pytest.mark.toolchain
def test_a_barrier_that_tilelang_makes_one_of_fewer_threads_is_right(checked: dict[str, Any]) -> None:
    assert {claim["verdict"] for claim in checked["half_a_barrier_synced"]["claims"]} == {"agreed"}


@pytest.mark.toolchain
def test_threads_that_read_what_they_wrote_are_not_accused(checked: dict[str, Any]) -> None:
    assert "refuted" not in {claim["verdict"] for claim in checked["replicas"]["claims"]}
