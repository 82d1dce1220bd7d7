"""Products of matrices of float64, the same on every processor."""

from __future__ import annotations

import numpy as np

from tlcheck.execute.memory.values import Array, is_poison


def for_blas(matrices: Array) -> Array:
    """Matrices as BLAS takes them: neighbours of one axis side by side. NumPy multiplies others a hundred times slower,
    such as (worlds, rows, columns) of memory whose last axis is that of the worlds.
    """
    return matrices if matrices.itemsize in matrices.strides[-2:] else np.ascontiguousarray(matrices)


def product(a: Array, b: Array) -> Array:
    """Multiply matrices (..., M, K) and (..., K, N) in float64.

    A sum keeps one of several NaNs, and the processor's BLAS decides which. Here an element's poison is the first of
    its row of a, else the first of its column of b.
    """
    a, b = for_blas(a.astype(np.float64, copy=False)), for_blas(b.astype(np.float64, copy=False))
    found: Array = np.matmul(a, b)
    unordered = np.isnan(found)
    if not unordered.any():
        return found
    for poisons in (_first(b, -2), _first(a, -1)):
        np.copyto(found, poisons, where=unordered & is_poison(poisons))
    return found


def _first(matrices: Array, axis: int) -> Array:
    """Return the first poison along the axis, which stays with a length of 1; 0 where there is none."""
    poisoned = is_poison(matrices)
    if not poisoned.any():
        return np.zeros((1, 1))
    first = np.take_along_axis(matrices, poisoned.argmax(axis, keepdims=True), axis)
    return np.where(poisoned.any(axis, keepdims=True), first, 0.0)
