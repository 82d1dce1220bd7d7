"""Mistakes of a kernel's author are refuted and theirs; what depends on drawn numbers is undecided."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.cpu.checking import checked_runs, installed, line_of
from tlcheck.cli.main import main
from tlcheck.toolchain.releases import PINNED

CASES = Path(__file__).with_name("faulty_cases.py")
FAULTS = {  # rule, buffer, statement, and a part of the witness
    "uncleared": ("TLS003", "c", "T.gemm(a, b, c)", "read of c[0, 0], which nothing has set"),
    "bins_not_cleared": ("TLS003", "counts", "T.atomic_add(H[tx], counts[tx])", "read of counts[0]"),
    "past_the_end": ("TLS002", "s", "B[bx * 128 + tx] = s[tx + 1] - s[tx]", "access of s[128]"),
    "half_a_barrier": ("TLS004", "T.sync_threads", "T.sync_threads()", "128 threads"),
    "partly_cleared": ("TLS003", "total", "total[0] += A[bx * 128 + tx]", "read of total[0], which nothing has set"),
    "replicas_that_change": ("TLS001", "s", "s[tx // 8] = A[i, tx // 8]", "orders the write by several threads of"),
    "assumed": ("TLS005", "T.assume", "T.assume(bx * 128 + tx < 500)", "in block (3, 0, 0), thread 116"),
    "assumed_of_small_keys": ("TLS005", "T.assume", "T.assume(K[bx * 128 + tx] > 100)", "in block (0, 0, 0), thread 0"),
    "few_arrivals": ("TLS006", "full", "T.mbarrier_wait_parity(full, parity)", "wait that never ends"),
    "other_parity": ("TLS006", "full", "T.mbarrier_wait_parity(full, parity)", "wait that never ends"),
    "uncommitted": ("TLS006", "s", "T.ptx_wait_group(0)", "wait that covers no copy into s"),
    "through_a_tensor": ("TLS001", "M", "T.copy(M, every)", "nothing orders the"),
    "row_max": ("TLS003", "best", "T.reduce_max(a, best, dim=1, clear=False)", "read of best[0]"),
    "crowded": ("TLS001", "counts", "counts[K[bx * 128 + tx] % 64] += 1", "orders the read by several threads of"),
}
DRAWN = {
    "gathered": "B",
    "assumed_of_squares": "B",
    "arrivals_of_keys": "B",
}  # and the output that is undecided
RIGHT = (
    "replicas",
    "replicas_in_turn",
    "all_arrivals",
    "committed",
    "tail",
    "guarded",
    "enough_blocks",
    "padded",
    "begins_with_zero",
    "threads_by_default",
)
WARNINGS = {  # rule, buffer, statement, and a part of what is wrong
    "shifted": ("TLS007", "A", "B[bx * 128 + tx] = A[bx * 128 + tx + 1]", "A[512] is out of bounds, so that 0 is read"),
    "shifted_store": ("TLS007", "B", "B[bx * 128 + t + 1] = s[t]", "what is stored there is dropped"),
    "halo": ("TLS007", "A", "s[t] = A[bx * 128 + t - 1]", "A[-1] is out of bounds"),
    "spread": ("TLS007", "B", "B[(bx * 128 + tx) * 2] = A[bx * 128 + tx]", "what is stored there is dropped"),
    "half_a_barrier_synced": ("TLS004", "T.sync_threads", "T.sync_threads()", "in a branch that some threads"),
    "idle_wait": ("TLS006", "T.ptx_wait_group", "T.ptx_wait_group(1)", "the kernel begins no asynchronous copy"),
    "too_few_blocks": (
        "TLS008",
        "B",
        "T.copy(s, B[bx * 64, 0])",
        "writes B[192, 0], nor at least 511 others of the 12,800",
    ),
}


@pytest.fixture(scope="module")
def checked(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The runs of the report, by case."""
    return checked_runs(CASES, tmp_path_factory.mktemp("faulty"), 1)


@pytest.mark.slow
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


@pytest.mark.slow
@pytest.mark.toolchain
@pytest.mark.parametrize("case", DRAWN)
def test_of_drawn_numbers_nothing_is_refuted(checked: dict[str, Any], case: str) -> None:
    undecided = [claim for claim in checked[case]["claims"] if claim["verdict"] == "undecided"]
    assert {claim["verdict"] for claim in checked[case]["claims"]} <= {"agreed", "proved", "undecided"}
    assert {claim["buffer"] for claim in undecided} == {DRAWN[case]}
    assert all("declare `inputs` in the case" in claim["reason"] for claim in undecided)


@pytest.mark.slow
@pytest.mark.toolchain
def test_a_promise_about_one_element_is_kept_by_what_is_drawn(checked: dict[str, Any]) -> None:
    assert {claim["verdict"] for claim in checked["assumed_of_keys"]["claims"]} <= {"agreed", "proved"}


@pytest.mark.slow
@pytest.mark.toolchain
def test_places_that_must_differ_are_drawn_so_and_told(checked: dict[str, Any]) -> None:
    assert {claim["verdict"] for claim in checked["scattered"]["claims"]} <= {"agreed", "proved"}
    scopes = [claim["executed"] for claim in checked["scattered"]["claims"]]
    assert all("random, no two equal in K" in scope["inputs"] for scope in scopes)


@pytest.mark.slow
@pytest.mark.toolchain
@pytest.mark.parametrize("case", RIGHT)
def test_what_is_right(checked: dict[str, Any], case: str) -> None:
    """Threads that write one value and read what they wrote, waits that end, tails and guards."""
    assert {claim["verdict"] for claim in checked[case]["claims"]} <= {"agreed", "proved"}


@pytest.mark.slow
@pytest.mark.toolchain
def test_a_part_of_an_output_that_is_unset_is_counted(checked: dict[str, Any]) -> None:
    (claim,) = [claim for claim in checked["partly_cleared"]["claims"] if claim["verdict"] == "refuted"]
    assert "64 of 512 elements of B depend on it" in claim["finding"]["what"]


@pytest.mark.slow
@pytest.mark.toolchain
@pytest.mark.parametrize("case", WARNINGS)
def test_a_warning_is_told_at_its_line_and_is_no_error(checked: dict[str, Any], case: str) -> None:
    rule, buffer, statement, what = WARNINGS[case]
    found = [claim for claim in checked[case]["claims"] if claim["excuse"] is not None]
    (claim,) = [claim for claim in found if claim["finding"]["rule"] == rule]
    assert (claim["buffer"], CASES.read_text().splitlines()[claim["source"]["line"] - 1].strip()) == (buffer, statement)
    assert (claim["excuse"]["kind"], claim["finding"]["blame"]) == ("warning", "author")
    assert what in claim["finding"]["what"]
    assert {other["verdict"] for other in checked[case]["claims"] if other not in found} <= {"agreed", "proved"}


@pytest.mark.toolchain
@pytest.mark.parametrize(("options", "code"), [((), 0), (("--strict",), 1)])
def test_strict_makes_a_warning_an_error(
    options: tuple[str, ...], code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    installed(PINNED)
    assert main(["check", f"{CASES}::shifted", "--arch", "sm_90", *options]) == code
    assert "1 ok (1 output proved), 1 warning" in capsys.readouterr().out
