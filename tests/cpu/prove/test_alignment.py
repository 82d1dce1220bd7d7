"""Alignment of vector instructions for all blocks, against every address."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis.strategies import randoms

from tests.cpu.prove import tiles
from tests.cpu.prove.tiles import BLOCK, THREAD
from tlcheck.algebra.evaluate import Dimension
from tlcheck.algebra.polynomial import add, constant, scale
from tlcheck.program.tma import LANE
from tlcheck.prove.alignment import aligned


@pytest.mark.parametrize("width", [2, 4])
@settings(max_examples=60)
@given(random=randoms(use_true_random=False))
def test_agrees_with_every_address(random: Random, width: int) -> None:
    block, thread, base = random.choice((2, 4, 6, 8)), random.choice((1, 2, 4, 8)), random.choice((0, 0, 1, 2, 4))
    algebra, whole = tiles.whole(64)
    algebra.ranges.update({BLOCK: (0, 4), THREAD: (0, 7), LANE: (0, width - 1)})
    head = add(scale(algebra.variable(BLOCK), block), add(scale(algebra.variable(THREAD), thread), constant(base)))
    target = add(head, algebra.variable(LANE))
    space = (Dimension(THREAD, 0, 8), Dimension(LANE, 0, width))
    footprint = replace(
        whole,
        site=replace(whole.site, width=width, aligned=(width, width)),
        space=space,
        target=target,
        indices=(target,),
    )
    expected = all((b * block + t * thread + base) % width == 0 for b, t in product(range(5), range(8)))
    assert aligned(algebra, footprint) == expected


def test_scalars_are_always_aligned() -> None:
    algebra, whole = tiles.whole(64)
    assert aligned(algebra, replace(whole, target=add(whole.target, constant(1))))
