"""tcgen05.commit: its arrival releases what the thread knew when it was issued, not what it has learned since."""

from __future__ import annotations

import numpy as np
import pytest

from tlcheck.execute.memory.frame import Mask
from tlcheck.execute.observe.clock import VectorClock

WARPS, WIDTH = 3, 32
ISSUER, OTHER, WAITER = range(WARPS)
HERE = np.array([0])


def warp(number: int) -> Mask:
    return np.asarray(np.arange(WARPS * WIDTH) // WIDTH == number)[None]


@pytest.mark.parametrize("before", [True, False])
def test_what_is_learned_after_the_commit_is_not_released(before: bool) -> None:
    clock = VectorClock(WARPS * WIDTH, WIDTH, 1)
    time = clock.clocks[0, OTHER, OTHER]

    def learn() -> None:
        clock.arrived("filled", warp(OTHER))
        clock.phase_ended("filled", 0)
        clock.acquired("filled", warp(ISSUER))

    if before:
        learn()
    clock.products_released("done", warp(ISSUER), HERE)
    if not before:
        learn()
    finished = clock.clocks[0, ISSUER, ISSUER]
    clock.products_finished("done", warp(ISSUER), HERE)
    clock.phase_ended("done", 0)
    clock.acquired("done", warp(WAITER))
    assert bool(clock.clocks[0, WAITER, OTHER] >= time) is before
    assert clock.clocks[0, WAITER, ISSUER] >= finished
