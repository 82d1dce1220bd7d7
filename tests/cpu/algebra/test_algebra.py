"""The normal form is an identity of integers: checked on random expressions against plain Python."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import assume, given, settings
from hypothesis.strategies import randoms

from tests.cpu.prove.random_expressions import ARITHMETIC, condition, expression, integer, value, variable
from tlcheck.algebra.algebra import Algebra, unread
from tlcheck.algebra.evaluate import Evaluator
from tlcheck.algebra.polynomial import Poly, add, as_constant
from tlcheck.snapshot.ir import Expr

POINTS = 12


def case(random: Random) -> tuple[Algebra, list[Expr]]:
    """Variables with random ranges, some of one value, some below 0."""
    algebra = Algebra(unread)
    variables = [variable(uid) for uid in range(1, 5)]
    for v in variables:
        low = random.choice((0, 0, 0, 5, -7, -64))
        algebra.ranges[v.uid] = (low, low + random.choice((0, 1, 3, 7, 31, 32, 127)))
    return algebra, variables


def points(random: Random, algebra: Algebra) -> list[dict[int, int]]:
    """Corners of the ranges and points inside."""
    ranges = {uid: (low or 0, high or 0) for uid, (low, high) in algebra.ranges.items()}
    inside = [{uid: random.randint(*r) for uid, r in ranges.items()} for _ in range(POINTS)]
    corners = [{uid: random.choice(r) for uid, r in ranges.items()} for _ in range(4)]
    return inside + corners


def at(algebra: Algebra, poly: Poly, point: dict[int, int]) -> int:
    return int(Evaluator(algebra, point)(poly))


@settings(max_examples=300)
@given(random=randoms(use_true_random=False))
def test_the_normal_form_has_the_value_of_the_expression(random: Random) -> None:
    algebra, variables = case(random)
    e = expression(random, variables, 4)
    poly = algebra.poly(e)
    low, high = algebra.bounds(poly)
    for point in points(random, algebra):
        expected = value(e, point)
        assert at(algebra, poly, point) == expected, point
        assert low is None or low <= expected
        assert high is None or expected <= high


@settings(max_examples=150)
@given(random=randoms(use_true_random=False))
def test_conditions_selections_and_division_as_in_c(random: Random) -> None:
    algebra, variables = case(random)
    branches = [expression(random, variables, 2, (*ARITHMETIC, "truncdiv", "truncmod")) for _ in range(2)]
    e = Expr("select", "int32", (condition(random, variables, 3), *branches))
    poly = algebra.poly(e)
    for point in points(random, algebra):
        assert at(algebra, poly, point) == value(e, point), point


@pytest.mark.parametrize("split", ["separate", "factor"])
@settings(max_examples=150)
@given(random=randoms(use_true_random=False))
def test_halves_put_together_are_the_whole(random: Random, split: str) -> None:
    algebra, variables = case(random)
    poly = algebra.poly(expression(random, variables, 3))
    inner = frozenset(random.sample([1, 2, 3, 4], 2))
    if split == "separate":
        halves = algebra.separate(poly, inner)
        whole = halves and add(*halves)
        kept = halves and [(halves[0], True), (halves[1], False)]
    else:
        parts = algebra.factor(poly, inner)
        whole = parts and _sum(algebra, *parts)
        kept = parts and [
            (parts[0], True),
            *(({m: 1}, True) for m in parts[1]),
            *((p, False) for p in parts[1].values()),
        ]
    assume(kept is not None)
    assert whole == poly
    for part, outside in kept or ():
        used = algebra.variables(part)
        assert not used & inner if outside else used <= inner


def _sum(algebra: Algebra, outside: Poly, factors: dict[tuple[int, ...], Poly]) -> Poly:
    for monomial, inner in factors.items():
        outside = add(outside, algebra.product({monomial: 1}, inner))
    return outside


def test_division_goes_through_what_it_divides() -> None:
    algebra = Algebra(unread)
    k, i = variable(1), variable(2)
    algebra.ranges.update({1: (0, 99), 2: (0, 31)})
    address = Expr("add", "int32", (Expr("mul", "int32", (k, integer(32))), i))
    quotient = algebra.poly(Expr("floordiv", "int32", (address, integer(8))))
    remainder = algebra.poly(Expr("floormod", "int32", (address, integer(32))))
    assert algebra.separate(quotient, frozenset((2,))) is not None
    assert quotient == add(algebra.product(algebra.variable(1), {(): 4}), algebra.floordiv(algebra.variable(2), 8))
    assert remainder == algebra.variable(2)


def test_a_variable_with_another_range_is_simplified_anew() -> None:
    algebra = Algebra(unread)
    e = Expr("floormod", "int32", (variable(1), integer(8)))
    algebra.ranges[1] = (0, 7)
    narrow = algebra.poly(e)
    algebra.ranges[1] = (0, 63)
    algebra.forget()
    assert at(algebra, narrow, {1: 5}) == 5
    assert at(algebra, algebra.poly(e), {1: 13}) == 5


@pytest.mark.parametrize(("op", "expected"), [("truncdiv", (-1, 1)), ("truncmod", (-3, 3))])
def test_division_in_c_rounds_towards_zero(op: str, expected: tuple[int, int]) -> None:
    algebra = Algebra(unread)
    algebra.ranges[1] = (-10, 10)
    poly = algebra.poly(Expr(op, "int32", (variable(1), integer(4))))
    assert (at(algebra, poly, {1: -7}), at(algebra, poly, {1: 7})) == expected


def test_constants_are_folded() -> None:
    algebra = Algebra(unread)
    seven = Expr("add", "int32", (integer(3), Expr("mul", "int32", (integer(2), integer(2)))))
    assert as_constant(algebra.poly(seven)) == 7


def test_an_index_wraps_where_its_type_ends() -> None:
    """65,536 blocks of 65,536 elements: the sum of both parts fits int64 only. A difference that fits is none."""
    algebra = Algebra(unread)
    algebra.ranges.update({1: (0, 65535), 2: (0, 65535)})

    def index(dtype: str) -> Expr:
        block, thread = (Expr("cast", dtype, (Expr("var", "int32", value=f"v{uid}", uid=uid),)) for uid in (1, 2))
        scaled = Expr("mul", dtype, (block, Expr("int", dtype, value=65536)))
        return Expr("add", dtype, (scaled, thread))

    def at(expr: Expr, block: int, thread: int) -> int:
        return int(Evaluator(algebra, {1: block, 2: thread})(algebra.poly(expr)))

    assert at(index("int64"), 65535, 7) == 65535 * 65536 + 7
    assert at(index("int32"), 32767, 7) == 32767 * 65536 + 7
    assert at(index("int32"), 65535, 7) == 7 - 65536
    assert at(Expr("floordiv", "int32", (index("int32"), Expr("int", "int32", value=65536))), 65535, 7) == -1
    back = Expr("sub", "int32", (index("int32"), index("int32")))
    assert as_constant(algebra.poly(back)) == 0
