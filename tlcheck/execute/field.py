"""Floats as elements of a finite field: equal results mean equal formulas, but for a chance.

A float is a whole number below a prime in float64, with which sums, products and quotients are exact. Every other
function is a random one of its argument, the same at both levels. Each block runs with two sets of numbers, one in
either half of the worlds: a function, or a maximum, is one of both numbers together.

A maximum is known by the set of what it is the largest of, and each number counts once. Minus infinity is the maximum
of nothing. What no formula over the reals says raises NotModelled: bits of a float, an integer made of one, an order.

Two different formulas of degree d in the numbers of tensors and the values of functions are equal on one set of numbers
with a chance of d / PRIME at most (Schwartz, 1980; Zippel, 1979), on both with its square. For a quotient it is the
degree of both sides times the denominators. Functions of different arguments may be equal where these are, so that the
chance is as many times that as the formula has arguments. It does not grow with the elements that are compared: an
output that is wrong is taken for right only where each wrong element is equal.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from tlcheck.execute.stops import NotModelled

Array = npt.NDArray[Any]
PRIME = 67_108_859  # the largest below 2^26: products are exact in float64
_DIGIT = 1 << 13  # numbers have two: sums of products of one with a number are exact
_MOST_TERMS = 1 << 13  # of such a sum
_MOST_MEMBERS = 1 << 23  # of sets that are kept, before older ones are dropped
_MOST_WORK = 1 << 26  # members that are looked at: some seconds
_GONE = -1  # in the place of a member


@lru_cache(maxsize=1024)
def words_of(text: str) -> int:
    """64 bits for a text, such as the name of a random function; the same in every process."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little")


def mixed(words: Array) -> Array:
    """Random words for words: SplitMix64 (Steele, Lea and Flood, 2014)."""
    with np.errstate(over="ignore"):
        x = words + np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return np.asarray(x ^ (x >> np.uint64(31)))


def drawn(words: Array) -> Array:
    """Elements of the field for random words."""
    return np.asarray((mixed(words) % np.uint64(PRIME)).astype(np.float64))


def constant(value: float) -> float:
    """The element that stands for a number; infinities stay."""
    if math.isnan(value):
        raise NotModelled("NaN as a constant")
    if math.isinf(value):
        return value
    exact = Fraction(value)
    return float(exact.numerator * pow(exact.denominator, -1, PRIME) % PRIME)


def reduced(value: Any) -> Any:
    """Whole numbers as elements of the field; NaN and infinities stay."""
    if not isinstance(value, np.ndarray):
        return float(value % PRIME) if math.isfinite(value) else float(value)
    found = np.multiply(value, 1.0 / PRIME)
    np.floor(found, out=found)
    np.multiply(found, PRIME, out=found)
    np.subtract(value, found, out=found)
    if not found.size or (found.min() >= 0 and found.max() < PRIME):  # which no NaN is
        return found
    found[found < 0] += PRIME
    found[found >= PRIME] -= PRIME
    return np.where(np.isfinite(found), found, value)


def _chosen(condition: Any, then: Any, other: Any) -> Any:
    """One of two by a condition; a Python number where all are."""
    if not np.any(condition):
        return other
    found = np.where(condition, then, other)
    return found if found.ndim else found.item()


def times(a: Any, b: Any) -> Any:
    """The product. Nobody knows the sign of an infinite one."""
    found = reduced(np.multiply(a, b))
    return _chosen(np.isinf(found), np.nan, found)


def scaled(value: Any, by: Any, sign: int) -> Any:
    """The product with an element that stands for a number of a sign: an infinite one stays infinite."""
    return _chosen(np.isinf(value), np.multiply(value, sign), times(value, by))


def inverse(value: Any) -> Array:
    """1 / value; NaN where it is 0 or no number."""
    base = np.asarray(value, np.float64)
    base = np.where(np.isfinite(base) & (base != 0), base, np.nan)
    found, left = np.ones_like(base), PRIME - 2
    while left:
        if left & 1:
            found = reduced(found * base)
        base, left = reduced(base * base), left >> 1
    return np.asarray(found)


def product(a: Array, b: Array) -> Array:
    """The product of matrices, by the digits of the first one: its upper ones stand above its lower ones."""
    rows, columns = a.shape[-2:]
    if columns > _MOST_TERMS:
        parts = [slice(start, start + _MOST_TERMS) for start in range(0, columns, _MOST_TERMS)]
        return np.asarray(reduced(sum(product(a[..., part], b[..., part, :]) for part in parts)))
    digits = np.empty((*a.shape[:-2], 2 * rows, columns))
    upper, lower = digits[..., :rows, :], digits[..., rows:, :]
    np.multiply(a, 1.0 / _DIGIT, out=upper)
    np.floor(upper, out=upper)
    np.multiply(upper, -_DIGIT, out=lower)
    lower += a
    sums = np.matmul(digits, b)
    found = reduced(sums[..., :rows, :])
    found *= _DIGIT
    found += sums[..., rows:, :]
    found = reduced(found)
    return np.where(np.isinf(found), np.nan, found) if np.isinf(found).any() else np.asarray(found)


