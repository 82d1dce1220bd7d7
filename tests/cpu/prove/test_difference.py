"""Test what is found wrong in one instance, against additions counted point by point."""

from __future__ import annotations

from collections import Counter
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis.strategies import randoms

from tests.cpu.prove.pairs import BLOCKS, FAULTS, Pair, counted
from tests.cpu.prove.tiles import BLOCK
from tlcheck.prove.difference import FootprintDifference, _Diagnosis, difference
from tlcheck.prove.lanes import Lanes


def _found(pair: Pair, block: int) -> FootprintDifference:
    found = difference(pair.algebra, pair.intended, pair.actual, {BLOCK: block}, {BLOCK: "blockIdx.x"}, None, False)
    assert found is not None
    return found


@pytest.mark.parametrize("fault", FAULTS)
@settings(max_examples=10)
@given(random=randoms(use_true_random=False))
def test_a_difference_is_found_where_there_is_one(random: Random, fault: str) -> None:
    pair = Pair(random, fault)
    want, have = counted(pair.algebra, pair.intended, True), counted(pair.algebra, pair.actual, False)
    for block in range(BLOCKS):
        missing, extra = _of(want - have, block), _of(have - want, block)
        found = _found(pair, block)
        assert bool(found) == bool(missing or extra)
        if found.missing is not None:
            assert found.missing.wrong == sum(missing.values())
            assert found.missing.witness.intended in {key[1] for key in missing}
        if found.repeated is not None:
            assert found.repeated.witness.written in {key[1] for key in extra}


def _of(additions: Counter[tuple[int, ...]], block: int) -> Counter[tuple[int, ...]]:
    return Counter({key: n for key, n in additions.items() if key[0] == block})


def test_an_element_that_is_added_twice_is_found_by_where_it_goes() -> None:
    """Two pairs, of which the second begins with the element that ends the first."""
    target, keys = np.array([0, 1, 0, 1]), np.array([2, 3, 3, 4], np.uint64)
    askew, one = np.array([False, False, True, True]), np.ones(4, np.int64)
    lanes = Lanes(target, keys, 0 * one, askew, 2 * one, 0 * one, True)
    assert _Diagnosis(lanes, lanes, {}, {}, None, False).row.tolist() == [0, 1, 2, 3]
