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
    reads=True,
)


def test_the_same_additions_in_another_order() -> None:
    order = OFFSETS[::-1]
    assert _is_right([LANES], [replace(LANES, target=LANES.target[order], keys=LANES.keys[order])], 8)


def test_the_same_additions_in_pieces() -> None:
    front, back = _part(slice(0, 3)), _part(slice(3, 8))
    assert _is_right([LANES], [back, front], 8)
    assert not _is_right([LANES], [front, front, back], 8)
    assert not _is_right([LANES], [front, replace(back, askew=back.target == 4)], 8)


def _part(which: slice) -> Lanes:
    columns = ("target", "keys", "base", "askew", "width", "site")
    return replace(LANES, **{name: getattr(LANES, name)[which] for name in columns})


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
    assert not _is_right([LANES], [have], capacity)
