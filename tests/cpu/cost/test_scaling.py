"""Blocks that stand for others."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.cpu.cost.kernels import cost, snapshot
from tlcheck.cost.kernel_cost import KernelCost
from tlcheck.cost.measure import cost_of
from tlcheck.execute.request import LOWERED, Request
from tlcheck.execute.worlds.weights import representatives, weights
from tlcheck.snapshot.ir import Expr, For, Stmt
from tlcheck.snapshot.walk import rebuild


def totals(found: KernelCost) -> dict[tuple[str, str, str, str], tuple[int, int, int]]:
    return {(s.space, s.operation, s.buffer, s.instruction): (s.requests, s.sectors, s.wavefronts) for s in found.sites}


def test_blocks_that_are_alike_stand_for_each_other() -> None:
    some, every = cost("apart", blocks=3), cost("apart")
    assert (some.blocks, some.of, some.like) == (1, 32, 32)
    assert totals(some) == totals(every)


def test_weights_add_up_to_the_grid() -> None:
    kernel = snapshot("attention", "sm_90").checkpoints[LOWERED]
    found = weights(kernel, {}, [(0, 0, 0), (7, 0, 0)])
    assert (found.of, found.like) == (8, 2)
    assert sum(found.each) == pytest.approx(8)
    assert min(found.each) >= 1
    assert representatives(kernel, {}, 3) == [(0, 0, 0), (4, 0, 0), (7, 0, 0)]


def test_one_block_that_is_named_counts_for_all() -> None:
    found = cost_of(snapshot("contiguous", "sm_80"), Request(blocks=((5, 0, 0),)))
    assert (found.blocks, found.of) == (1, 32)
    assert totals(found) == totals(cost("contiguous"))


def test_whichever_blocks_run_a_triangle_has_its_area() -> None:
    """Each block has a step more than the one before it: what any of them did tells the whole."""
    whole = cost("attention", "sm_90")
    for ran in ((0, 7), (0, 1, 4)):
        some = cost_of(snapshot("attention", "sm_90"), Request(blocks=tuple((x, 0, 0) for x in ran)))
        assert (some.blocks, some.like) == (len(ran), len(ran))
        assert (some.flops, totals(some)) == (whole.flops, totals(whole))


def test_a_loop_to_the_nearer_of_two_ends_has_a_class_for_each_number_of_steps() -> None:
    found = snapshot("attention", "sm_90")
    lowered = found.checkpoints[LOWERED]
    far = Expr("int", "int32", value=1000)

    def clipped(was: Stmt, stmt: Stmt) -> Stmt:
        if isinstance(stmt, For) and stmt.extent.op != "int":
            return replace(stmt, extent=Expr("min", "int32", (stmt.extent, far)))
        return stmt

    kernel = replace(lowered, body=rebuild(lowered.body, clipped))
    assert kernel != lowered
    assert representatives(kernel, {}, 8) == representatives(lowered, {}, 8)
    assert len(representatives(kernel, {}, 8)) == 8
