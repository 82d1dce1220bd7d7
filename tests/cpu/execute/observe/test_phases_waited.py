"""Waits for a phase by its parity: the warps that wait at one statement are overtaken together, or none is."""

from __future__ import annotations

import numpy as np
import pytest

from tlcheck.execute.memory.frame import Mask
from tlcheck.execute.observe.clock import VectorClock

WARPS, WIDTH = 3, 32


def warp(number: int) -> Mask:
    return np.asarray(np.arange(WARPS * WIDTH) // WIDTH == number)[None]


@pytest.mark.parametrize(("places", "overtaken"), [((1, 1), set()), ((1, 2), {1})])
def test_warps_that_come_apart_to_one_statement_wait_together(places: tuple[int, int], overtaken: set[int]) -> None:
    clock = VectorClock(WARPS * WIDTH, WIDTH, 1)
    for number, place in enumerate(places):
        clock.phase_waited("empty", warp(number), place)
    clock.arrived("full", warp(0))
    clock.phase_ended("full", 0)
    clock.acquired("full", warp(2))
    clock.arrived("empty", warp(2))
    clock.phase_ended("empty", 0)
    assert clock.overtaken == overtaken
