"""Values in another form than in the source: the device's functions, and the types that operations round to."""

from __future__ import annotations

import numpy as np
import pytest

from tests.cpu.prove.handmade import ADDED, THREAD, add, address, cast, load, number, operation, own, status, tensor
from tlcheck.algebra.algebra import Algebra, unread
from tlcheck.algebra.evaluate import Evaluator
from tlcheck.snapshot.ir import Buffer, Expr

HALVES, FLOATS, SUMS = (
    tensor("H", "float16", 256, 91_040),
    tensor("F", "float32", 256, 91_041),
    tensor("S", "float32", 64, 91_042),
)
HALF, FLOAT = own(HALVES), own(FLOATS)
HERE = load(ADDED, THREAD)


def call(name: str, value: Expr) -> Expr:
    return Expr("call", value.dtype, (value,), name)


def device(name: str, value: Expr) -> Expr:
    """A function of the device, by its name."""
    return Expr("call", value.dtype, (Expr("str", "handle", value=name), value), "call_pure_extern")


def real(value: float, dtype: str) -> Expr:
    return Expr("float", dtype, value=value)


def verdict(source: Expr, lowered: Expr) -> str:
    """Return what is proved of a value that becomes another."""
    element = load(SUMS, THREAD)
    return status(add(element, source), add(element, lowered), HALVES, FLOATS, SUMS)


@pytest.mark.parametrize(
    ("name", "there", "expected"),
    [
        ("floor", "floorf", "same"),
        ("ceil", "ceilf", "same"),
        ("nearbyint", "rintf", "same"),
        ("floor", "ceilf", "undecided"),
        ("fabs", "floorf", "undecided"),
        ("round", "rintf", "undecided"),
    ],
)
def test_functions_are_known_by_their_names_on_the_device(name: str, there: str, expected: str) -> None:
    assert verdict(call(name, FLOAT), device(there, FLOAT)) == expected


@pytest.mark.parametrize(
    ("name", "there", "expected"),
    [("floor", "hfloor", "same"), ("fabs", "__habs", "same"), ("exp", "hexp", "same"), ("exp", "hfloor", "undecided")],
)
def test_functions_of_16_bits_are_known_by_their_names_on_the_device(name: str, there: str, expected: str) -> None:
    assert verdict(call(name, HALF), device(there, HALF)) == expected


WIDENED = cast("float32", HALF)


def test_a_function_that_is_rounded_to_16_bits_is_that_of_16_bits_and_no_other() -> None:
    rounded = cast("float16", device("expf", WIDENED))
    assert verdict(call("exp", HALF), rounded) == "same"
    assert verdict(call("exp", HALF), device("expf", WIDENED)) == "undecided"
    assert verdict(call("exp", WIDENED), device("hexp", HALF)) == "undecided"


@pytest.mark.parametrize("op", ["add", "sub", "mul", "div"])
def test_an_operation_of_16_bits_rounds(op: str) -> None:
    narrow, wide = operation(op, HALF, HALF), operation(op, WIDENED, WIDENED)
    assert verdict(narrow, cast("float16", wide)) == "same"
    assert verdict(wide, wide) == "same"
    assert verdict(wide, narrow) == "undecided"


def test_an_operation_of_64_bits_rounds_later() -> None:
    wide = operation("mul", *[cast("float64", FLOAT)] * 2)
    assert verdict(cast("float32", wide), cast("float32", wide)) == "same"
    assert verdict(operation("mul", FLOAT, FLOAT), cast("float32", wide)) == "undecided"


@pytest.mark.parametrize("op", ["add", "sub", "mul"])
def test_an_operation_wraps_where_its_type_ends(op: str) -> None:
    numbers = tensor("N", "int32", 256, 91_043)
    value = own(numbers)
    narrow, wide = operation(op, value, value), operation(op, cast("int64", value), cast("int64", value))

    def verdict(source: Expr, lowered: Expr) -> str:
        element = load(SUMS, THREAD)
        before, after = (add(element, cast("float32", v)) for v in (source, lowered))
        return status(before, after, numbers, SUMS)

    assert verdict(wide, wide) == "same"
    assert verdict(narrow, wide) == "undecided"


