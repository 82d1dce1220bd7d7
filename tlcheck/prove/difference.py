"""Two footprints that differ, looked at in one concrete instance: which lanes are wrong, and how."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tlcheck.algebra.algebra import Algebra
from tlcheck.algebra.evaluate import Array, Evaluator, Mask, Words, mix, size
from tlcheck.algebra.polynomial import Poly
from tlcheck.prove.fingerprints import Sum
from tlcheck.prove.footprints import TAGS, Footprint
from tlcheck.prove.lanes import MAX_LANES, Lanes, ReplacedError, enumerate_lanes, pieces
from tlcheck.witness import Addition


@dataclass(frozen=True, slots=True)
class WrongCount:
    """A record of how many of how many, and the first: at which of the sites that are compared."""

    wrong: int
    total: int
    witness: Addition
    site: int = 0


@dataclass(frozen=True, slots=True)
class FootprintDifference:
    """A record of what is wrong in one instance, by kind; None for what is right. Lanes are counted, instructions for
    `misaligned`.
    """

    lanes: WrongCount | None = None
    misaligned: WrongCount | None = None
    source: WrongCount | None = None
    outside: WrongCount | None = None
    repeated: WrongCount | None = None
    missing: WrongCount | None = None

    def __bool__(self) -> bool:
        return any((self.lanes, self.misaligned, self.source, self.outside, self.repeated, self.missing))


def difference(
    algebra: Algebra,
    intended: Sequence[Footprint],
    actual: Sequence[Footprint],
    fixed: Mapping[int, int],
    names: Mapping[int, str],
    capacity: int | None,
    bounded: bool,
) -> FootprintDifference | None:
    """Return what is wrong in one instance. `fixed`: values of all variables that are not enumerated. capacity:
    elements of the destination, if known. None where the instance is too large or a lane's value depends on a condition
    of the lowering.
    """
    if sum(size(f.space) for f in (*intended, *actual)) > MAX_LANES:
        return None
    try:
        want, have = pieces(algebra, intended, fixed, True), pieces(algebra, actual, fixed, bounded)
        again = all(f.site.is_idempotent for f in (*intended, *actual))
        if not again and _is_right(want, have, capacity):
            return FootprintDifference()
        whole = enumerate_lanes(algebra, intended, fixed, True), enumerate_lanes(algebra, actual, fixed, bounded)
    except ReplacedError:
        return None
    return _Diagnosis(*whole, fixed, names, capacity, again).result()


def _is_right(want: Iterable[Lanes], have: Iterable[Lanes], capacity: int | None) -> bool:
    """Whether the lanes make the intended additions, aligned and in bounds: seen piece by piece, without sorting them.

    The sums of two sets of 64-bit mixtures are equal by chance once in 1.8e19 times.
    """
    wanted, found, wrong = [_sum(lanes) for lanes in want], [], False
    for lanes in have:
        found.append(_sum(lanes))
        wrong = wrong or bool(_outside(lanes.target, capacity).any() or (_heads(lanes) & lanes.askew).any())
    return not wrong and _all(found) == _all(wanted)


def _sum(lanes: Lanes) -> Sum:
    return Sum(len(lanes.keys), int(_additions(lanes).sum(dtype=np.uint64)))


def _all(sums: Sequence[Sum]) -> Sum:
    return Sum(sum(each.count for each in sums), sum(each.total for each in sums) % (1 << 64))


def _additions(lanes: Lanes) -> Words:
    """A number for what each lane adds, and where."""
    return mix(lanes.target.astype(np.uint64) * np.uint64(0xBF58476D1CE4E5B9) + lanes.keys)


def _outside(target: Array, capacity: int | None) -> Mask:
    """Return which offsets are not in the destination, of which the capacity is known or not."""
    below = target < 0
    outside: Mask = below if capacity is None else np.logical_or(below, target >= capacity)
    return outside


def _heads(lanes: Lanes) -> Mask:
    """The first lanes of vector instructions."""
    heads: Mask = (lanes.width > 1) & (lanes.base == lanes.target)
    return heads


class _Diagnosis:
    def __init__(
        self,
        want: Lanes,
        have: Lanes,
        fixed: Mapping[int, int],
        names: Mapping[int, str],
        capacity: int | None,
        again: bool,
    ) -> None:
        self.want, self.have, self.fixed, self.names, self.capacity = want, have, fixed, names, capacity
        self.again = again  # what is done once may be done again: it changes nothing
        self.order = np.argsort(want.keys, kind="stable")
        self.row = self._counterparts()

    def _counterparts(self) -> Array:
        """Return the row of the intended addition that reads the same, for each lane: the only one, or one that adds to
        the same element; else -1.
        """
        want, have = self.want, self.have
        if not want.reads or not len(want.keys):
            return np.full(len(have.keys), -1, dtype=np.int64)
        keys = want.keys[self.order]
        left, right = np.searchsorted(keys, have.keys, "left"), np.searchsorted(keys, have.keys, "right")
        found = self.order[np.minimum(left, len(keys) - 1)]
        return np.where(right - left == 1, found, np.where(right - left > 1, self._same(), -1))

    def _same(self) -> Array:
        """Return the row of the intended addition of the same to the same element, for each lane; else -1."""
        want, have = _additions(self.want), _additions(self.have)
        order = np.argsort(want, kind="stable")
        at = order[np.minimum(np.searchsorted(want[order], have, "left"), len(want) - 1)]
        return np.where(want[at] == have, at, -1)

    def result(self) -> FootprintDifference:
        have = self.have
        meant = np.where(self.row >= 0, self.want.target[self.row], -1) if len(self.want.target) else self.row
        extra, missing = self._unmatched()
        vector = have.width > 1
        permuted = np.array_equal(np.sort(have.target), np.sort(self.want.target))
        outside = _outside(have.target, self.capacity)
        stray = (self.row < 0) & extra & ~self._known(have.target) & ~outside
        lanes = vector & (self._apart(meant) | (stray & ~stray[self._heads_of_lanes()]))
        if permuted:  # each element gets as many additions as intended: it is the values that are elsewhere
            lanes, missing = np.zeros_like(lanes), np.zeros_like(missing)
        source = extra & ~lanes & ~outside & (self.row >= 0) & (meant != have.target) & self._known(have.target)
        repeated = extra & ~lanes & ~outside & ~source
        heads = _heads(self.have)
        return FootprintDifference(
            self._count(lanes, vector, meant),
            self._count(heads & self.have.askew, heads, self.have.target),
            self._count(source, None, meant) if not lanes.any() else None,
            self._count(outside, None, meant),
            self._count(repeated, None, meant),
            self._missing(missing),
        )

    def _apart(self, meant: Array) -> Mask:
        """Lanes whose intended element is not as far from that of the instruction's first lane as the lane's number
        says.
        """
        have, head = self.have, self._heads_of_lanes()
        both = (self.row >= 0) & (self.row[head] >= 0) & (have.base[head] == have.base)
        apart: Mask = both & (meant - meant[head] != have.target - have.base)
        return apart

    def _heads_of_lanes(self) -> Array:
        """Return the first lane of each lane's instruction; the lane itself where that is not known."""
        places = np.arange(len(self.have.target))
        heads = np.flatnonzero(self.have.base == self.have.target)
        return heads[np.maximum(np.searchsorted(heads, places, "right") - 1, 0)] if len(heads) else places

    def _known(self, target: Array) -> Mask:
        known: Mask = np.isin(target, self.want.target)
        return known

    def _unmatched(self) -> tuple[Mask, Mask]:
        """Return which lanes add what is not (or no longer) intended, and which intended additions nobody makes."""
        want, have = _additions(self.want), _additions(self.have)
        if self.again:
            return ~np.isin(have, want), ~np.isin(want, have)
        return _beyond(have, want), _beyond(want, have)

    def _count(self, wrong: Mask, among: Mask | None, meant: Array) -> WrongCount | None:
        if not wrong.any():
            return None
        total = len(wrong) if among is None else int(among.sum())
        at = int(np.argmax(wrong))
        return WrongCount(int(wrong.sum()), total, self._witness(at, meant), int(self.have.site[at]))

    def _witness(self, at: int, meant: Array) -> Addition:
        have = self.have
        row = int(self.row[at])
        lane = int(have.target[at] - have.base[at]) if have.width[at] > 1 else None
        stride = None
        if lane and row >= 0:
            head = int(np.argmax((have.base == have.base[at]) & (have.target == have.base[at]) & (self.row >= 0)))
            if self.row[head] >= 0 and have.base[head] == have.base[at]:
                gap = int(meant[at]) - int(self.want.target[self.row[head]])
                stride = gap // lane if gap % lane == 0 else None
        return Addition(
            self._instance(),
            self._iteration(have, at),
            self._thread(have, at),
            lane,
            self.want.indices(row) if row >= 0 else None,
            int(self.want.target[row]) if row >= 0 else None,
            int(have.target[at]),
            stride,
        )

    def _missing(self, missing: Mask) -> WrongCount | None:
        if not missing.any():
            return None
        at = int(np.argmax(missing))
        want = self.want
        witness = Addition(
            self._instance(),
            self._iteration(want, at),
            self._thread(want, at),
            None,
            want.indices(at),
            int(want.target[at]),
            None,
        )
        return WrongCount(int(missing.sum()), len(missing), witness)

    def _instance(self) -> dict[str, int]:
        return {self.names[u]: v for u, v in sorted(self.fixed.items(), reverse=True) if u in self.names}

    def _iteration(self, side: Lanes, at: int) -> dict[str, int]:
        return {self.names[u]: c for u, c in sorted(side.coordinates(at).items()) if u in self.names and u > 0}

    def _thread(self, side: Lanes, at: int) -> int | None:
        return side.coordinates(at).get(TAGS["threadIdx.x"])


def _beyond(these: Words, those: Words) -> Mask:
    """Return which of these are more than those has of the same: the last ones of each kind, in order."""
    kinds, counts = np.unique(those, return_counts=True)
    order = np.argsort(these, kind="stable")
    ordered = these[order]
    first = np.searchsorted(ordered, ordered, "left")
    rank = np.arange(len(ordered)) - first
    position = np.minimum(np.searchsorted(kinds, ordered), max(len(kinds) - 1, 0))
    allowed = (
        np.where(kinds[position] == ordered, counts[position], 0) if len(kinds) else np.zeros(len(ordered), np.int64)
    )
    beyond = np.zeros(len(these), dtype=np.bool_)
    beyond[order] = rank >= allowed
    return beyond


def evaluate_at(algebra: Algebra, poly: Poly, values: Mapping[int, int]) -> int | None:
    """The value of a polynomial in one point; None if it has variables that are not given."""
    if not algebra.variables(poly) <= values.keys():
        return None
    return int(Evaluator(algebra, values)(poly))


def first_addition(
    algebra: Algebra,
    footprint: Footprint,
    fixed: Mapping[int, int],
    names: Mapping[int, str],
    lane: Mapping[int, int],
) -> Addition | None:
    """The addition of a lane, as a witness that nothing wrote. lane: the enumerated variables."""
    point = {**lane, **fixed}
    offset = evaluate_at(algebra, footprint.target, point)
    indices = [evaluate_at(algebra, i, point) for i in footprint.indices]
    if offset is None or any(i is None for i in indices):
        return None
    instance = {names[u]: v for u, v in sorted(fixed.items(), reverse=True) if u in names}
    element = tuple(i for i in indices if i is not None)
    return Addition(instance, {}, point.get(TAGS["threadIdx.x"]), None, element, offset, None)
