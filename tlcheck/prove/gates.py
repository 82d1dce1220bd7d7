"""Conditions that mix blocks and lanes (tails): a lane runs where an outer half plus an inner half is >= 0.

The outer halves are numbered, and the blocks and iterations are cut into classes in which every condition falls alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from math import prod

import numpy as np

from tlcheck.algebra.algebra import Algebra
from tlcheck.algebra.evaluate import Dimension, Evaluator, Values, chunks, size
from tlcheck.algebra.polynomial import Poly, add, as_constant, key
from tlcheck.prove.contents import reads
from tlcheck.prove.fingerprints import UndecidedError, shape_of
from tlcheck.reasons import ENUMERATION

Gate = tuple[int, Poly]  # number of the outer half, inner half
Loops = Mapping[int, tuple[Poly, Poly]]  # uid -> (start, extent)
MAX_CLASSES = 20_000
MAX_OUTER = 1 << 22


class Gates:
    """The outer halves of all conditions of one comparison: `outside[number]`."""

    def __init__(self, algebra: Algebra) -> None:
        self.algebra = algebra
        self.outside: list[Poly] = []
        self._numbers: dict[object, int] = {}

    def add(self, condition: Poly, inner: frozenset[int]) -> Gate:
        """A condition `>= 0` as (number, inner half). Raises UndecidedError where it does not separate."""
        halves = self.algebra.separate(condition, inner)
        if halves is None:
            halves = self.algebra.separate(unfloored(self.algebra, condition, inner), inner)
        if halves is None:
            raise UndecidedError("the condition's address does not separate into block and thread parts")
        outside, inside = halves
        number = self._numbers.setdefault(key(outside), len(self.outside))
        if number == len(self.outside):
            self.outside.append(outside)
        return number, inside

    def span(self, gates: Iterable[Gate], number: int) -> tuple[int, int]:
        """The range within which an outer half's value matters: below none of the inner halves added to it hold,
        above all.
        """
        spans = [self.algebra.bounds(inside) for n, inside in gates if n == number]
        lows, highs = [s[0] for s in spans], [s[1] for s in spans]
        if any(x is None for x in (*lows, *highs)):
            raise UndecidedError("a condition's range is not known")
        return -max(x for x in highs if x is not None) - 1, -min(x for x in lows if x is not None)

    def classes(self, parts: Sequence[Sequence[Gate]], loops: Loops) -> list[dict[int, int]]:
        """Values of the outer halves that stand for all blocks and iterations: number -> value. parts: the gates of
        each footprint.
        """
        constants = {n: as_constant(p) for n, p in enumerate(self.outside)}
        fixed = {n: v for n, v in constants.items() if v is not None}
        open_ = [n for n, v in constants.items() if v is None]
        if not open_:
            return [fixed]
        points = self._points([self.outside[n] for n in open_], loops)
        if points is not None:
            return [{**fixed, **dict(zip(open_, row, strict=True))} for row in points]
        return [{**fixed, **values} for values in self._falls(open_, parts)]

    def _points(self, polys: Sequence[Poly], loops: Loops) -> list[tuple[int, ...]] | None:
        """The distinct joint values of outer halves over all outer points, where those are known and few."""
        used = self.algebra.variables(*polys)
        used |= self.algebra.variables(*(p for uid in used & loops.keys() for p in loops[uid]))
        if any(a.kind == "load" for a in self.algebra.atoms if a.vars & used):
            return None
        if any(sum(reads(self.algebra, {m: 1}) for m in p) > 1 for p in polys):  # no content is known at which it turns
            return None
        space = known_space(self.algebra, used)
        if space is None or size(space) > MAX_OUTER:
            return None
        inside = {uid: bounds for uid, bounds in loops.items() if uid in used}
        rows: set[tuple[int, ...]] = set()
        for env in chunks(space):
            evaluate = Evaluator(self.algebra, env)
            shape = shape_of(env)
            active = np.broadcast_to(np.asarray(runs(self.algebra, evaluate, inside), dtype=np.bool_), shape)
            table = np.stack([np.broadcast_to(np.asarray(evaluate(p)), shape)[active] for p in polys], axis=1)
            rows.update(tuple(int(x) for x in row) for row in np.unique(table, axis=0))
        return sorted(rows) if len(rows) <= MAX_CLASSES else None

    def _falls(self, open_: Sequence[int], parts: Sequence[Sequence[Gate]]) -> Iterator[dict[int, int]]:
        """All ways in which outer halves of unknown size can fall among the inner halves added to them. Those of one
        atom alone fall together; of those that always stand beside the same inner halves the lowest decides.
        """
        gates = [gate for part in parts for gate in part]
        multiples: dict[int, list[int]] = {}
        alike: dict[object, list[int]] = {}
        for number in open_:
            # the atom of `c * atom`, which is all that an outer half has; None for others
            ((monomial, _), *more) = self.outside[number].items()
            atom = None if more or len(monomial) != 1 else monomial[0]
            if atom is not None:
                multiples.setdefault(atom, []).append(number)
            else:
                company = tuple(tuple(sorted(key(inside) for n, inside in part if n == number)) for part in parts)
                alike.setdefault(company, []).append(number)
        choices = [self._lowest(numbers, gates) for numbers in alike.values()]
        choices += [self._joint(atom, numbers, gates) for atom, numbers in multiples.items()]
        total = prod(len(c) for c in choices)
        if total > MAX_CLASSES:
            raise UndecidedError(f"too many ways in which its conditions can hold ({total})", ENUMERATION)
        return ({n: v for choice in chosen for n, v in choice.items()} for chosen in product(*choices))

    def _lowest(self, numbers: Sequence[int], gates: Sequence[Gate]) -> list[dict[int, int]]:
        """One value for each way in which the lowest of some outer halves can fall, given to all of them."""
        first, last = self.span(gates, numbers[0])
        bounds = [self.algebra.bounds(self.outside[n]) for n in numbers]
        lows = [low for low, _ in bounds if low is not None]
        highs = [high for _, high in bounds if high is not None]
        first = max(first, min(lows)) if len(lows) == len(numbers) else first
        last = min(last, *highs) if highs else last
        return [dict.fromkeys(numbers, value) for value in range(first, last + 1)]

    def _joint(self, atom: int, numbers: Sequence[int], gates: Sequence[Gate]) -> list[dict[int, int]]:
        """The same for outer halves that are multiples of one atom: its values one by one, one beyond each end."""
        factors = {n: next(iter(self.outside[n].values())) for n in numbers}
        spans = {n: self.span(gates, n) for n in numbers}
        ends = [bound // factors[n] + step for n in numbers for bound in spans[n] for step in (0, 1)]
        low, high = self.algebra.bounds({(atom,): 1})
        first = min(ends) if low is None else max(low, min(ends))
        last = max(first, max(ends) if high is None else min(high, max(ends)))
        if last - first > MAX_CLASSES:
            raise UndecidedError(f"too many ways in which its conditions can hold ({last - first})", ENUMERATION)
        rows = [tuple(int(np.clip(v * factors[n], *spans[n])) for n in numbers) for v in range(first, last + 1)]
        return [dict(zip(numbers, row, strict=True)) for row in dict.fromkeys(rows)]


def unfloored(algebra: Algebra, condition: Poly, inner: frozenset[int]) -> Poly:
    """A condition `>= 0` without the quotient that mixes inner and outer variables: x // d <= m says
    x <= d*m + d - 1, and x // d >= m says x >= d*m. The same polynomial where there is not exactly one such quotient.
    """
    atoms = algebra.atoms
    mixed = [m for m in condition if any(atoms[n].vars & inner and not atoms[n].vars <= inner for n in m)]
    if len(mixed) != 1 or len(mixed[0]) != 1 or atoms[mixed[0][0]].kind != "//" or abs(condition[mixed[0]]) != 1:
        return condition
    return algebra.without_quotient(condition, mixed[0])


def known_space(algebra: Algebra, uids: frozenset[int]) -> list[Dimension] | None:
    """All values of some variables; None where one has no known range."""
    space: list[Dimension] = []
    for uid in sorted(uids):
        low, high = algebra.ranges.get(uid, (None, None))
        if low is None or high is None:
            return None
        space.append(Dimension(uid, low, high - low + 1))
    return space


def runs(algebra: Algebra, evaluate: Evaluator, loops: Loops) -> Values:
    """Return which outer points lie within the loops."""
    active: Values = 1
    for uid, (start, extent) in loops.items():
        position = evaluate(add(algebra.variable(uid), start, -1))
        active = active * np.logical_and(np.greater_equal(position, 0), np.less(position, evaluate(extent)))
    return active if isinstance(active, int) else np.asarray(active, dtype=np.int64)
