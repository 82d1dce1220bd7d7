"""Blocks that stand for others."""

from __future__ import annotations

import pytest

from tests.cpu.cost.kernels import cost, snapshot
from tlcheck.cost.measure import cost_of
from tlcheck.cost.model import KernelCost
from tlcheck.execute.request import LOWERED, Request
from tlcheck.execute.worlds.weights import representatives, weights


def totals(found: KernelCost) -> dict[tuple[str, str, str, str], tuple[int, int, int]]:
    return {(s.space, s.operation, s.buffer, s.instruction): (s.requests, s.sectors, s.wavefronts) for s in found.sites}


def test_blocks_that_are_alike_stand_for_each_other() -> None:
    some, every = cost("apart", blocks=3), cost("apart")
    assert (some.blocks, some.of, some.like) == (1, 32, 32)
    assert totals(some) == totals(every)


def test_each_class_of_blocks_has_its_own() -> None:
    some, every = cost("attention", "sm_90", 7), cost("attention", "sm_90")
    assert (some.of, some.blocks, every.blocks) == (8, 7, 8)  # each block has a step more than the one before it
    assert some.like == 7
    for key, counts in totals(every).items():
        assert totals(some)[key] == pytest.approx(counts, rel=0.15)


def test_weights_add_up_to_the_grid() -> None:
    kernel = snapshot("attention", "sm_90").checkpoints[LOWERED]
    found = weights(kernel, {}, [(0, 0, 0), (7, 0, 0)])
    assert (sum(found.each), found.of, found.like) == (8, 8, 2)
    assert min(found.each) >= 1
    assert representatives(kernel, {}, 3) == [(0, 0, 0), (4, 0, 0), (7, 0, 0)]


def test_one_block_that_is_named_counts_for_all() -> None:
    found = cost_of(snapshot("contiguous", "sm_80"), Request(blocks=((5, 0, 0),)))
    assert (found.blocks, found.of) == (1, 32)
    assert totals(found) == totals(cost("contiguous"))
