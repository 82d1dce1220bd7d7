"""Tolerances and distances."""

from __future__ import annotations

import math

import pytest

pytest.importorskip("torch")

import torch

from tlcheck.worker.gpu import output_errors
from tlcheck.worker.gpu.output_errors import Tolerance

FLOAT32, FLOAT16 = 2.0**-24, 2.0**-11
REFERENCE = ("reference in float32", 1e-7)


def test_a_tolerance_is_the_sum_of_its_parts() -> None:
    found = output_errors.tolerance(torch.float32, True, 400, "float16", REFERENCE)
    parts = dict(found.parts)
    assert parts["result in float32"] == FLOAT32
    assert parts["sum of 400 in float32"] == pytest.approx(20 * FLOAT32)
    assert parts["rounded to float16 on the way"] == FLOAT16
    assert found.bound == pytest.approx(2 * (FLOAT32 + 1e-7 + 20 * FLOAT32 + FLOAT16))


def test_sums_are_kept_in_memory_where_an_output_is_updated() -> None:
    in_memory = output_errors.tolerance(torch.float16, True, 400, "", REFERENCE)
    in_registers = output_errors.tolerance(torch.float16, False, 400, "", REFERENCE)
    assert dict(in_memory.parts)["sum of 400 in float16"] == pytest.approx(20 * FLOAT16)
    assert dict(in_registers.parts)["sum of 400 in float32"] == pytest.approx(20 * FLOAT32)


def test_integers_have_no_tolerance() -> None:
    assert output_errors.tolerance(torch.int32, True, 400, "", REFERENCE).bound == 0


@pytest.mark.parametrize(
    ("value", "wrong"), [(math.nan, True), (math.inf, True), (3.5, True), (1.0, False), (1.0 + 1e-4, False)]
)
def test_one_element_is_judged_by_its_own_size_and_the_typical_one(value: float, wrong: bool) -> None:
    ref = torch.ones(100, dtype=torch.float64)
    out = ref.float()
    out[7] = value
    found = output_errors.compare(out, ref, Tolerance(1e-4, ()), exact=False)
    assert bool(found.wrong[7]) == wrong
    assert int(found.wrong.sum()) == wrong
    assert found.worst == (7 if value != 1.0 else 0)


def test_equal_infinities_do_not_differ() -> None:
    ref = torch.tensor([math.inf, -math.inf, 1.0], dtype=torch.float64)
    assert not bool(output_errors.compare(ref.float(), ref, Tolerance(1e-4, ()), exact=False).wrong.any())
    found = output_errors.compare(-ref.float(), ref, Tolerance(1e-4, ()), exact=False)
    assert found.wrong.tolist() == [True, True, True]


def test_exact_results_are_rounded_once() -> None:
    ref = torch.tensor([1.0, 2049.0], dtype=torch.float64)
    assert not bool(output_errors.compare(ref.half(), ref, Tolerance(0, ()), exact=True).wrong.any())
    off = ref.half().nextafter(torch.tensor(torch.inf).half())
    assert output_errors.compare(off, ref, Tolerance(1, ()), exact=True).wrong.tolist() == [True, True]


def test_the_index_of_an_offset() -> None:
    assert [output_errors.index(offset, (2, 3, 4)) for offset in (0, 5, 23)] == [[0, 0, 0], [0, 1, 1], [1, 2, 3]]


ROUNDED = torch.tensor([1, 2, 3, 4], dtype=torch.int8)


@pytest.mark.parametrize(
    ("out", "narrow", "wrong"),
    [
        ([1, 2, 3, 5], [1, 2, 3, 4], [False, False, False, True]),  # no rounding decides
        ([1, 2, 3, 5], [1, 2, 3, 5], [False] * 4),  # as float32 has it
        ([2, 2, 3, 4], [1, 2, 3, 5], [False] * 4),  # at another tie
        ([3, 2, 3, 4], [1, 2, 3, 5], [True, False, False, False]),  # farther off than a tie
        ([2, 3, 3, 4], [1, 2, 3, 5], [True, True, False, False]),  # at more elements than there are ties
        ([1, 2, 3, 90], [1, 2, 3, 90], [False] * 4),  # an index that float32 chooses
        ([50, 2, 3, 4], [1, 2, 3, 90], [True, False, False, False]),  # one that nothing chooses, nearer than float32's
        ([2, 2, 3, 4], [1, 2, 3, 90], [True, False, False, False]),  # a neighbour where rounding only chooses
    ],
)
def test_an_integer_that_hangs_on_rounding_may_be_what_float32_has(
    out: list[int], narrow: list[int], wrong: list[bool]
) -> None:
    sides = [torch.tensor(values, dtype=torch.int8) for values in (out, narrow)]
    found = output_errors.compare(sides[0], ROUNDED, Tolerance(0, ()), exact=False, narrow=sides[1])
    assert (found.wrong.tolist(), found.error > 0) == (wrong, any(wrong))
