"""Maxima and minima along an axis with CUDA's treatment of NaN: of a number and a NaN the number; poison stays."""

from __future__ import annotations

import numpy as np

from tlcheck.execute.memory.values import Array, is_poison

_IGNORING: dict[np.ufunc, np.ufunc] = {np.maximum: np.fmax, np.minimum: np.fmin}


def reduced(combine: np.ufunc, terms: Array, axis: int, propagate: bool = False, first: float | None = None) -> Array:
    """The combination of all elements along an axis; integers wrap.

    propagate: a NaN makes the result NaN. first: the result where all elements are NaN, None for a NaN.
    """
    found = np.asarray(combine.reduce(terms, axis=axis, dtype=terms.dtype))
    if propagate or not _unordered(combine, found):
        return found
    poisoned, poison = _first_poison(terms, axis)
    numbers = np.asarray(_IGNORING[combine].reduce(terms, axis=axis))
    if first is not None:
        numbers = np.where(np.isnan(numbers), numbers.dtype.type(first), numbers)
    return np.where(poisoned.any(axis=axis), poison.squeeze(axis), numbers)


def accumulated(combine: np.ufunc, terms: Array, axis: int) -> Array:
    """The combination of the elements up to each one along an axis; integers wrap."""
    found = np.asarray(combine.accumulate(terms, axis=axis, dtype=terms.dtype))
    if not _unordered(combine, found):
        return found
    poisoned, first = _first_poison(terms, axis)
    numbers = np.asarray(_IGNORING[combine].accumulate(terms, axis=axis))
    return np.where(np.logical_or.accumulate(poisoned, axis=axis), first, numbers)


def without_nan(combine: np.ufunc, terms: Array) -> Array:
    """The terms of a maximum or minimum that already has a value: a NaN leaves that as it is."""
    if not _unordered(combine, terms):
        return terms
    least = -np.inf if combine is np.maximum else np.inf
    return np.where(np.isnan(terms) & ~is_poison(terms), terms.dtype.type(least), terms)


def _unordered(combine: np.ufunc, found: Array) -> bool:
    return combine in _IGNORING and found.dtype.kind == "f" and bool(np.isnan(found).any())


def _first_poison(terms: Array, axis: int) -> tuple[Array, Array]:
    """Return which elements are poison, and the first of each line that is (any element where none is)."""
    poisoned = is_poison(terms)
    first = np.expand_dims(np.argmax(poisoned, axis=axis), axis)
    return poisoned, np.take_along_axis(terms, first, axis)
