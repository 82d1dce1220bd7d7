"""A tile of the source, and lowered in another order, with a fault or none: footprints made by hand, at random."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from random import Random

from tests.cpu.prove import tiles
from tests.cpu.prove.tiles import BLOCK, THREAD
from tlcheck.algebra.algebra import Algebra
from tlcheck.algebra.evaluate import Dimension, Evaluator
from tlcheck.algebra.polynomial import Poly, add, constant, scale
from tlcheck.prove.footprints import Footprint

BLOCKS = 3
FAULTS = ("", "stride", "shift", "source", "repeat", "drop", "gate", "split", "overlap")


def counted(algebra: Algebra, footprints: Sequence[Footprint], bounded: bool) -> Counter[tuple[int, ...]]:
    """(block, destination, elements read) -> how often."""
    found: Counter[tuple[int, ...]] = Counter()
    for f in footprints:
        for block, *where in product(range(BLOCKS), *(range(d.start, d.start + d.extent) for d in f.space)):
            point = {BLOCK: block, **dict(zip((d.uid for d in f.space), where, strict=True))}
            at = Evaluator(algebra, point)
            if all(int(at(c)) >= 0 for c in (*f.conditions, *(f.inside if bounded else ()))):
                key = (block, int(at(f.target)), *(int(at(leaf.element)) for leaf in f.leaves))
                found[key] += 1
    return found


class Pair:
    """A tile of random size as source, and as a loop over threads and lanes in another order, with a fault or none."""

    def __init__(self, random: Random, fault: str) -> None:
        self.random = random
        self.digits = [self.random.choice((2, 2, 3, 4, 8)) for _ in range(self.random.randint(2, 4))]
        self.lanes = 1
        for digit in self.digits:
            self.lanes *= digit
        self.algebra, whole = tiles.whole(self.lanes)
        self.algebra.ranges[BLOCK] = (0, BLOCKS - 1)
        self.total = BLOCKS * self.lanes - (self.random.randint(1, self.lanes - 1) if self.random.random() < 0.6 else 0)
        self.twist = self.random.choice((1, 1, 2, 3))
        element = self._element(self.algebra.variable(1))
        self.intended = [self._footprint(whole, whole.space, element, element, cut=True)]
        self.actual = self._lowered(whole, fault)

    def _element(self, inner: Poly) -> Poly:
        return add(scale(self.algebra.variable(BLOCK), self.lanes), inner)

    def _footprint(
        self, like: Footprint, space: Sequence[Dimension], element: Poly, source: Poly, cut: bool, slack: int = 0
    ) -> Footprint:
        """One that adds `source` of A to a function of `element` of B; within the total where `cut`."""
        target = add(scale(element, self.twist), self.algebra.floordiv(element, self.lanes))
        within = add(constant(self.total - 1 + slack), element, -1)
        leaf = replace(like.leaves[0], element=source)
        return replace(
            like,
            space=tuple(space),
            target=target,
            indices=(target,),
            leaves=(leaf,),
            conditions=(within,) if cut else (),
        )

    def _lowered(self, like: Footprint, fault: str) -> list[Footprint]:
        order = list(range(len(self.digits)))
        self.random.shuffle(order)
        strides = [1] * len(self.digits)
        for k in range(len(self.digits) - 2, -1, -1):
            strides[k] = strides[k + 1] * self.digits[k + 1]
        uids = [THREAD, *range(10, 10 + len(order) - 1)]
        space = [Dimension(uids[n], 0, self.digits[k]) for n, k in enumerate(order)]
        if fault == "stride":
            strides[order[0]] += 1
        if fault == "repeat":
            space[0] = replace(space[0], extent=space[0].extent + 1)
        if fault == "drop":
            space[0] = replace(space[0], extent=space[0].extent - 1)
        for d in space:
            self.algebra.ranges[d.uid] = (d.start, d.start + d.extent - 1)
        inner: Poly = {}
        for n, k in enumerate(order):
            inner = add(inner, scale(self.algebra.variable(uids[n]), strides[k]))
        element = self._element(inner)
        source = self._element(add(inner, constant(1))) if fault == "source" else element
        if fault == "shift":
            element = add(element, constant(1))
        made = self._footprint(like, space, element, source, cut=True, slack=int(fault == "gate"))
        return self._halves(made, fault) if fault in ("split", "overlap") else [made]

    def _halves(self, whole: Footprint, fault: str) -> list[Footprint]:
        """Two sites, one for the first threads and one for the others."""
        cut = self.random.randint(1, whole.space[0].extent - 1)
        thread = self.algebra.variable(THREAD)
        before = add(constant(cut - 1 + (fault == "overlap")), thread, -1)
        after = add(thread, constant(cut), -1)
        return [replace(whole, conditions=(*whole.conditions, c)) for c in (before, after)]
