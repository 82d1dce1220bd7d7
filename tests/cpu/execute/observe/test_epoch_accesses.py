"""Who accessed a cell of the source last: one lane, or several lanes of one epoch."""

from __future__ import annotations

import numpy as np
import pytest

from tlcheck.execute.observe.accesses import AccessedCells
from tlcheck.execute.observe.epoch_accesses import SEVERAL, EpochAccesses


def accessed(cells: list[int], lanes: list[int]) -> AccessedCells:
    no = np.zeros(len(cells), np.int32)
    return AccessedCells(np.array(cells), no, np.array(lanes), no, warps=1, size=4)


@pytest.mark.parametrize(
    ("lanes", "last"), [([0, 1, 2], SEVERAL), ([2, 1, 0], SEVERAL), ([1, 0, 1], SEVERAL), ([1, 1, 1], 1)]
)
def test_several_lanes_of_one_access_are_several_whoever_comes_last(lanes: list[int], last: int) -> None:
    known = EpochAccesses()
    known.reach(4)
    known.set(accessed([3, 3, 3], lanes), epoch=1, part=np.zeros(1, np.int32))
    assert known.lane[3] == last
    own = accessed([3], [lanes[-1]])
    assert known.beside(own, 1, np.zeros(1, np.int32), 32).tolist() == [last == SEVERAL]
