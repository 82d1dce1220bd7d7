"""Accesses that conditions keep in bounds, in some blocks."""

from __future__ import annotations

import numpy as np
import pytest

from tlcheck.algebra.algebra import Algebra, unread
from tlcheck.execute.compile.extents import Intervals
from tlcheck.scope.tails import Relation, stay_inside
from tlcheck.snapshot.ir import Expr

BLOCK, THREAD, LOOP = 1, 2, 3


def _var(uid: int) -> Expr:
    return Expr("var", "int32", (), f"v{uid}", uid)


def _op(op: str, a: Expr, b: Expr | int) -> Expr:
    return Expr(op, "int32", (a, b if isinstance(b, Expr) else Expr("int", "int32", (), b)))


ROW = _op("floordiv", _var(THREAD), 2)
PLACE = _op("add", _op("mul", _var(BLOCK), 40), _var(THREAD))  # of 2,048: block 51 has 8 elements, those after it none
HALF = _op("add", _op("mul", _var(BLOCK), 20), ROW)


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        ([], [True, False, False]),
        ([("lt", HALF, 1024)], [True, True, True]),
        ([("le", HALF, 1023)], [True, True, True]),
        ([("le", HALF, 1024)], [True, False, True]),
        ([("lt", ROW, 4)], [True, True, False]),
        ([("ne", ROW, 4), ("lt", ROW, 5)], [True, True, False]),
        ([("eq", _var(THREAD), 7)], [True, True, False]),
        ([("ge", HALF, 0)], [True, False, False]),
    ],
)
def test_where_an_access_stays_in_bounds(conditions: list[tuple[str, Expr, int]], expected: list[bool]) -> None:
    algebra = Algebra(unread)
    known: Intervals = {THREAD: (0, 31)}
    compared = [Relation(op, algebra.poly(a), algebra.poly(Expr("int", "int32", (), b))) for op, a, b in conditions]
    blocks = {BLOCK: np.array([3, 51, 52])}
    assert stay_inside(algebra, blocks, known, (algebra.poly(PLACE), 1, 2048), compared).tolist() == expected


def test_what_is_wider_leaves_earlier() -> None:
    algebra = Algebra(unread)
    half = Relation("lt", algebra.poly(HALF), algebra.poly(Expr("int", "int32", (), 1024)))
    for length, expected in ((1, True), (2, False)):
        access = algebra.poly(PLACE), length, 2048
        assert stay_inside(algebra, {BLOCK: np.array([51])}, {THREAD: (0, 31)}, access, [half]).tolist() == [expected]


def test_nothing_is_said_of_what_has_no_range_or_too_many_points() -> None:
    algebra = Algebra(unread)
    blocks, access = {BLOCK: np.array([0])}, (algebra.poly(_op("add", PLACE, _var(LOOP))), 1, 1 << 40)
    assert stay_inside(algebra, blocks, {THREAD: (0, 31), LOOP: (0, 3)}, access, []).tolist() == [True]
    assert stay_inside(algebra, blocks, {THREAD: (0, 31)}, access, []).tolist() == [False]
    assert stay_inside(algebra, blocks, {THREAD: (0, 31), LOOP: (0, 1 << 21)}, access, []).tolist() == [False]
