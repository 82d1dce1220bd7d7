"""Accesses that are known are found once: equal arrays, however often they are made."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest

from tlcheck.execute.memory.cells import Cells
from tlcheck.execute.memory.places import Place
from tlcheck.execute.memory.values import kind_of
from tlcheck.execute.observe import accesses
from tlcheck.execute.observe.accesses import About, AccessedCells, AccessedElements, KnownAccesses


class _Place:
    memory, kind = Cells(64, (kind_of("int32"),), (0,), 1), kind_of("int32")


PLACE = cast(Place, _Place())
LANES = np.array([[True, True, False, False]])


def _find(place: Place, about: About, core: int) -> tuple[AccessedElements, AccessedCells]:
    elements = AccessedElements(place, about[0], about[1])
    return elements, elements.cells(1, 1, 32)


def _cells(known: KnownAccesses, position: Any, lanes: Any = LANES, core: int = 0) -> AccessedCells:
    return known.of(PLACE, (position, lanes, None), core, _find)[1]


def test_an_access_with_equal_positions_and_lanes_is_found_once() -> None:
    known, position = KnownAccesses(), np.arange(4).reshape(1, 1, 4)
    assert _cells(known, position.copy(), LANES.copy()) is _cells(known, position.copy(), LANES.copy())
    assert _cells(known, 3) is _cells(known, 3)


def test_other_positions_lanes_or_cores_are_other_accesses() -> None:
    known, position = KnownAccesses(), np.arange(4).reshape(1, 1, 4)
    one = _cells(known, position)
    assert _cells(known, position + 1).cell.tolist() == [1, 2]
    assert _cells(known, position, ~LANES).cell.tolist() == [2, 3]
    assert _cells(known, position, core=1) is not one
    known.clear()
    assert _cells(known, position) is not one


def test_a_large_array_is_known_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """Held, so that no other one gets its number."""
    monkeypatch.setattr(accesses, "_SMALL", 16)
    known = KnownAccesses()
    found = [_cells(known, np.full((1, 1, 4), number)).cell.tolist() for number in range(8)]
    assert found == [[number, number] for number in range(8)]
