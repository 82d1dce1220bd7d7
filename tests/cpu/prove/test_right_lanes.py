"""Lanes that are right are told without being sorted, and no others."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tlcheck.prove.difference import _is_right
from tlcheck.prove.lanes import Lanes

OFFSETS = np.arange(8, dtype=np.int64)
LANES = Lanes(
    target=OFFSETS,
    keys=OFFSETS.astype(np.uint64),
    base=OFFSETS // 4 * 4,
    askew=np.zeros(8, dtype=np.bool_),
    width=np.full(8, 4, dtype=np.int64),
    site=np.zeros(8, dtype=np.int64),
    coordinates={},
    indices=[],
    reads=True,
)


def test_the_same_additions_in_another_order() -> None:
    order = OFFSETS[::-1]
    assert _is_right(LANES, replace(LANES, target=LANES.target[order], keys=LANES.keys[order]), 8)


@pytest.mark.parametrize(
    ("have", "capacity"),
    [
        (replace(LANES, target=LANES.target[::-1]), 8),  # values elsewhere
        (replace(LANES, target=LANES.target // 2), 8),  # some twice, some never
        (replace(LANES, askew=LANES.target == 4), 8),  # a vector that is not aligned
        (LANES, 7),  # as intended, and outside of the destination
    ],
)
def test_anything_else_is_looked_at(have: Lanes, capacity: int) -> None:
    assert not _is_right(LANES, have, capacity)
