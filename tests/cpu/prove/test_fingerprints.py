"""Fingerprints of classes of outer points: many at once come to what each comes to alone, and tell lanes apart."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from tlcheck.algebra.algebra import Algebra, unread
from tlcheck.algebra.evaluate import Dimension
from tlcheck.algebra.polynomial import Poly, add, scale
from tlcheck.prove.fingerprints import Factors, Part, Sum, fingerprints

ROWS, COLUMNS = 64, 32
CLASSES = [{0: rows, 1: columns} for rows in (-70, -1, 0, 5, 63, 90) for columns in (-3, 0, 17, 31, 40)] * 9


def part(algebra: Algebra, flags: tuple[Poly, ...] = ()) -> Part:
    """A tile of which a class has the first rows and columns: lane (i, j) runs where i <= rows and j <= columns."""
    i, j = algebra.variable(1), algebra.variable(2)
    footprint = cast(Any, SimpleNamespace(leaves=(), needed=(), site=SimpleNamespace(is_idempotent=False)))
    space = (Dimension(1, 0, ROWS), Dimension(2, 0, COLUMNS))
    target: Factors = {(): add(scale(i, COLUMNS), j)}
    return Part(footprint, target, (), ((0, scale(i, -1)), (1, scale(j, -1))), flags, space, (), (), ())


def lanes(outer: dict[int, int], odd: bool = False) -> frozenset[tuple[int, int]]:
    """Those that run, one by one."""
    places = ((i, j) for i in range(ROWS) for j in range(COLUMNS) if not odd or j % 2)
    return frozenset((i, j) for i, j in places if i <= outer[0] and j <= outer[1])


def test_many_classes_at_once_are_what_each_is_alone() -> None:
    algebra = Algebra(unread)
    mine = [part(algebra)]
    found = fingerprints(algebra, mine, CLASSES)
    assert found == [fingerprints(algebra, mine, [outer])[0] for outer in CLASSES]
    assert [one.count for one in found] == [len(lanes(outer)) for outer in CLASSES]
    by_lanes: dict[frozenset[tuple[int, int]], set[Sum]] = {}
    for outer, one in zip(CLASSES, found, strict=True):
        by_lanes.setdefault(lanes(outer), set()).add(one)
    assert {len(sums) for sums in by_lanes.values()} == {1}
    assert len(set.union(*by_lanes.values())) == len(by_lanes)


def test_flags_hold_for_every_class() -> None:
    algebra = Algebra(unread)
    found = fingerprints(algebra, [part(algebra, (algebra.floormod(algebra.variable(2), 2),))], CLASSES)
    assert [one.count for one in found] == [len(lanes(outer, odd=True)) for outer in CLASSES]
