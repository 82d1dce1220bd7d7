"""Accesses of tensor cores that repeat the last one are the same until something else touches their cells."""

from __future__ import annotations

import numpy as np
import pytest

from tlcheck.execute.memory.values import Array
from tlcheck.execute.observe.repeats import Repeats

WHAT = ("write", "tensor")
HERE, MASK, LANE = np.arange(4, 8), np.ones((1, 1), np.bool_), np.ones((1, 32), np.bool_)


def recorded() -> Repeats:
    repeats = Repeats()
    repeats.record(0, WHAT, HERE, HERE, MASK, LANE)
    return repeats


def test_the_same_access_is_known() -> None:
    assert recorded().has(0, WHAT, HERE, MASK, LANE)


@pytest.mark.parametrize(
    ("root", "what", "position", "lane"),
    [
        (1, WHAT, HERE, LANE),
        (0, ("landed",), HERE, LANE),
        (0, WHAT, HERE.copy(), LANE),
        (0, WHAT, HERE, LANE.copy()),
    ],
)
def test_another_access_is_not(root: int, what: tuple[object, ...], position: Array, lane: Array) -> None:
    assert not recorded().has(root, what, position, MASK, lane)


@pytest.mark.parametrize(("cells", "known"), [([7], False), ([0, 4], False), ([3], True), ([8, 9], True)])
def test_it_is_over_when_its_cells_are_touched(cells: list[int], known: bool) -> None:
    repeats = recorded()
    repeats.touched(0, np.array(cells))
    assert repeats.has(0, WHAT, HERE, MASK, LANE) == known


@pytest.mark.parametrize("root", [0, None])
def test_it_is_over_with_its_allocation(root: int | None) -> None:
    repeats = recorded()
    repeats.forget(root)
    assert not repeats.has(0, WHAT, HERE, MASK, LANE)
