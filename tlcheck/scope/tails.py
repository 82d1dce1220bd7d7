"""Accesses that stay in their tensor because of the conditions around them: the tails of a grid, point by point."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from tlcheck.algebra.algebra import Algebra
from tlcheck.algebra.evaluate import Evaluator
from tlcheck.algebra.polynomial import Poly
from tlcheck.execute.compile.extents import Intervals
from tlcheck.execute.memory.values import Array
from tlcheck.snapshot.arrays import ArrayNumbers
from tlcheck.snapshot.operators import exact, named

_MOST = 1 << 20  # points of one access
_HOLDS = {name: exact(name, ArrayNumbers()) for name in named("comparison")}


@dataclass(frozen=True, slots=True)
class Relation:
    """A condition that holds where an access stands: `first op second`."""

    op: str
    first: Poly
    second: Poly


def stay_inside(
    algebra: Algebra,
    blocks: Mapping[int, Array],
    known: Intervals,
    access: tuple[Poly, int, int],
    conditions: Sequence[Relation],
) -> Array:
    """Whether, in each block, an access stays in bounds where all conditions hold; no for too much work.

    blocks: the value of each variable of the block, in each of them. known: the ranges of the other variables.
    access: the place, how many elements, and how many there are. All polynomials have their own values.
    """
    place, length, size = access
    count = len(next(iter(blocks.values())))
    for used in range(len(conditions), -1, -1):
        parts = [place, *(p for each in conditions[:used] for p in (each.first, each.second))]
        space = _space(algebra.variables(*parts) - blocks.keys(), known)
        if space is not None and count * prod(map(len, space.values())) <= _MOST:
            break
    else:
        return np.zeros(count, np.bool_)
    rank = len(space) + 1
    environment: dict[int, Any] = {uid: _along(at, 0, rank) for uid, at in blocks.items()}
    environment |= {uid: _along(values, n + 1, rank) for n, (uid, values) in enumerate(space.items())}
    evaluate = Evaluator(algebra, environment)
    at = np.asarray(evaluate(place))
    wrong = (at < 0) | (at + length > size)
    for each in conditions[:used]:
        wrong = wrong & _HOLDS[each.op](evaluate(each.first), evaluate(each.second))
    whole = np.broadcast_to(wrong, np.broadcast_shapes(wrong.shape, (count, *[1] * (rank - 1))))
    return np.asarray(~whole.reshape(count, -1).any(axis=1))


def _space(variables: frozenset[int], known: Intervals) -> dict[int, Array] | None:
    """Return the values that variables may have; None where those of one are not known."""
    found: dict[int, Array] = {}
    for uid in variables:
        at = known.get(uid)
        if at is None or int(np.max(at[1])) - int(np.min(at[0])) >= _MOST:
            return None
        found[uid] = np.arange(int(np.min(at[0])), int(np.max(at[1])) + 1)
    return found


def _along(values: Array, axis: int, rank: int) -> Array:
    shape = [1] * rank
    shape[axis] = len(values)
    return np.asarray(values, np.int64).reshape(shape)
