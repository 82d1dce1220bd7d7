"""Choices within a value: the side that is not taken is not read, and passes may write anything there."""

from __future__ import annotations

import pytest

from tests.cpu.prove.handmade import ADDED, BLOCK, THREAD, add, chosen, load, number, operation, own, status, tensor
from tlcheck.snapshot.ir import Expr

FLOATS, OTHERS, WORDS = (
    tensor("F", "float32", 256, 91_050),
    tensor("G", "float32", 256, 91_051),
    tensor("W", "int32", 64, 91_052),
)
SUMS = tensor("S", "float32", 64, 91_053)
FIRST_HALF = operation("lt", THREAD, number(32))
SECOND_BLOCK = operation("eq", BLOCK, number(1))
WORD = load(WORDS, THREAD)
IS_THREE = operation("eq", WORD, number(3))
BACKWARDS = operation("sub", number(63), THREAD)
ROW = operation("mul", BLOCK, number(64))


def verdict(source: Expr, lowered: Expr) -> str:
    element = load(SUMS, THREAD)
    return status(add(element, source), add(element, lowered), FLOATS, OTHERS, WORDS, SUMS, root="S")


def of_f(index: Expr | int) -> Expr:
    return load(FLOATS, number(index) if isinstance(index, int) else index)


def of_g(index: Expr | int) -> Expr:
    return load(OTHERS, number(index) if isinstance(index, int) else index)


WRAPPED, HALF = operation("floormod", THREAD, number(32)), operation("floordiv", THREAD, number(32))


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (of_f(THREAD), of_g(1), "same"),
        (of_f(WRAPPED), of_g(HALF), "same"),
        (of_f(operation("add", THREAD, number(1))), of_g(1), "different"),
        (of_f(THREAD), of_g(0), "different"),
        (of_f(THREAD), of_g(operation("max", HALF, WRAPPED)), "different"),
    ],
)
def test_each_side_may_be_simplified_by_its_condition(first: Expr, second: Expr, expected: str) -> None:
    source = chosen(FIRST_HALF, of_f(WRAPPED), of_g(HALF))
    assert verdict(source, chosen(FIRST_HALF, first, second)) == expected


@pytest.mark.parametrize(("limit", "expected"), [(32, "same"), (33, "different"), (31, "different")])
def test_another_condition_is_another_value(limit: int, expected: str) -> None:
    """Each lane of the source reads one element on either side."""
    source = chosen(FIRST_HALF, of_f(WRAPPED), of_g(HALF))
    assert verdict(source, chosen(operation("lt", THREAD, number(limit)), of_f(THREAD), of_g(1))) == expected


@pytest.mark.parametrize(("row", "expected"), [(64, "same"), (128, "different")])
def test_a_choice_by_the_block(row: int, expected: str) -> None:
    source = chosen(SECOND_BLOCK, of_g(operation("add", ROW, BACKWARDS)), own(FLOATS))
    lowered = chosen(SECOND_BLOCK, of_g(operation("add", number(row), BACKWARDS)), own(FLOATS))
    assert verdict(source, lowered) == expected


@pytest.mark.parametrize(("inner", "expected"), [(of_f(WRAPPED), "same"), (of_f(BACKWARDS), "different")])
def test_a_choice_within_a_choice(inner: Expr, expected: str) -> None:
    odd = operation("eq", operation("floormod", THREAD, number(2)), number(1))
    source = chosen(FIRST_HALF, chosen(odd, of_f(THREAD), of_g(THREAD)), of_g(0))
    assert verdict(source, chosen(FIRST_HALF, chosen(odd, inner, of_g(WRAPPED)), of_g(0))) == expected


def test_a_choice_by_what_memory_holds_is_not_refuted_by_the_other_side() -> None:
    source = chosen(IS_THREE, of_f(WORD), of_g(THREAD))
    assert verdict(source, chosen(IS_THREE, of_f(3), of_g(THREAD))) == "undecided"
    assert verdict(source, chosen(IS_THREE, of_f(4), of_g(THREAD))) == "different"
    assert verdict(source, chosen(IS_THREE, of_f(WORD), of_g(BACKWARDS))) == "different"
    assert verdict(source, source) == "same"


def test_what_is_read_on_no_side_is_not_compared() -> None:
    never = operation("lt", THREAD, number(0))
    element = load(ADDED, THREAD)
    source, lowered = (chosen(never, load(WORDS, i), number(1)) for i in (THREAD, BACKWARDS))
    assert status(add(element, source), add(element, lowered), WORDS, root="B") == "same"
