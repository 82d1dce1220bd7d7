"""Values in another form than as written: the device's names of functions, and the types that operations round to."""

from __future__ import annotations

import pytest

from tests.cpu.prove.handmade import ADDED, THREAD, add, address, cast, load, number, operation, own, status, tensor
from tlcheck.snapshot.ir import Expr

HALVES, FLOATS, SUMS = (
    tensor("H", "float16", 256, 91_040),
    tensor("F", "float32", 256, 91_041),
    tensor("S", "float32", 64, 91_042),
)
HALF, FLOAT = own(HALVES), own(FLOATS)


def call(name: str, value: Expr) -> Expr:
    return Expr("call", value.dtype, (value,), name)


def device(name: str, value: Expr) -> Expr:
    """A function of the device, by its name."""
    return Expr("call", value.dtype, (Expr("str", "handle", value=name), value), "call_pure_extern")


def real(value: float, dtype: str) -> Expr:
    return Expr("float", dtype, value=value)


def verdict(written: Expr, lowered: Expr) -> str:
    """What is proved of a value that becomes another."""
    element = load(SUMS, THREAD)
    return status(add(element, written), add(element, lowered), HALVES, FLOATS, SUMS)


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

    def verdict(written: Expr, lowered: Expr) -> str:
        element = load(SUMS, THREAD)
        return status(*(add(element, cast("float32", v)) for v in (written, lowered)), numbers, SUMS)

    assert verdict(wide, wide) == "same"
    assert verdict(narrow, wide) == "undecided"


def logistic(x: Expr, sign: float = 0.0) -> Expr:
    power = device("expf", operation("sub", real(sign, x.dtype), x))
    return operation("div", real(1.0, x.dtype), operation("add", real(1.0, x.dtype), power))


def test_a_sigmoid_is_written_out() -> None:
    assert verdict(call("sigmoid", FLOAT), logistic(FLOAT)) == "same"
    assert verdict(call("sigmoid", FLOAT), logistic(FLOAT, 1.0)) == "undecided"


@pytest.mark.parametrize(("moved", "expected"), [(0, "same"), (1, "different")])
def test_an_atomic_of_what_another_one_returns(moved: int, expected: str) -> None:
    counters = tensor("a", "int32", 65, 91_044)

    def returned(index: Expr, how: str) -> Expr:
        place = address(load(counters, index))
        pointer = Expr("call", "handle", (place.args[0], number(1), number(3)), how) if how == "access_ptr" else place
        return Expr("call", "int32", (pointer, number(1)), "atomic_add_ret_elem_op")

    element = load(ADDED, THREAD)
    written = add(element, returned(THREAD, "access_ptr"))
    lowered = add(element, returned(operation("add", THREAD, number(moved)), "address_of"))
    assert status(written, lowered, counters, seen=(counters,), root="B") == expected