NUMBERS, LONGS = tensor("I", "int32", 256, 91_045), tensor("L", "int64", 256, 91_046)


@pytest.mark.parametrize("buffer", [NUMBERS, LONGS], ids=["int32", "int64"])
@pytest.mark.parametrize("divisor", [5, 7])
@pytest.mark.parametrize(("op", "other"), [("floordiv", "floormod"), ("floormod", "floordiv")])
def test_a_division_that_c_does_not_have_is_written_out(op: str, other: str, divisor: int, buffer: Buffer) -> None:
    def verdict(source: Expr, lowered: Expr) -> str:
        sums = tensor("S", buffer.dtype, 64, 91_042)
        before, after = (add(load(sums, THREAD), v) for v in (source, lowered))
        return status(before, after, NUMBERS, LONGS, sums)

    value, by = own(buffer), number(divisor, buffer.dtype)
    assert verdict(operation(op, value, by), written_out(op, value, divisor)) == "same"
    assert verdict(operation(op, value, by), written_out(other, value, divisor)) == "undecided"
    assert verdict(operation(op, value, by), written_out(op, value, divisor + 1)) == "undecided"
    assert verdict(operation(op, value, by), operation(op.replace("floor", "trunc"), value, by)) == "undecided"


@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize("divisor", [5, 7])
@pytest.mark.parametrize("op", ["floordiv", "floormod"])
def test_what_is_written_out_is_the_division(op: str, divisor: int, dtype: str) -> None:
    algebra, value = Algebra(unread), Expr("var", dtype, value="x", uid=1)
    algebra.ranges[1] = (-100, 100)
    at = Evaluator(algebra, {1: np.arange(-100, 101)})
    both = operation(op, value, number(divisor, dtype)), written_out(op, value, divisor)
    division, made = (at(algebra.poly(e)) for e in both)
    assert np.array_equal(division, made)


def written_out(op: str, value: Expr, divisor: int) -> Expr:
    """A division as lowered kernels have it."""
    by, rest = number(divisor, value.dtype), operation("truncmod", value, number(divisor, value.dtype))
    sign = operation("floordiv", rest, number(1 << 31))
    if value.dtype == "int64":
        sign = Expr("call", "int64", (rest, number(63, "int64")), "shift_right")
    if op == "floordiv":
        return operation("add", operation("truncdiv", value, by), sign)
    if divisor == 7:
        return operation("add", operation("floormod", sign, number(8, value.dtype)), rest)
    return operation("add", Expr("call", value.dtype, (by, sign), "bitwise_and"), rest)


def logistic(x: Expr, sign: float = 0.0) -> Expr:
    power = device("expf", operation("sub", real(sign, x.dtype), x))
    return operation("div", real(1.0, x.dtype), operation("add", real(1.0, x.dtype), power))


def test_a_sigmoid_is_written_out() -> None:
    assert verdict(call("sigmoid", FLOAT), logistic(FLOAT)) == "same"
    assert verdict(call("sigmoid", FLOAT), logistic(FLOAT, 1.0)) == "undecided"


COUNTERS = tensor("a", "int32", 65, 91_044)


def returned(index: Expr, how: str = "address_of") -> Expr:
    """Return what an atomic finds at an index."""
    place = address(load(COUNTERS, index))
    pointer = Expr("call", "handle", (place.args[0], number(1), number(3)), how) if how == "access_ptr" else place
    return Expr("call", "int32", (pointer, number(1)), "atomic_add_ret_elem_op")


@pytest.mark.parametrize(("moved", "expected"), [(0, "same"), (1, "different")])
def test_an_atomic_of_what_another_one_returns(moved: int, expected: str) -> None:
    source = add(HERE, returned(THREAD, "access_ptr"))
    lowered = add(HERE, returned(operation("add", THREAD, number(moved))))
    assert status(source, lowered, COUNTERS, root="B") == expected


def test_each_atomic_returns_a_number_of_its_own() -> None:
    quotient = operation("floordiv", returned(THREAD), number(5))
    source, lowered = add(HERE, quotient), add(HERE, written_out("floordiv", returned(THREAD), 5))
    assert status(source, source, COUNTERS, root="B") == "undecided"
    assert status(source, lowered, COUNTERS, root="B") == "undecided"