@dataclass(eq=False)
class Field:
    """The worlds in which floats are elements of the field. blocks: the first worlds, which run with one set of
    numbers; as many others run with the other one. times: how often all these worlds are there, where all iterations of
    a loop run at once.

    sets: what maxima and minima that were made are of, by their number.
    """

    blocks: int = 0
    times: int = 1
    sets: dict[str, _KnownSets] = field(default_factory=dict)

    def among(self, worlds: int, times: int = 1) -> Field:
        """This field for so many worlds, each of them there `times` times."""
        return replace(self, blocks=worlds // 2, times=times)

    # ---- functions

    def function(self, name: str, *args: Any) -> Array:
        """A random function of its arguments; NaN where one of them is no number."""
        words: Any = np.full((1, 1), words_of(name), np.uint64)
        known: Any = np.full((1, 1), True)
        for arg in args:
            numbers, there = self._both(arg)
            words, known = mixed(words ^ numbers), known & there
        shape = np.broadcast_shapes(words.shape, known.shape)
        shape = (*shape[:-2], self.times * self.blocks, shape[-1])
        return self._joined(
            [np.broadcast_to(np.where(known, drawn(words ^ np.uint64(half)), np.nan), shape) for half in (1, 2)]
        )

    def absolute(self, value: Any) -> Array:
        """The absolute value: the maximum of a number and its negative."""
        return self.extremum("max", (value, reduced(np.negative(value))))

    def _both(self, value: Any) -> tuple[Array, Array]:
        """The numbers of both halves of the worlds as one word, and where they are numbers."""
        array: Array = np.atleast_2d(np.asarray(value, np.float64))
        first, second = (array, array) if array.shape[-2] == 1 else self._split(array)
        known = np.isfinite(first) & np.isfinite(second)
        pairs = [np.where(known, each, 0.0).astype(np.uint64) for each in (first, second)]
        return (pairs[0] << np.uint64(26)) | pairs[1], known

    def _split(self, values: Array) -> tuple[Array, Array]:
        """Split values of all worlds into those of each half."""
        *axes, worlds, lanes = values.shape
        parts = values.reshape(*axes, self.times, 2, worlds // (2 * self.times), lanes)
        first, second = (parts[..., half, :, :].reshape(*axes, worlds // 2, lanes) for half in (0, 1))
        return first, second

    def _joined(self, halves: Sequence[Array]) -> Array:
        """Join the values of each half of the worlds."""
        *axes, worlds, lanes = halves[0].shape
        parts = [half.reshape(*axes, self.times, 1, worlds // self.times, lanes) for half in halves]
        return np.concatenate(parts, axis=-3).reshape(*axes, 2 * worlds, lanes)

    # ---- maxima and minima

    def extremum(self, name: str, terms: Sequence[Any]) -> Array:
        """The maximum (`max`) or minimum (`min`) of several: what it is the largest of, each number once."""
        arrays = [np.asarray(term, np.float64) for term in terms]
        shape = np.broadcast_shapes((1, 1), *[a.shape for a in arrays])
        *axes, _, lanes = shape
        shape = (*axes, 2 * self.times * self.blocks, lanes)
        stacked = np.stack([np.broadcast_to(a, shape) for a in arrays])
        least = -np.inf if name == "max" else np.inf
        numbers, known = self._both(stacked)
        first, second = self._split(stacked)
        absent = (first == least) & (second == least)
        keys = np.where(absent, _GONE, numbers.astype(np.int64)).reshape(len(terms), -1)
        found = self._united(name, keys)
        halves = [
            np.where(found.single, (found.ids >> shift & (1 << 26) - 1).astype(np.float64), each)
            for shift, each in ((26, found.halves[0]), (0, found.halves[1]))
        ]
        made = [np.where(found.empty, least, half).reshape(first.shape[1:]) for half in halves]
        bad = ~(known | absent).all(axis=0)
        return self._joined([np.where(bad, np.nan, half) for half in made])

    def _united(self, name: str, keys: Array) -> _Sets:
        """The unions of sets, one in each column; of equal columns one is looked at."""
        known = self.sets.setdefault(name, _KnownSets())
        if len(keys) > 2 or not known.sets:
            return _union(name, keys, known)
        pairs = np.ascontiguousarray(keys.T).view([(f"f{n}", np.int64) for n in range(len(keys))]).reshape(-1)
        _, first, each = np.unique(pairs, return_index=True, return_inverse=True)
        return _union(name, keys[:, first], known).at(each.reshape(-1))


@dataclass(frozen=True)
class _Sets:
    """Sets, one in each element. ids: their numbers; halves: as elements of the field; single, empty: how many."""

    ids: Array
    halves: tuple[Array, Array]
    single: Array
    empty: Array

    def at(self, which: Array) -> _Sets:
        """Return some of them, or one several times."""
        first, second = self.halves
        return _Sets(self.ids[which], (first[which], second[which]), self.single[which], self.empty[which])


@dataclass(eq=False)
class _KnownSets:
    """Sets by their number. former: older ones, dropped when there are too many members; such a number is alone then.

    work: members that were looked at.
    """

    sets: dict[int, Array] = field(default_factory=dict)
    former: dict[int, Array] = field(default_factory=dict)
    members: int = 0
    work: int = 0

    def look(self, members: int) -> None:
        """Count members that are looked at. Raises NotModelled for too many."""
        self.work += members
        if self.work > _MOST_WORK:
            raise NotModelled("a maximum of too many numbers")

    def get(self, key: int) -> Array | None:
        """Return the members of a set, which is kept longer then; None for a number that is no set."""
        found = self.sets.get(key)
        if found is None and (found := self.former.get(key)) is not None:
            self.keep(key, found)
        return found

    def keep(self, key: int, members: Array) -> None:
        """Keep a set."""
        if key in self.sets:
            return
        if self.members > _MOST_MEMBERS:
            self.former, self.sets, self.members = self.sets, {}, 0
        self.sets[key] = members
        self.members += len(members)


def _union(name: str, keys: Array, known: _KnownSets) -> _Sets:
    """Return the unions of sets, one in each column."""
    rows = np.concatenate([_members(known, line) for line in keys], axis=1)
    known.look(rows.size)
    rows.sort(axis=1, kind="stable")  # what is merged is in order
    again = np.zeros(rows.shape, np.bool_)
    again[:, 1:] = rows[:, 1:] == rows[:, :-1]
    if (again & (rows != _GONE)).any():
        rows = np.sort(np.where(again, _GONE, rows), axis=1)
    idle = (rows == 0) & _has_opposites(rows)
    if idle.any():
        rows = np.sort(np.where(idle, _GONE, rows), axis=1)
    there = rows != _GONE
    count = there.sum(axis=1)
    first = rows.shape[1] - max(1, int(count.max()))
    rows, there = rows[:, first:], there[:, first:]
    salt = np.uint64(words_of(name))
    with np.errstate(over="ignore"):
        words = mixed(np.where(there, mixed(rows.astype(np.uint64) ^ salt), np.uint64(0)).sum(axis=1, dtype=np.uint64))
    halves = drawn(words ^ np.uint64(1)), drawn(words ^ np.uint64(2))
    ids = np.where(count == 1, rows[:, -1], halves[0].astype(np.int64) << 26 | halves[1].astype(np.int64))
    for n in np.flatnonzero(count > 1).tolist():
        known.keep(int(ids[n]), rows[n])
    return _Sets(ids, halves, count == 1, count == 0)


def whole(integers: Array) -> Array:
    """Elements of the field that stand for integers."""
    wide = integers if integers.dtype == np.uint64 else integers.astype(np.int64)
    return np.asarray(np.mod(wide, wide.dtype.type(PRIME)).astype(np.float64))


def _has_opposites(rows: Array) -> Array:
    """Return which sets of different numbers have one and its negative: 0 in them changes no extremum."""
    found = np.zeros((len(rows), 1), np.bool_)
    some = np.flatnonzero((rows == 0).any(axis=1))
    if len(some):
        mine = rows[some]
        first, second = mine >> 26, mine & (1 << 26) - 1
        opposite = ((PRIME - first) % PRIME) << 26 | (PRIME - second) % PRIME
        real = (mine != _GONE) & (mine != 0)
        both = np.sort(np.concatenate([np.where(real, mine, -2), np.where(real, opposite, -3)], axis=1), axis=1)
        found[some, 0] = ((both[:, 1:] == both[:, :-1]) & (both[:, 1:] >= 0)).any(axis=1)
    return found


def _members(known: _KnownSets, keys: Array) -> Array:
    """Return what the sets with these numbers have, (sets, members); a number that is no set is alone."""
    found = [known.get(key) for key in keys.tolist()] if known.sets else []
    width = max((len(each) for each in found if each is not None), default=1)
    if width == 1:
        return np.array(keys[:, None])
    rows = np.full((len(keys), width), _GONE, np.int64)
    rows[:, -1] = keys
    for n, each in enumerate(found):
        if each is not None:
            rows[n, width - len(each) :] = each
    return rows
