"""Lanes of vectors that the generated CUDA packs wrongly, as it leaves them."""

from __future__ import annotations

import numpy as np

from tlcheck.execute.memory.values import Array
from tlcheck.program.packing import Packing


def packed(lanes: Array, how: Packing) -> Array:
    """The lanes, on the first axis, that come of packing them."""
    return {Packing.BYTES: _bytes, Packing.WORDS: _words, Packing.HALVES: _halves}[how](lanes)


def _bytes(lanes: Array) -> Array:
    """Four lanes in the bytes of an int as `(x3 << 24) | (x2 << 16) | (x1 << 8) | x0` has them, signs and all."""
    shifts = np.array([0, 8, 16, 24], np.int32).reshape(4, 1, 1)
    fours = lanes.reshape(-1, 4, *lanes.shape[1:]).astype(np.int32)
    combined = np.bitwise_or.reduce(fours << shifts, axis=1, keepdims=True)
    return (combined >> shifts).astype(np.int8).reshape(lanes.shape)


def _words(lanes: Array) -> Array:
    """Each second lane is -1 where the one before it is negative."""
    pairs = lanes.reshape(-1, 2, *lanes.shape[1:]).copy()
    pairs[:, 1][pairs[:, 0] < 0] = -1
    found: Array = pairs.reshape(lanes.shape)
    return found


def _halves(lanes: Array) -> Array:
    """The upper four of each eight lanes are 0."""
    eights = lanes.reshape(-1, 8, *lanes.shape[1:]).copy()
    eights[:, 4:] = 0
    found: Array = eights.reshape(lanes.shape)
    return found
