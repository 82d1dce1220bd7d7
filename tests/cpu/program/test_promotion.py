"""Integers of 8 and 16 bits: what runs is C++, where their sums and products are ints."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.cpu.execute.ops.tile.building import Kernel, load
from tlcheck.execute.compare.both_levels import execute
from tlcheck.program.promotion import shows_promotion
from tlcheck.snapshot.ir import Buffer, Expr, Store

TYPES = ["uint8", "int8", "uint16", "int16", "int32"]


def kernel(dtype: str) -> tuple[Kernel, Buffer, Expr]:
    """Two tensors, and a multiple of their difference, which ends beyond what 16 bits hold."""
    made = Kernel(threads=32)
    a, b = made.tensor("A", dtype, np.zeros(32)), made.tensor("B", dtype, np.zeros(32))
    difference = Expr("sub", dtype, (load(a, made.tx), load(b, made.tx)))
    return made, a, Expr("mul", dtype, (difference, Expr("int", dtype, (), 100)))


def verdict(made: Kernel, store: Store) -> str:
    (outcome,) = execute(made.snapshot([store], [store])).outputs
    return outcome.verdict


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [("uint8", "refuted"), ("int8", "refuted"), ("uint16", "refuted"), ("int16", "agreed"), ("int32", "agreed")],
)
def test_a_wider_type_sees_what_did_not_wrap(dtype: str, expected: str) -> None:
    """Of int16 nothing wraps: the numbers drawn are below 8, and 700 fits."""
    made, _, value = kernel(dtype)
    store = Store(made.tensor("C", "int64", [32]), (made.tx,), Expr("cast", "int64", (value,)))
    assert verdict(made, store) == expected
    assert shows_promotion(made.function(store)) == (dtype != "int32")


@pytest.mark.parametrize("dtype", TYPES)
def test_memory_of_its_own_type_does_not(dtype: str) -> None:
    made, _, value = kernel(dtype)
    store = Store(made.tensor("C", dtype, [32]), (made.tx,), value)
    assert verdict(made, store) == "agreed"
    assert not shows_promotion(made.function(store))


def test_lanes_of_a_vector_are_stored_each_in_its_own_type() -> None:
    made, a, _ = kernel("uint8")
    ramp = Expr(
        "ramp",
        "int32x4",
        (Expr("mul", "int32", (made.tx, Expr("int", "int32", (), 4))), Expr("int", "int32", (), 1)),
        4,
    )
    four = Expr("load", "uint8x4", (ramp,), None, 0, a)
    sums = Expr("sub", "uint8x4", (four, Expr("mul", "uint8x4", (four, four))))
    made.threads = 8
    store = Store(made.tensor("C", "int32", [32]), (ramp,), Expr("cast", "int32x4", (sums,)))
    assert verdict(made, store) == "agreed"
    assert not shows_promotion(made.function(store))


@pytest.mark.parametrize(("by", "expected"), [(1, "refuted"), (8, "agreed"), (40, "agreed")])
def test_a_shift_by_all_bits_says_nothing(by: int, expected: str) -> None:
    """Of a uint8: TIR leaves open what that is, and the int of the generated CUDA has bits left."""
    made, a, _ = kernel("uint8")
    bits = Expr("int", "uint8", (), by)
    more = Expr(
        "call", "uint8", (Expr("sub", "uint8", (load(a, made.tx), Expr("int", "uint8", (), 200))), bits), "shift_left"
    )
    store = Store(made.tensor("C", "int64", [32]), (made.tx,), Expr("cast", "int64", (more,)))
    assert verdict(made, store) == expected


@pytest.mark.parametrize(("dtype", "expected"), [("uint8", "refuted"), ("uint16", "refuted"), ("int8", "agreed")])
def test_all_bits_turned_over(dtype: str, expected: str) -> None:
    """Of an unsigned number that is negative in int; of a signed one it is the same in either."""
    made, a, _ = kernel(dtype)
    turned = Expr("call", dtype, (load(a, made.tx),), "bitwise_not")
    store = Store(made.tensor("C", "int64", [32]), (made.tx,), Expr("cast", "int64", (turned,)))
    assert verdict(made, store) == expected
    assert shows_promotion(made.function(store)) == (expected == "refuted")


@pytest.mark.parametrize(("op", "expected"), [("select", "refuted"), ("if_then_else", "agreed")])
def test_a_selection_of_differences(op: str, expected: str) -> None:
    """`c ? a - b : a` is an int; if_then_else becomes a variable of its own type."""
    made, a, value = kernel("uint8")
    chosen = (Expr("lt", "bool", (made.tx, Expr("int", "int32", (), 20))), value, load(a, made.tx))
    selected = Expr("select", "uint8", chosen) if op == "select" else Expr("call", "uint8", chosen, op)
    own, wide = made.tensor("D", "uint8", [32]), made.tensor("C", "int64", [32])
    assert not shows_promotion(made.function(Store(own, (made.tx,), selected)))
    store = Store(wide, (made.tx,), Expr("cast", "int64", (selected,)))
    assert verdict(made, store) == expected
    assert shows_promotion(made.function(store)) == (expected == "refuted")


@pytest.mark.parametrize(
    ("op", "number", "expected"),
    [
        ("floormod", 16, "agreed"),
        ("floormod", 65536, "agreed"),
        ("bitwise_and", 0x7FFF, "agreed"),
        ("truncmod", 24, "refuted"),
    ],
)
def test_a_mask_keeps_what_int_and_the_type_have_in_common(op: str, number: int, expected: str) -> None:
    """`~a & 65535`, as which a remainder by a power of two is printed; another remainder is C's `%`."""
    made, a, _ = kernel("uint16")
    turned = Expr("call", "uint16", (load(a, made.tx),), "bitwise_not")
    operands = (turned, Expr("int", "uint16", (), number))
    kept = Expr("call", "uint16", operands, op) if op == "bitwise_and" else Expr(op, "uint16", operands)
    store = Store(made.tensor("C", "int64", [32]), (made.tx,), Expr("cast", "int64", (kept,)))
    assert shows_promotion(made.function(store)) == (expected == "refuted")
    assert verdict(made, store) == expected


@pytest.mark.parametrize(
    ("arch", "release", "expected"),
    [
        ("gfx942", "0.1.15", "refuted"),
        ("sm_90", "0.1.14", "refuted"),
        ("sm_90", "0.1.15", "agreed"),
    ],
)
@pytest.mark.parametrize("dtype", ["bool", "int32"])
def test_a_bool_turned_over_is_never_false(arch: str, release: str, expected: str, dtype: str) -> None:
    """`~` of a bool is -1 or -2; `T.Not` is `!` in any release."""
    made = Kernel(threads=32)
    a = made.tensor("A", "int32", np.zeros(32))
    small = Expr("lt", "bool", (load(a, made.tx), Expr("int", "int32", (), 3)))
    complement, negation = Expr("call", "bool", (small,), "bitwise_not"), Expr("not", "bool", (small,))
    for turned, verdict in ((complement, expected), (negation, "agreed")):
        value = turned if dtype == "bool" else Expr("cast", dtype, (turned,))
        store = Store(made.tensor("C", dtype, [32]), (made.tx,), value)
        snapshot = replace(made.snapshot([store], [store]), target=arch, toolchain={"tilelang": release})
        (outcome,) = execute(snapshot).outputs
        assert outcome.verdict == verdict
        if outcome.difference is not None:
            assert outcome.difference.got in (("True",) if dtype == "bool" else ("-1.0", "-2.0", "-1", "-2"))
