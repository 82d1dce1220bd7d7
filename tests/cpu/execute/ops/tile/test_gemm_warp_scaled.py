"""T.mma_gemm_blockscaled against NumPy, for each place of the factors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

from tests.cpu.execute.ops.tile.building import Array, Kernel, buffer, call, flag, number, region
from tlcheck.execute.stops import NotModelled
from tlcheck.execute.worlds.scale_words import scale_words

ROWS, TERMS = 64, 128
NUMBERS = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.5, -1, -1.5, -2, -3, -4, -6])


def _found(
    layout: str, words: Sequence[Array] | Array, start: int = 0, bits: str = "float4_e2m1fn"
) -> tuple[Array, Array, Array]:
    """C, A and B after one product into zeros."""
    random = np.random.default_rng(0)
    a, b = random.choice(NUMBERS, (ROWS, TERMS)), random.choice(NUMBERS, (ROWS, TERMS))
    kernel = Kernel(threads=128)
    sides = [kernel.tensor(name, bits, values) for name, values in (("A", a), ("B", b))]
    of = [kernel.tensor(f"F{name}", "uint32", values) for name, values in zip("AB", words, strict=True)]
    target, sums = (
        kernel.tensor("C", "float32", [ROWS, ROWS]),
        kernel.tile("sums", "float32", [ROWS, ROWS], "local.fragment"),
    )
    notes = {"sf_a_granularity_k": "16", "sf_b_granularity_k": "16", "sf_layout": layout}
    sizes = [number(n) for n in (ROWS, ROWS, TERMS, 0)]
    args = [*map(region, (*sides, sums)), flag(False), flag(True), *sizes, flag(True), *[number(0)] * 3]
    product = call("gemm_blockscaled", *args, *map(region, of), number(start), notes=notes)
    assert scale_words(kernel.function(product)) == dict.fromkeys(("FA", "FB"), "ue4m3" if "4_" in bits else "ue8m0")
    return kernel.run(product, call("copy", region(sums), region(target)))["C"], a, b


def _scaled(a: Array, octets: Array) -> Array:
    return np.asarray(a * octets.view(ml_dtypes.float8_e4m3fn).astype(np.float64).repeat(16, axis=1))


def test_a_row_of_words_for_each_row() -> None:
    octets = np.random.default_rng(1).integers(48, 72, (2, ROWS, 16)).astype(np.uint8)
    found, a, b = _found("rowmajor", octets.view(np.uint32), start=128)
    assert np.array_equal(found, _scaled(a, octets[0, :, 8:]) @ _scaled(b, octets[1, :, 8:]).T)


def test_words_of_all_rows_for_each_64_terms() -> None:
    octets = np.random.default_rng(1).integers(48, 72, (2, ROWS, 8)).astype(np.uint8)
    words = octets.view(np.uint32)
    laid = np.zeros((2, ROWS * 2), np.uint32)
    for row in range(ROWS):
        for part in range(2):
            laid[:, part * ROWS + row % 32 * 2 + row // 32] = words[:, row, part]
    found, a, b = _found("blockscaled_chunk_kmajor", laid.reshape(2, ROWS, 2), start=128)
    assert np.array_equal(found, _scaled(a, octets[0]) @ _scaled(b, octets[1]).T)


def test_factors_beyond_what_is_given_and_other_types() -> None:
    words = np.zeros((ROWS, 2), np.uint32)
    with pytest.raises(NotModelled, match="factors beyond"):
        _found("rowmajor", (words, words), start=64)
    with pytest.raises(NotModelled, match="gemm_blockscaled of float8_e4m3fn"):
        _found("rowmajor", (words, words), bits="float8_e4m3fn")


def test_factors_are_followed_through_copies() -> None:
    kernel = Kernel()
    source, other = kernel.tensor("F", "uint32", [4, 4]), kernel.tensor("N", "uint32", [4, 4])
    tile = kernel.tile("tile", "uint32", [4, 4])
    copies = [call("copy", region(source), region(tile)), call("copy", region(other), region(replace(other, name="M")))]
    product = call(
        "tcgen05_gemm_blockscaled", region(buffer("A", "float8_e4m3fn", [4])), region(tile), region(tile), number(0)
    )
    assert scale_words(kernel.function(*copies, product)) == {"F": "ue8m0"}
