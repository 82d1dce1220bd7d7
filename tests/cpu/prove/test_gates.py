"""Classes of blocks and iterations against all points one by one."""

from __future__ import annotations

from itertools import product
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis.strategies import randoms

from tlcheck.algebra.algebra import Algebra, Content, unread
from tlcheck.algebra.evaluate import Evaluator
from tlcheck.algebra.polynomial import Poly, add, constant, scale
from tlcheck.prove.fingerprints import UndecidedError
from tlcheck.prove.gates import Gates, unfloored
from tlcheck.snapshot.ir import Buffer, Expr

BLOCK, STEP, THREAD = 1, 2, 3
INNER = frozenset((THREAD,))


def algebra_of(random: Random, step: tuple[int | None, int | None]) -> Algebra:
    algebra = Algebra(unread)
    algebra.ranges.update({BLOCK: (0, random.randint(0, 3)), STEP: step, THREAD: (0, random.randint(1, 9))})
    return algebra


def lanes(algebra: Algebra, gates: list[tuple[int, Poly]], values: dict[int, int]) -> tuple[bool, ...]:
    """Return which threads run where the outer halves have these values."""
    last = algebra.ranges[THREAD][1] or 0
    return tuple(
        all(values[n] + int(Evaluator(algebra, {THREAD: t})(inside)) >= 0 for n, inside in gates)
        for t in range(last + 1)
    )


@pytest.mark.parametrize("step", [(0, 6), (0, None), (None, None)], ids=str)
@settings(max_examples=60)
@given(random=randoms(use_true_random=False))
def test_the_classes_are_all_ways_in_which_lanes_run(random: Random, step: tuple[int | None, int | None]) -> None:
    """Conditions `a*step + b*thread + c >= 0`, for all steps: no way is missing, and of one variable none is added."""
    algebra = algebra_of(random, step)
    gates, found = Gates(algebra), []
    for _ in range(random.randint(1, 3)):
        outside = scale(algebra.variable(STEP), random.choice((-16, -3, -1, 1, 2, 16)))
        inside = add(scale(algebra.variable(THREAD), random.choice((-2, -1, 1, 4))), constant(random.randint(-20, 20)))
        found.append(gates.add(add(outside, inside), INNER))
    reached = {lanes(algebra, found, values) for values in gates.classes([found], {})}
    low, high = -100 if step[0] is None else step[0], 100 if step[1] is None else step[1]
    expected = set()
    for k in range(low, high + 1):
        values = {n: int(Evaluator(algebra, {STEP: k})(p)) for n, p in enumerate(gates.outside)}
        expected.add(lanes(algebra, found, values))
    assert reached == expected


def test_sizes_that_are_not_known_fall_in_every_way() -> None:
    algebra = Algebra(unread)
    algebra.ranges.update({BLOCK: (0, None), STEP: (1, None), THREAD: (0, 7)})
    gates = Gates(algebra)
    rest = add(algebra.variable(STEP), scale(algebra.variable(BLOCK), 8), -1)
    gate = gates.add(add(add(rest, constant(-1)), algebra.variable(THREAD), -1), INNER)
    running = {sum(lanes(algebra, [gate], values)) for values in gates.classes([[gate]], {})}
    assert running == set(range(9))


def test_a_difference_of_two_elements_falls_in_every_way() -> None:
    """At elements whose place is known too: no content is known at which it turns."""
    algebra = Algebra(lambda e: Content("L", constant(int(e.args[0].value or 0))))
    algebra.ranges[THREAD] = (0, 7)
    at = [Expr("int", "int32", value=n) for n in (0, 1)]
    memory = Buffer("L", "int32", (Expr("int", "int32", value=2),), "global", Expr("var", "handle", value="L", uid=9))
    first, second = (algebra.poly(Expr("load", "int32", (n,), buffer=memory)) for n in at)
    gates = Gates(algebra)
    rest = add(add(second, first, -1), constant(-1))
    gate = gates.add(add(rest, algebra.variable(THREAD), -1), INNER)
    running = {sum(lanes(algebra, [gate], values)) for values in gates.classes([[gate]], {})}
    assert running == set(range(9))


@settings(max_examples=40)
@given(random=randoms(use_true_random=False))
def test_a_condition_without_its_quotient_holds_in_the_same_points(random: Random) -> None:
    algebra = algebra_of(random, (0, None))
    divided = add(algebra.variable(STEP), algebra.variable(THREAD))
    quotient = algebra.floordiv(divided, random.randint(2, 9))
    rest = add(scale(algebra.variable(BLOCK), random.choice((-1, 0, 2))), constant(random.randint(-5, 5)))
    lane = algebra.floordiv(algebra.variable(THREAD), 2)  # a quotient that is not in the way
    condition = add(add(rest, quotient, random.choice((-1, 1))), lane)
    plain = unfloored(algebra, condition, INNER)
    assert algebra.separate(condition, INNER) is None
    assert algebra.separate(plain, INNER) is not None
    for block, step, thread in product(range(4), range(30), range(8)):
        evaluate = Evaluator(algebra, {BLOCK: block, STEP: step, THREAD: thread})
        assert (int(evaluate(condition)) >= 0) == (int(evaluate(plain)) >= 0)


def test_what_does_not_separate_is_undecided() -> None:
    algebra = algebra_of(Random(0), (0, None))
    mixed = algebra.product(algebra.variable(STEP), algebra.variable(THREAD))
    with pytest.raises(UndecidedError, match="does not separate"):
        Gates(algebra).add(mixed, INNER)
