"""Arithmetic of the field, against Python's integers, and what maxima and functions are known by."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction

import numpy as np
import pytest

from tlcheck.execute.field import PRIME, Array, Field, constant, inverse, product, reduced, scaled, times
from tlcheck.execute.stops import NotModelled

BLOCKS, LANES = 2, 4
NUMBERS = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """As a machine runs."""
    with np.errstate(all="ignore"):
        yield


def _numbers(*shape: int) -> Array:
    return NUMBERS.integers(0, PRIME, shape or (2 * BLOCKS, LANES)).astype(np.float64)


def _whole(values: Array) -> list[int]:
    return [int(value) for value in values.reshape(-1)]


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (lambda a, b: reduced(a + b), int.__add__),
        (lambda a, b: reduced(a - b), int.__sub__),
        (times, int.__mul__),
    ],
)
def test_sums_and_products_are_exact(ours: Callable[[Array, Array], Array], theirs: Callable[[int, int], int]) -> None:
    a, b = _numbers(1000), _numbers(1000)
    a[:3], b[:3] = (0, PRIME - 1, PRIME - 1), (PRIME - 1, PRIME - 1, 1)
    assert _whole(ours(a, b)) == [theirs(x, y) % PRIME for x, y in zip(_whole(a), _whole(b), strict=True)]


@pytest.mark.parametrize("terms", [5000, 20_000])
def test_a_product_of_matrices_is_exact(terms: int) -> None:
    a, b = _numbers(3, terms), np.full((terms, 2), PRIME - 1.0)
    expected = [sum(x * (PRIME - 1) for x in _whole(row)) % PRIME for row in a for _ in range(2)]
    assert _whole(product(a, b)) == expected


def test_the_chance_is_as_the_pages_say() -> None:
    """The formula has degree 1,000 and 400 arguments of functions."""
    assert (1000 / PRIME) ** 2 * 400 < 1e-7


def test_two_polynomials_are_equal_at_their_roots_alone() -> None:
    """(x - 1) (x - 2) ... (x - d) is 0 for d of all numbers."""
    x, degree = np.arange(10_000.0), 500
    found = np.ones_like(x)
    for root in range(degree):
        found = times(found, reduced(x - root))
    assert np.flatnonzero(found == 0).tolist() == list(range(degree))


def test_an_inverse_times_its_number_is_one_and_zero_has_none() -> None:
    a = _numbers(100)
    assert (times(a, inverse(a)) == 1).all()
    assert np.isnan(inverse(np.zeros(1))).all()


def test_constants_stand_for_what_they_are() -> None:
    assert times(constant(0.375), 8.0) == 3
    assert reduced(constant(-1.0) + 1.0) == 0
    third = float(np.float32(1 / 3))
    assert constant(third) == Fraction(third).numerator * pow(Fraction(third).denominator, -1, PRIME) % PRIME


def test_the_sign_of_an_infinite_product_is_known_beside_a_constant_only() -> None:
    endless = np.array([-np.inf, 2.0])
    assert np.isnan(times(endless, 3.0)[0])
    assert scaled(endless, 3.0, 1).tolist() == [-np.inf, 6.0]
    assert scaled(endless, constant(-1.0), -1)[0] == np.inf
    assert isinstance(scaled(-np.inf, 3.0, 1), float)
    assert isinstance(times(2.0, -np.inf), float)


def test_a_function_is_the_same_for_the_same_argument_and_no_other() -> None:
    field, a = Field(BLOCKS), _numbers()
    other = a.copy()
    other[-1, -1] = reduced(other[-1, -1] + 1)
    assert (Field(BLOCKS).function("exp", a) == field.function("exp", a)).all()
    assert (field.function("exp", a) != field.function("log", a)).all()
    differs = field.function("exp", a) != field.function("exp", other)
    assert np.argwhere(differs).tolist() == [[BLOCKS - 1, LANES - 1], [2 * BLOCKS - 1, LANES - 1]]


def test_an_absolute_value_is_the_maximum_of_a_number_and_its_negative() -> None:
    """The maximum of these with 0 is the same too, and no other is."""
    field, a, b = Field(BLOCKS), _numbers(), _numbers()
    assert (field.absolute(a) == field.absolute(reduced(-a))).all()
    assert (field.absolute(a) != a).all()
    assert (field.extremum("max", (0.0, field.absolute(a), a)) == field.absolute(a)).all()
    assert (field.extremum("min", (a, 0.0, reduced(-a))) == field.extremum("min", (a, reduced(-a)))).all()
    half = field.extremum("max", (0.0, a, b))
    assert (half != field.extremum("max", (a, b))).all()
    assert (field.extremum("max", (half, reduced(-b))) == field.extremum("max", (b, reduced(-b), a))).all()
    assert (field.extremum("max", (0.0, a, a)) != a).all()


def test_iterations_of_a_loop_at_once_are_as_each_by_itself() -> None:
    """Two iterations, each in all worlds."""
    (a, b), (c, d), field = (_numbers(), _numbers()), (_numbers(), _numbers()), Field(BLOCKS)
    both, together = field.among(2 * BLOCKS, 2), [np.concatenate(pair) for pair in ((a, c), (b, d))]
    of_two: Callable[[Field, Array, Array], Array]
    for of_two in (
        lambda field, one, other: field.function("exp", one),
        lambda field, one, other: field.extremum("max", (one, other)),
        lambda field, one, other: field.function("pow", one, field.function("the number scale")),
    ):
        assert (of_two(both, *together) == np.concatenate([of_two(field, a, b), of_two(field, c, d)])).all()


def test_a_maximum_is_known_by_what_it_is_the_largest_of() -> None:
    field, (a, b, c, d) = Field(BLOCKS), (_numbers() for _ in range(4))
    nested = field.extremum(
        "max", (field.extremum("max", (a, b)), field.extremum("max", (d, field.extremum("max", (c, a)))))
    )
    assert (nested == Field(BLOCKS).extremum("max", (d, c, b, a))).all()
    assert (nested != field.extremum("max", (a, b, c))).all()
    assert (nested != field.extremum("min", (a, b, c, d))).all()
    assert (field.extremum("max", (a, a, np.float64(-np.inf))) == a).all()
    assert (field.extremum("max", (np.full_like(a, -np.inf), -np.inf)) == -np.inf).all()


def test_one_of_many_that_is_missing_makes_another_maximum() -> None:
    terms = list(_numbers(200, 2 * BLOCKS, LANES))
    whole = Field(BLOCKS).extremum("max", terms)
    assert all((Field(BLOCKS).extremum("max", terms[:n] + terms[n + 1 :]) != whole).all() for n in range(0, 200, 20))


def test_nothing_is_known_of_a_maximum_with_a_nan() -> None:
    a, b = _numbers(), _numbers()
    b[0, 1] = np.nan
    assert np.argwhere(np.isnan(Field(BLOCKS).extremum("max", (a, b)))).tolist() == [[0, 1], [BLOCKS, 1]]


def test_older_sets_are_dropped_and_then_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A maximum of which nobody knows any more what it is of differs from the one it is."""
    monkeypatch.setattr("tlcheck.execute.field._MOST_MEMBERS", 16)
    field, (a, b, c, d) = Field(BLOCKS), (_numbers() for _ in range(4))
    first = field.extremum("max", (a, b))
    whole = Field(BLOCKS).extremum("max", (a, b, c))
    assert (field.extremum("max", (first, c)) == whole).all()
    for _ in range(4):
        field.extremum("max", (d, _numbers()))
    assert (field.extremum("max", (first, c)) != whole).all()


def test_too_many_members_are_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tlcheck.execute.field._MOST_WORK", 40)
    field, terms = Field(BLOCKS), [_numbers() for _ in range(4)]
    field.extremum("max", terms)
    with pytest.raises(NotModelled, match="a maximum of too many numbers"):
        field.extremum("max", terms)


def test_a_number_that_nobody_says_is_one_for_each_half() -> None:
    """A parameter of the kernel, say: a function of nothing."""
    found = Field(3).function("the number scale")
    assert found.shape == (6, 1)
    assert len(np.unique(found)) == 2
