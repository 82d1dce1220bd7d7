"""Equality of footprints, for all blocks at once, against multisets counted point by point."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis.strategies import randoms

from tests.cpu.prove import tiles
from tests.cpu.prove.pairs import FAULTS, Pair, counted
from tlcheck.algebra.polynomial import add
from tlcheck.prove.fingerprints import UndecidedError
from tlcheck.prove.sum_comparison import same

MEMORY = 256 << 20  # bytes


@pytest.mark.parametrize("fault", FAULTS)
@settings(max_examples=15)
@given(random=randoms(use_true_random=False))
def test_agrees_with_counting(random: Random, fault: str) -> None:
    pair = Pair(random, fault)
    expected = counted(pair.algebra, pair.intended, True) == counted(pair.algebra, pair.actual, False)
    assert same(pair.algebra, pair.intended, pair.actual, bounded=False) == expected
    if fault in ("", "split"):
        assert expected


def test_faults_are_mostly_faults() -> None:
    """Else the comparison above would be one of equals only."""
    pairs = [Pair(Random(seed), fault) for seed in range(12) for fault in FAULTS[1:] if fault != "split"]
    wrong = [p for p in pairs if counted(p.algebra, p.intended, True) != counted(p.algebra, p.actual, False)]
    assert len(wrong) > 0.7 * len(pairs)


@pytest.mark.parametrize("lanes", [1 << 20, (1 << 20) - 300])
def test_one_lane_of_a_million(lanes: int) -> None:
    algebra, whole = tiles.whole(lanes)
    assert same(algebra, [whole], [tiles.spread(algebra, lanes)], bounded=False)
    assert not same(algebra, [whole], [tiles.spread(algebra, lanes, skew=1)], bounded=False)


def test_addresses_that_differ_by_a_size_are_undecided() -> None:
    algebra, whole = tiles.whole(256)
    moved = tiles.spread(algebra, 256)
    moved = replace(moved, target=add(moved.target, algebra.variable(algebra.fresh())))
    with pytest.raises(UndecidedError, match="depend on a size"):
        same(algebra, [whole], [moved], bounded=False)


def test_memory_does_not_grow_with_the_lanes() -> None:
    few, many = _peak(1 << 20), _peak(1 << 23)
    assert many < MEMORY // 4
    assert many < 1.5 * few + (1 << 20)


def _peak(lanes: int) -> int:
    """Return the most bytes that NumPy and Python have at a time."""
    algebra, whole = tiles.whole(lanes)
    actual = tiles.spread(algebra, lanes)
    tracemalloc.start()
    assert same(algebra, [whole], [actual], bounded=False)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak
