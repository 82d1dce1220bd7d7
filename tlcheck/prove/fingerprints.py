"""Multisets of lanes as fingerprints: how many, and the sum of their mixed keys; no memory, however many lanes."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tlcheck.algebra.algebra import Algebra
from tlcheck.algebra.evaluate import CHUNK, Dimension, Evaluator, Mask, Values, Words, chunks, mix, text_hash
from tlcheck.algebra.polynomial import Monomial, Poly
from tlcheck.prove.footprints import Footprint, Leaf
from tlcheck.reasons import OTHER_FORM, Reason, ReasonKind

Factors = Mapping[Monomial, Poly]  # outer monomial -> inner coefficient


class UndecidedError(Exception):
    """The reason why equality could not be decided this way."""

    def __init__(self, text: str, kind: ReasonKind = OTHER_FORM) -> None:
        super().__init__(text)
        self.reason = Reason(kind, text)


@dataclass(frozen=True, slots=True)
class Sum:
    """A multiset of lanes: how many, and the sum of their mixed keys modulo 2**64.

    Two different multisets have equal sums with a probability of about 2**-64.
    """

    count: int
    total: int


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """A footprint's inner half. `gates`: (number of the outer part, inner part): their sum is >= 0 where the lane is
    active.

    outside: the outer halves of the destination and of each element read; `bases` and `loops` are comparable.
    once: a lane counts once however often it runs, for both sides change nothing when they are made again.
    """

    footprint: Footprint
    target: Factors
    leaves: tuple[tuple[Poly, Factors], ...]
    gates: tuple[tuple[int, Poly], ...]
    flags: tuple[Poly, ...]
    space: tuple[Dimension, ...]
    outside: tuple[Poly, ...]
    bases: tuple[object, ...]
    loops: tuple[object, ...]
    once: bool = False


def fingerprints(algebra: Algebra, parts: Sequence[Part], classes: Sequence[Mapping[int, int]]) -> list[Sum]:
    """The multiset of a side's lanes for each class of outer points."""
    counts, totals = [0] * len(classes), [0] * len(classes)
    for part in parts:
        for env in chunks(part.space):
            for n, (count, total) in _sums(Evaluator(algebra, env), part, shape_of(env), classes):
                counts[n], totals[n] = counts[n] + count, (totals[n] + total) % (1 << 64)
    return [Sum(count, total) for count, total in zip(counts, totals, strict=True)]


def _sums(
    evaluate: Evaluator, part: Part, shape: tuple[int, ...], classes: Sequence[Mapping[int, int]]
) -> Iterator[tuple[int, tuple[int, int]]]:
    """Number of each class, and of its active lanes in one chunk how many and their sum."""
    # one number for each lane, equal where destination and elements read are
    with np.errstate(over="ignore"):
        keys = weigh(_value(evaluate, part.target), 0)
        for number, (leaf, (thread, element)) in enumerate(zip(part.footprint.leaves, part.leaves, strict=True)):
            where = _value(evaluate, element)
            keys = keys + weigh(elements(evaluate, leaf, thread, where), number + 1)
    mixed = mix(keys)
    gates = [_gate(number, evaluate(poly)) for number, poly in part.gates]
    for cut, group in _alike(gates, classes).items():
        # as many at a time as have about as many lanes as a chunk; all of them if they have none of their own
        lanes = mixed.size if cut else 0
        step = max(1, CHUNK // lanes) if lanes else len(group)
        for some in (group[begin : begin + step] for begin in range(0, len(group), step)):
            passed = [_passed(gates[place], [classes[n] for n in some], len(shape)) for place in cut]
            # which lanes run: those that pass all gates and have all flags
            active: bool | Mask = True
            for mask in (*passed, *(np.not_equal(evaluate(flag), 0) for flag in part.flags)):
                active = np.logical_and(active, mask)
            for needed in part.footprint.needed:
                if np.any(np.logical_and(active, np.equal(evaluate(needed), 0))):
                    raise UndecidedError("its value is replaced under a condition that the kernel does not have")
            found = (distinct if part.once else accumulate)(mixed, active, shape)
            yield from zip(some, found if cut else itertools.repeat(found[0]), strict=False)


@dataclass(frozen=True, slots=True, eq=False)
class _Gate:
    """A gate's inner part at each point, and its least and greatest value."""

    number: int
    values: Values
    least: int
    greatest: int


def _gate(number: int, values: Values) -> _Gate:
    return _Gate(number, values, int(np.min(values)), int(np.max(values)))


def _alike(gates: Sequence[_Gate], classes: Sequence[Mapping[int, int]]) -> dict[tuple[int, ...], list[int]]:
    """Numbers of classes by the places of the gates that some of their lanes do not pass."""
    groups: dict[tuple[int, ...], list[int]] = {}
    for n, outer in enumerate(classes):
        cut = tuple(place for place, gate in enumerate(gates) if outer[gate.number] < -gate.least)
        groups.setdefault(cut, []).append(n)
    return groups


def _passed(gate: _Gate, classes: Sequence[Mapping[int, int]], rank: int) -> Mask:
    """Return which points pass the gate, for each class (the first dimension): where its parts sum up to 0 or more."""
    outer = np.array([max(each[gate.number], -gate.greatest - 1) for each in classes], dtype=np.int64)
    passed: Mask = np.greater_equal(gate.values, -outer.reshape(-1, *[1] * rank))
    return passed


def shape_of(env: Mapping[int, Values]) -> tuple[int, ...]:
    """The shape that all variables of an environment broadcast to."""
    return np.broadcast_shapes(*(np.shape(v) for v in env.values())) if env else ()


def _value(evaluate: Evaluator, factors: Factors) -> Values:
    """A number for each lane that is equal where all factors are: outer monomials stand for unknown, unrelated
    numbers.
    """
    total = evaluate(factors[()])
    for outer, inner in factors.items():
        if outer:
            scale = text_hash(repr(outer)) >> 20  # 44 bits: products with offsets wrap like the keys that they go into
            total = total + np.multiply(evaluate(inner), scale, dtype=np.int64)
    return total


def weigh(values: Values, number: int) -> Words:
    """Values spread over 64 bits, differently for each number of an operand."""
    weighed: Words = np.asarray(values, dtype=np.int64).view(np.uint64) * np.uint64(
        _ODD[number % 4] + 2 * (number // 4)
    )
    return weighed


_THREAD = 1 << 32  # more than a thread has registers
_NOT_READ = -1 << 62  # no element: what a choice does not take


def elements(evaluate: Evaluator, leaf: Leaf, thread: Poly, where: Values) -> Values:
    """The element that a leaf reads at each point, from its offset; registers by the fragment that they belong to."""
    if leaf.table is not None:
        where = leaf.table.at(np.asarray(evaluate(thread)), np.asarray(where))
    elif leaf.thread:
        where = where + np.asarray(evaluate(leaf.thread), dtype=np.int64) * _THREAD
    for condition in leaf.when:
        where = np.where(np.not_equal(evaluate(condition), 0), where, _NOT_READ)
    return where


_ODD = (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB, 0x2545F4914F6CDD1D)


def accumulate(mixed: Words, active: bool | Mask, shape: tuple[int, ...]) -> list[tuple[int, int]]:
    """Number of active lanes and the sum of their mixed keys, for each class if `active` has a dimension for them.

    Dimensions on which neither depends count as often as they are long.
    """
    lanes = int(np.prod(shape, dtype=np.int64))
    if isinstance(active, bool):
        return [(lanes, int(mixed.sum(dtype=np.uint64)) * (lanes // mixed.size)) if active else (0, 0)]
    mask = active if active.ndim > len(shape) else active[np.newaxis]
    wide = np.broadcast_shapes(mixed.shape, mask.shape[1:])
    repeat = lanes // max(1, int(np.prod(wide, dtype=np.int64)))
    mask = np.broadcast_to(mask, (len(mask), *wide)).reshape(len(mask), -1)
    totals = (np.broadcast_to(mixed, wide).reshape(-1) * mask).sum(axis=1, dtype=np.uint64)
    counts = mask.sum(axis=1, dtype=np.int64)
    return [(int(count) * repeat, int(total) * repeat) for count, total in zip(counts, totals, strict=True)]


def distinct(mixed: Words, active: bool | Mask, shape: tuple[int, ...]) -> list[tuple[int, int]]:
    """Do as `accumulate`, with each key counted once: of what changes nothing where it is made again.

    Chunks are looked at alone, so that sides which split alike are equal; others may not be told to be.
    """
    mask = np.asarray(active)
    mask = mask if mask.ndim > len(shape) else mask[np.newaxis]
    wide = np.broadcast_shapes(mixed.shape, mask.shape[1:])
    keys = np.broadcast_to(mixed, wide).reshape(-1)
    kinds = [np.unique(keys[each]) for each in np.broadcast_to(mask, (len(mask), *wide)).reshape(len(mask), -1)]
    return [(len(each), int(each.sum(dtype=np.uint64))) for each in kinds]
