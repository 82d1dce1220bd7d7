"""A block-scaled product, as TileLang lowers it for sm_100: against NumPy, and with one thing changed."""

from __future__ import annotations

from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

from tests.cpu.execute.compare.test_tensor_memory_kernels import changed, fixture, gone, more, verdicts
from tests.cpu.mutations.tools import called, integer, with_argument, with_call, with_statement
from tlcheck.execute.compare.both_levels import execute
from tlcheck.execute.request import ALL, Request
from tlcheck.execute.worlds.levels import BothLevels
from tlcheck.execute.worlds.scale_words import scale_words
from tlcheck.snapshot.ir import Evaluate
from tlcheck.snapshot.walk import statements

KERNEL, PRODUCT = "scaled-0.1.15", "tcgen05_gemm_blockscaled"
SIZE, TERMS, GRAIN = 128, 256, 64


def test_it_is_executed_to_the_end() -> None:
    found = execute(fixture(KERNEL), Request())
    assert verdicts(found) == {"C": "agreed"}
    assert not found.races


def test_factors_are_followed_from_tensor_memory_to_the_arguments() -> None:
    assert scale_words(fixture(KERNEL).checkpoints["source"]) == {"FA": "ue8m0", "FB": "ue8m0"}


def test_a_product_with_factors_that_is_written_as_a_gemm_has_its_factors() -> None:
    """As 0.1.12 writes it: strides, offsets, packing and waits stand between the flag that clears and the mbarrier."""
    snapshot = fixture(KERNEL)
    source = snapshot.checkpoints["source"]
    product = next(s.value for s in statements(source.body) if isinstance(s, Evaluate) and called(s) == PRODUCT)
    between = tuple([integer(value) for value in (GRAIN, GRAIN, 0, 0, 1, 0)])
    older = replace(product, value="gemm", args=(*product.args[:10], *between, *product.args[10:]))
    function = with_call(source, product, older)
    found = execute(replace(snapshot, checkpoints={**snapshot.checkpoints, "source": function}), Request())
    assert verdicts(found) == {"C": "agreed"}


def test_each_term_has_the_factors_of_its_row_and_column() -> None:
    rng = np.random.default_rng(1)
    a, b = (rng.integers(-8, 9, (SIZE, TERMS)).astype(ml_dtypes.float8_e4m3fn) for _ in range(2))
    octets = [rng.integers(120, 135, (SIZE, TERMS // GRAIN)) for _ in range(2)]
    words = [(o << (8 * np.arange(4))).sum(axis=1).astype(np.uint32) for o in octets]
    given = {"A": a, "B": b, "FA": words[0], "FB": words[1], "C": np.zeros((SIZE, SIZE), np.float32)}
    snapshot = fixture(KERNEL)
    names = {buffer.name: str(buffer.data.value) for buffer in snapshot.checkpoints["source"].buffers}
    sets = {0: {names[name]: array for name, array in given.items()}}
    levels = BothLevels(snapshot, Request(blocks=ALL, seeds=(0,), given=sets, plain=True))
    lowered = levels.lowered_invocation(levels.source_run[1])
    lowered.run()
    scaled = [
        m.astype(np.float64) * np.repeat(np.exp2(o - 127.0), GRAIN, axis=1) for m, o in zip((a, b), octets, strict=True)
    ]
    assert np.array_equal(lowered.left[names["C"]].outcome(0).values, (scaled[0] @ scaled[1].T).reshape(-1))


@pytest.mark.parametrize(
    ("name", "number", "at", "by"),
    [
        ("ptx_tcgen05_mma_blockscaled_ss", 0, 10, 4),  # the factors of B for A
        ("ptx_tcgen05_mma_blockscaled_ss", 0, 12, -4),
        ("ptx_tcgen05_cp_warpx4", 0, 2, 4),
    ],
)
def test_factors_of_other_columns_are_noticed(name: str, number: int, at: int, by: int) -> None:
    assert verdicts(changed(name, number, more(at, by), KERNEL)) == {"C": "refuted"}


def test_the_same_byte_for_all_steps_is_noticed() -> None:
    base = 144703488
    found = changed("ptx_tcgen05_mma_blockscaled_ss", 0, lambda s: with_argument(s, 7, lambda e: integer(base)), KERNEL)
    assert verdicts(found) == {"C": "refuted"}


@pytest.mark.parametrize("name", ["ptx_tcgen05_sf_warp_transpose", "ptx_tcgen05_cp_warpx4"])
def test_factors_that_are_not_where_they_are_read_are_noticed(name: str) -> None:
    assert verdicts(changed(name, 0, gone, KERNEL)) == {"C": "refuted"}


def test_a_tile_with_factors_of_two_words_is_undecided() -> None:
    """TileLang numbers the factors of a tile modulo 4, and takes them all from one word (issue 2644, C14)."""
    snapshot = fixture(KERNEL)
    source = snapshot.checkpoints["source"]
    product = next(s for s in statements(source.body) if called(s) == PRODUCT)
    last = len(product.value.args) - 1 if isinstance(product, Evaluate) else 0
    later = with_statement(source, product, more(last, 4 * GRAIN - TERMS // 4 // 2))
    found = execute(replace(snapshot, checkpoints={**snapshot.checkpoints, "source": later}), Request())
    assert {o.reason for o in found.outputs} == {"a block-scaled product with factors of 64 terms in several words"}
