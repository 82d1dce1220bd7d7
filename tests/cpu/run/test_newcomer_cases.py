"""Mistakes of newcomers that need no reference are refuted at their line, and right kernels are right."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.cpu.checking import checked_runs

pytestmark = [pytest.mark.toolchain, pytest.mark.slow]

CASES = Path(__file__).with_name("newcomer_cases.py")
RIGHT = (
    *("gemm_relu", "saxpy", "block_sum", "histogram", "transpose", "rmsnorm", "conv_row", "shuffle_sum", "embedding"),
    "replicas",
)
OPEN = ("counts_that_may_differ", "scattered_sums")  # of races that other inputs may not have
WARNED = {
    "gemm_swapped": "TLS008",  # a swapped index, of which the output is not written in full
    "half_of_the_block": "TLS004",  # a barrier that TileLang lets only the threads of the branch wait for
}
MISTAKES = {  # rule and statement
    "gemm_uncleared": ("TLS003", "T.gemm(A_shared, B_shared, C_local)"),
    "gemm_split_k": ("TLS001", "C[by * block + i, bx * block + j] += acc[i, j]"),
    "shift_left": ("TLS001", "X[bx * threads + t] = X[bx * threads + t + 1]"),
    "diff_read": ("TLS002", "Y[bx * threads + tx] = tile[tx + 1] - tile[tx]"),
    "pad_store": ("TLS002", "tile[tx + 1] = X[bx * threads + tx]"),
    "reverse_tile": ("TLS001", "Y[bx * threads + tx] = tile[threads - 1 - tx]"),
    "tree_sum_divergent": ("TLS004", "T.sync_threads()"),
    "exclusive_scan": ("TLS001", "offset[0] += Sums[b]"),
    "histogram_plain": ("TLS001", "H[X[bx * threads + tx] % bins] += 1"),
    "histogram_dirty": ("TLS003", "T.atomic_add(H[tx], counts[tx])"),
    "histogram_stored": ("TLS001", "H[tx] = counts[tx]"),
    "row_max": ("TLS003", "T.reduce_max(x, best, dim=1, clear=False)"),
    "rowdot_uncleared": ("TLS003", "acc[0] += A[bx * 64 + tx, k] * x[k]"),
    "gemv_split": ("TLS001", "y[bx * 128 + tx] += acc[0]"),
    "rotate_rows": ("TLS001", "X[bx, tx] = X[(bx + 1) % M, tx]"),
    "prefix_read": ("TLS002", "Y[bx * 16 + i, j] = s[i, j] + s[i + 1, j]"),
    "local_store": ("TLS002", "r[i] = X[bx * 512 + i * 128 + tx]"),
    "tile_transpose": ("TLS001", "B[bx * 32 + i, by * 32 + j] = s[j, i]"),
    "guarded_barrier": ("TLS004", "T.sync_threads()"),
    "normalize_by_max": ("TLS001", "T.copy(Best, every)"),
    "histogram_shared_plain": ("TLS001", "bins[b] = bins[b] + 1"),
    "histogram_unset": ("TLS003", "T.atomic_add(H[tx], bins[tx])"),
    "column_sums_stored": ("TLS001", "T.copy(s, S[0])"),
    "counts_of_bytes": ("TLS001", "bins[b] += 1"),
    "counts_of_a_tail": ("TLS001", "bins[X[i]] = bins[X[i]] + 1"),
    "counts_of_all_blocks": ("TLS001", "H[X[bx * 128 + tx]] += 1"),
    "unit_histogram_unset": ("TLS003", "T.atomic_add(H[tx], bins[tx])"),
    "running_max": ("TLS003", "total[i] = total[i] + part[i]"),
}


@pytest.fixture(scope="module")
def checked(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The runs of the report, by case."""
    return checked_runs(CASES, tmp_path_factory.mktemp("newcomers"), 1)


@pytest.mark.parametrize("case", RIGHT)
def test_a_right_kernel_is_right(checked: dict[str, Any], case: str) -> None:
    assert {claim["verdict"] for claim in checked[case]["claims"]} <= {"proved", "agreed"}


@pytest.mark.parametrize("case", MISTAKES)
def test_a_mistake_is_the_only_finding_and_has_its_line(checked: dict[str, Any], case: str) -> None:
    rule, statement = MISTAKES[case]
    (claim,) = [claim for claim in checked[case]["claims"] if claim["verdict"] == "refuted"]
    assert (claim["finding"]["rule"], claim["finding"]["blame"], claim["excuse"]) == (rule, "author", None)
    assert CASES.read_text().splitlines()[claim["source"]["line"] - 1].strip() == statement


@pytest.mark.parametrize("case", WARNED)
def test_what_may_be_meant_is_a_warning(checked: dict[str, Any], case: str) -> None:
    (claim,) = [claim for claim in checked[case]["claims"] if claim["verdict"] == "refuted"]
    assert (claim["finding"]["rule"], claim["excuse"]["kind"]) == (WARNED[case], "warning")


@pytest.mark.parametrize("case", OPEN)
def test_what_hangs_on_drawn_indices_is_undecided_once(checked: dict[str, Any], case: str) -> None:
    claims = [claim for claim in checked[case]["claims"] if claim["verdict"] != "agreed"]
    assert {claim["verdict"] for claim in claims} == {"undecided"}
    assert len({claim["reason"] for claim in claims}) == 1
    assert {claim["code"] for claim in claims} == {"U018"}
