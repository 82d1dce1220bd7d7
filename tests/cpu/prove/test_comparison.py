"""Equality of footprints, for all blocks at once, against multisets counted point by point."""

from __future__ import annotations

import time
import tracemalloc

import pytest

from tests.cpu.prove import tiles
from tests.cpu.prove.pairs import FAULTS, Pair, counted
from tlcheck.prove.comparison import same

MEMORY = 256 << 20  # bytes


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("seed", range(12))
def test_agrees_with_counting(seed: int, fault: str) -> None:
    pair = Pair(seed, fault)
    expected = counted(pair.algebra, pair.intended, True) == counted(pair.algebra, pair.actual, False)
    assert same(pair.algebra, pair.intended, pair.actual, bounded=False) == expected
    if fault in ("", "split"):
        assert expected


def test_faults_are_mostly_faults() -> None:
    """Else the comparison above would be one of equals only."""
    pairs = [Pair(seed, fault) for seed in range(12) for fault in FAULTS[1:] if fault != "split"]
    wrong = [p for p in pairs if counted(p.algebra, p.intended, True) != counted(p.algebra, p.actual, False)]
    assert len(wrong) > 0.7 * len(pairs)


@pytest.mark.parametrize("lanes", [1 << 20, (1 << 20) - 300])
def test_one_lane_of_a_million(lanes: int) -> None:
    algebra, whole = tiles.whole(lanes)
    assert same(algebra, [whole], [tiles.spread(algebra, lanes)], bounded=False)
    assert not same(algebra, [whole], [tiles.spread(algebra, lanes, skew=1)], bounded=False)


def test_memory_does_not_grow_with_the_lanes_and_time_only_linearly() -> None:
    peaks, times = zip(*(_cost(lanes) for lanes in (1 << 20, 1 << 23)), strict=True)
    assert peaks[1] < MEMORY // 4
    assert peaks[1] < 1.5 * peaks[0] + (1 << 20)
    assert times[1] < 3 * 8 * times[0]


def _cost(lanes: int) -> tuple[int, float]:
    """Peak of NumPy's and Python's memory in bytes, and processor time in seconds."""
    algebra, whole = tiles.whole(lanes)
    actual = tiles.spread(algebra, lanes)
    started = time.process_time()
    assert same(algebra, [whole], [actual], bounded=False)
    spent = time.process_time() - started
    tracemalloc.start()
    same(algebra, [whole], [actual], bounded=False)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak, spent
