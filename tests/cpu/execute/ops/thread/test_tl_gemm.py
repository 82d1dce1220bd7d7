"""The device library's products: each element has one register, and the fragments are those of the instructions."""

from __future__ import annotations

import numpy as np
import pytest

from tests.fixtures.index import FOLDER
from tlcheck.execute.compare.both_levels import execute
from tlcheck.execute.memory.values import kind_of
from tlcheck.execute.ops.thread import mma, tl_gemm, wgmma
from tlcheck.execute.request import Request
from tlcheck.execute.stops import NotModelled
from tlcheck.snapshot.codec import loads

MMA = "tl::gemm_ss<32, 128, 64, 2, 4, 1, 0, 0, 32, 128, 0, 0, false>"
WGMMA = "tl::gemm_ss<128, 128, 64, 8, 1, 0, 1, 1, 64, 64, 0, 0, true, -1>"
SPLIT = "tl::gemm_rs<64, 128, 64, 4, 2, 0, 1, 1, 64, 64, 0, 0, true>"
OLD = "tl::gemm_ss<64, 64, 64, 2, 2, 0, 0, 0, 64, 64, 0, 0>"


@pytest.mark.parametrize("text", [MMA, WGMMA, SPLIT, OLD])
def test_each_sum_is_in_one_register(text: str) -> None:
    form = tl_gemm._form(text)
    row, column = form.sums(form.threads)
    assert sorted((row * form.n + column).reshape(-1).tolist()) == list(range(form.m * form.n))


@pytest.mark.parametrize("text", [MMA, WGMMA, SPLIT, OLD])
def test_each_factor_is_in_one_register_of_each_column_of_warps(text: str) -> None:
    form = tl_gemm._form(text)
    row, column = form.factors(form.threads)
    _, warp_n = form.place_of(np.arange(form.threads))
    for part in range(form.warps_n):
        found = (row * form.k + column)[:, warp_n == part]
        assert sorted(found.reshape(-1).tolist()) == list(range(form.m * form.k))


def test_one_warp_has_the_fragments_of_mma() -> None:
    form = tl_gemm._form("tl::gemm_rs<16, 8, 16, 1, 1, 0, 0, 0, 16, 8, 0, 0, false>")
    a_at, _, c_at = mma.fragments(16, 8, 16, kind_of("float16"))
    for found, expected in ((form.factors(32), a_at), (form.sums(32), c_at)):
        np.testing.assert_array_equal(np.stack(found, axis=-1), expected)


def test_a_warpgroup_has_the_accumulators_of_wgmma() -> None:
    form = tl_gemm._form("tl::gemm_ss<64, 96, 64, 4, 1, 0, 1, 0, 64, 64, 0, 0, true>")
    for found, expected in zip(form.sums(128), wgmma._accumulator(96), strict=True):
        np.testing.assert_array_equal(found, np.broadcast_to(expected, found.shape))


def test_warps_of_mma_take_neighbouring_atoms() -> None:
    """Warp 1 of 2 x 4 is one atom down, warp 2 one atom to the right."""
    row, column = tl_gemm._form(MMA).sums(256)
    assert (row[0, 0], column[0, 0]) == (0, 0)
    assert (row[0, 32], column[0, 32]) == (16, 0)
    assert (row[0, 64], column[0, 64]) == (0, 8)


@pytest.mark.parametrize(
    "text",
    [
        "tl::gemm_sr<64, 64, 64, 2, 2, 0, 0, 0, 64, 64, 0, 0, false>",
        "tl::gemm_ss<64, 64, 64, 2, 2, 0, 0, 0, 64, 64, 0, 32, false>",
        "tl::gemm_ss<64, 64, 64, 2, 2, 0, 0, 0, 64, 64, 0, 0, true>",
    ],
    ids=["B in registers", "offset", "half a warpgroup"],
)
def test_other_forms_are_not_modelled(text: str) -> None:
    with pytest.raises(NotModelled, match="gemm"):
        tl_gemm._form(text)


@pytest.mark.parametrize("name", ["annotated_gemm", "cast_bf16", "loop_pipelined"])
def test_a_kernel_with_them_is_legal_and_in_order(name: str) -> None:
    """They fence registers themselves."""
    found = execute(
        loads((FOLDER / f"era/{name}-0.1.6.post2.snapshot.json").read_text()), Request(blocks=1, seeds=(0,))
    )
    assert found.illegal is None
    assert found.races == ()
    assert {"a", "w"} <= set(found.lawful)
