"""Numbers that memory holds, in the types that kernels cast them to: booleans as bytes, halves of numbers, floats."""

from __future__ import annotations

import pytest

from tests.cpu.prove.handmade import (
    ADDED,
    STEP,
    THREAD,
    add,
    cast,
    chosen,
    load,
    number,
    operation,
    own,
    parallel,
    status,
    tensor,
    within,
)
from tlcheck.snapshot.ir import Expr, Stmt

ONE = number(1)
HERE = load(ADDED, THREAD)
THERE = load(ADDED, STEP)


def at(index: Expr, *conditions: Expr) -> Stmt:
    """One is added at an index."""
    return add(load(ADDED, index), ONE, *conditions)


# ---- booleans

MASK, BYTES = tensor("M", "bool", 256, 91_020), tensor("M", "int8", 256, 91_020)
TRUTH, BYTE = own(MASK, STEP), own(BYTES)
IS_TRUE = cast("bool", BYTE)


def of_mask(written: Stmt, lowered: Stmt) -> str:
    """Return what is proved of a kernel with a mask, which is lowered to bytes."""
    return status(parallel(written), lowered, MASK, seen=(BYTES,))


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (IS_TRUE, "same"),
        (operation("ne", BYTE, number(0, "int8")), "same"),
        (operation("not", IS_TRUE), "different"),
        (operation("eq", BYTE, number(0, "int8")), "different"),
    ],
)
def test_a_byte_of_a_mask_is_its_truth_value(condition: Expr, expected: str) -> None:
    assert of_mask(add(THERE, ONE, TRUTH), add(HERE, ONE, condition)) == expected


def test_a_mask_is_not_left_out() -> None:
    assert of_mask(add(THERE, ONE, TRUTH), add(HERE, ONE)) == "different"


@pytest.mark.parametrize(
    ("index", "expected"),
    [
        (cast("int32", IS_TRUE), "same"),
        (cast("int32", BYTE), "same"),
        (operation("sub", number(1), cast("int32", IS_TRUE)), "different"),
    ],
)
def test_a_boolean_as_a_number_is_zero_or_one(index: Expr, expected: str) -> None:
    assert of_mask(at(cast("int32", TRUTH)), at(index)) == expected


@pytest.mark.parametrize(("condition", "expected"), [(IS_TRUE, "same"), (operation("not", IS_TRUE), "undecided")])
def test_a_value_that_a_mask_chooses(condition: Expr, expected: str) -> None:
    two, less = number(2), number(-1)
    assert of_mask(add(THERE, chosen(TRUTH, two, less)), add(HERE, chosen(condition, two, less))) == expected


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (operation("ne", BYTE, number(0, "int8")), "same"),
        (operation("eq", BYTE, number(1, "int8")), "different"),
        (Expr("call", "int8", (BYTE, number(1, "int8")), "bitwise_and"), "different"),
    ],
)
def test_a_byte_of_any_kind_is_true_unless_it_is_zero(condition: Expr, expected: str) -> None:
    assert status(add(HERE, ONE, IS_TRUE), add(HERE, ONE, condition), BYTES) == expected


# ---- numbers that are cut

LONG, SHORT = tensor("L", "int64", 256, 91_021), tensor("I", "int32", 256, 91_022)
WIDE, HALF, NARROW = own(LONG), cast("int32", own(LONG)), own(SHORT)


@pytest.mark.parametrize(
    ("written", "lowered", "expected"),
    [
        pytest.param(at(HALF), at(HALF, *within(HALF)), "same", id="as written"),
        pytest.param(at(HALF), at(WIDE, *within(HALF)), "different", id="all bits in the address"),
        pytest.param(at(HALF), at(WIDE, *within(WIDE)), "different", id="all bits in both"),
        pytest.param(at(WIDE), at(WIDE, *within(WIDE)), "same", id="never cut"),
        pytest.param(at(WIDE), at(HALF, *within(WIDE)), "same", id="cut where it fits"),
        pytest.param(at(NARROW), at(cast("int64", NARROW), *within(NARROW)), "same", id="widened"),
        pytest.param(at(cast("int32", cast("int64", NARROW))), at(NARROW), "same", id="widened and back"),
        pytest.param(at(THREAD, *within(HALF, 9)), at(THREAD, *within(WIDE, 9)), "different", id="condition"),
        pytest.param(at(THREAD, *within(HALF, 9)), at(THREAD, *within(HALF, 9)), "same", id="the same condition"),
        pytest.param(
            at(cast("int32", cast("uint8", NARROW))), at(NARROW, *within(NARROW, 256)), "different", id="a byte"
        ),
    ],
)
def test_a_cast_that_loses_bits_of_what_memory_holds_is_not_left_out(
    written: Stmt, lowered: Stmt, expected: str
) -> None:
    assert status(written, lowered, LONG, SHORT) == expected


@pytest.mark.parametrize(("most", "expected"), [(127, "same"), (100, "different")])
def test_memory_holds_no_more_than_its_type(most: int, expected: str) -> None:
    """A condition that all bytes keep may be left out."""
    small = operation("le", BYTE, number(most, "int8"))
    assert status(add(HERE, ONE, small), add(HERE, ONE), BYTES) == expected


# ---- floats

FLOATS = tensor("F", "float32", 256, 91_023)
FLOAT = own(FLOATS)
WHOLE, LARGE = cast("int32", FLOAT), cast("int64", FLOAT)
NEXT = operation("add", LARGE, number(1, "int64"))


@pytest.mark.parametrize(
    ("written", "lowered", "expected"),
    [
        pytest.param(at(WHOLE), at(LARGE, *within(WHOLE)), "same", id="wider in the address"),
        pytest.param(at(WHOLE), at(NEXT, *within(WHOLE)), "different", id="the next one"),
        pytest.param(at(WHOLE), at(LARGE, *within(WHOLE, 63)), "different", id="not the last one"),
        pytest.param(at(LARGE), at(WHOLE, *within(LARGE)), "same", id="narrower in the address"),
        pytest.param(at(cast("int32", cast("int8", FLOAT))), at(LARGE), "same", id="a byte"),
        pytest.param(at(cast("int32", cast("float64", FLOAT))), at(LARGE), "same", id="a wider float"),
    ],
)
def test_a_float_is_one_number_in_all_types_that_it_is_cast_to(written: Stmt, lowered: Stmt, expected: str) -> None:
    assert status(written, lowered, FLOATS) == expected
