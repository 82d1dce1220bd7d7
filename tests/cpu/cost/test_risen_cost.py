"""Test what the gate says of costs that have risen: with the line, and nothing of equal ones."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.cpu.cost.kernels import cost, line_of
from tlcheck.cost.risen_cost import Threshold, line_of_access, risen


@pytest.mark.parametrize("name", ["conflicting", "apart", "narrow", "product", "product_linear", "softmax_rows"])
def test_equal_costs_say_nothing(name: str) -> None:
    assert list(risen(cost(name), cost(name))) == []


def test_a_lost_swizzle_is_told_with_its_line() -> None:
    found = list(risen(cost("product"), cost("product_linear")))
    assert {(c.kind, c.subject, c.before, c.after) for c in found} == {
        ("bank conflicts", name, "no bank conflicts", "8-way bank conflicts") for name in ("a", "b")
    }
    assert {c.line for c in found} == {line_of("T.gemm(a, b, c)")}
    assert all(0.02 < c.share < 1 for c in found)
    assert list(risen(cost("product_linear"), cost("product"))) == []


def test_scattered_accesses_are_told_with_their_line() -> None:
    (found,) = risen(cost("contiguous"), cost("apart"))
    assert (found.kind, found.subject, found.line) == ("sectors", "A", line_of("A[(b * 128 + i) * stride] + 1.0"))
    assert "4,096 instead of 512 sectors of 32 bytes" in found.words


def test_sectors_of_amd_have_64_bytes() -> None:
    apart = cost("product", "gfx942")
    sites = [replace(s, sectors=2 * s.sectors, moved=2 * s.moved) if s.space == "global" else s for s in apart.sites]
    found = [change.words for change in risen(apart, replace(apart, sites=tuple(sites))) if change.kind == "sectors"]
    assert found
    assert all("sectors of 64 bytes" in words for words in found)


def test_a_stage_less_is_told_with_a_line_of_its_copies() -> None:
    (found,) = risen(cost("product_three_stages", "sm_90"), cost("product", "sm_90"))
    assert found.kind == "copies in flight"
    assert "73,728 -> 49,152 bytes" in found.words
    assert found.line == line_of("T.copy(B[ko * bk, bx * bn], b)")


def test_lines_of_what_facts_find() -> None:
    lost = cost("product_of_32_rows", "sm_90")
    assert line_of_access(lost, "tensor cores", "") == line_of("T.gemm(a, b, c)")
    assert line_of_access(cost("narrow"), "read", "A") == line_of("T.copy(A[0:64, 0:64], tile)")
    assert line_of_access(cost("narrow"), "read", "nobody") == 0


def test_thresholds_say_what_matters() -> None:
    one, other = cost("product"), cost("product_linear")
    assert list(risen(one, other, Threshold(share=0.9))) == []
    assert list(risen(one, other, Threshold(ratio=9))) == []
    assert len(list(risen(one, other, Threshold(ratio=7.9)))) == 2


def test_fewer_blocks_on_a_multiprocessor_are_told_where_shared_memory_is_known() -> None:
    few = replace(cost("product"), resident=1, shared_bytes=90_000)
    many = replace(cost("product"), resident=3, shared_bytes=49_152)
    (found,) = risen(many, few)
    assert (found.kind, found.after) == ("occupancy", "fewer blocks")
    assert "at most 1 instead of 3 blocks" in found.words
    assert list(risen(few, many)) == []
    assert list(risen(replace(many, shared_bytes=0), few)) == []  # a release that does not merge it in the TIR


def test_blocks_that_stand_for_too_many_accuse_nobody() -> None:
    before = cost("apart")
    sites = tuple(replace(s, sectors=int(1.2 * s.sectors)) for s in before.sites)
    after = replace(before, sites=sites, flops={"float16": 120})
    assert [change.kind for change in risen(replace(before, flops={"float16": 120}), after)] == 2 * ["sectors"]
    assert list(risen(replace(before, flops={"float16": 100}), after)) == []
