"""Test what an atomic adds: values staged in registers, casts on the way, and the launch that adds them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.fixtures.index import read
from tlcheck.snapshot.dtypes import keeps
from tlcheck.snapshot.ir import Alloc, Bind, Buffer, Evaluate, Expr, For, Seq, Stmt, Store, Thread
from tlcheck.snapshot.walk import rebuild
from tlcheck.verdicts.atomic_claims import judge_atomics

FIXTURE = next(f for f in read().fixtures if f.path == "edges/ragged_source-0.1.15")
REGISTERS = Buffer(
    "staging", "float32", (Expr("int", "int32", value=4),), "local", Expr("var", "handle", value="staging", uid=90_001)
)
STEP = Expr("var", "int32", value="s", uid=90_002)


def number(value: int) -> Expr:
    return Expr("int", "int32", value=value)


def verdict(change: Callable[[Stmt], Stmt]) -> str:
    """The verdict where every statement of the last checkpoint is changed so."""
    snapshot = FIXTURE.snapshot()
    last = snapshot.checkpoints["device-tir"]
    changed = replace(last, body=rebuild(last.body, lambda _, stmt: change(stmt)))
    (claim,) = judge_atomics(replace(snapshot, checkpoints={**snapshot.checkpoints, "device-tir": changed})).claims
    return claim.verdict


def of_value(make: Callable[[Expr], tuple[list[Stmt], Expr]]) -> Callable[[Stmt], Stmt]:
    """A change of what the atomic adds: statements before it, and another value."""

    def change(stmt: Stmt) -> Stmt:
        if not isinstance(stmt, Evaluate) or "atomic_add" not in str(stmt.value.value):
            return stmt
        target, value, *rest = stmt.value.args
        before, other = make(value)
        return Seq((*before, replace(stmt, value=replace(stmt.value, args=(target, other, *rest)))))

    return change


def register(index: Expr) -> Expr:
    return Expr("load", "float32", (index,), buffer=REGISTERS)


def staged(value: Expr, extent: int, reads: int) -> list[Stmt]:
    """A loop that fills registers, so that number `reads` of them has the value and others have its neighbours."""
    moved = Expr("add", "int32", (value.args[0], Expr("sub", "int32", (STEP, number(reads)))))
    store = Store(REGISTERS, (STEP,), replace(value, args=(moved,)))
    return [Alloc(REGISTERS), For(STEP, number(0), number(extent), "serial", store)]


@pytest.mark.parametrize(("extent", "expected"), [(4, "proved"), (3, "proved"), (2, "undecided")])
def test_a_staging_loop_has_to_reach_what_is_read(extent: int, expected: str) -> None:
    assert verdict(of_value(lambda value: (staged(value, extent, 2), register(number(2))))) == expected


@pytest.mark.parametrize(("index", "expected"), [(2, "proved"), (1, "undecided")])
def test_a_store_counts_where_it_is_read(index: int, expected: str) -> None:
    def make(value: Expr) -> tuple[list[Stmt], Expr]:
        other = replace(value, args=(number(0),))
        stores = (Store(REGISTERS, (number(index),), value), Store(REGISTERS, (number(3),), other))
        return [Alloc(REGISTERS), *stores], register(number(2))

    assert verdict(of_value(make)) == expected


HELD = Expr("var", "float32x4", value="held", uid=90_003)


def ramp(base: Expr) -> Expr:
    return Expr("ramp", "int32x4", (base, number(1)))


@pytest.mark.parametrize(("lane", "expected"), [(2, "proved"), (1, "refuted")])
def test_a_vector_that_a_variable_holds_is_looked_through(lane: int, expected: str) -> None:
    """Bound to four neighbours, of which number 2 is the value, and stored to four registers."""

    def make(value: Expr) -> tuple[list[Stmt], Expr]:
        vector = replace(value, dtype="float32x4", args=(ramp(Expr("sub", "int32", (value.args[0], number(2)))),))
        stored = Store(REGISTERS, (ramp(number(0)),), HELD)
        return [Alloc(REGISTERS), Bind(HELD, vector), stored], register(number(lane))

    assert verdict(of_value(make)) == expected


@pytest.mark.parametrize(("moved", "expected"), [(0, "proved"), (1, "refuted")])
def test_a_let_within_a_value_is_looked_through(moved: int, expected: str) -> None:
    def make(value: Expr) -> tuple[list[Stmt], Expr]:
        name = Expr("var", "float32", value="x", uid=90_004)
        other = replace(value, args=(Expr("add", "int32", (value.args[0], number(moved))),))
        return [], Expr("let", "float32", (name, other, name))

    assert verdict(of_value(make)) == expected


def cast(dtype: str, value: Expr) -> Expr:
    return Expr("cast", dtype, (value,))


@pytest.mark.parametrize(
    ("types", "expected"),
    [
        (("float64",), "proved"),
        (("float64", "float32"), "proved"),
        (("float16",), "undecided"),
        (("int8",), "undecided"),
    ],
)
def test_casts_that_lose_something_are_not_the_same_value(types: tuple[str, ...], expected: str) -> None:
    def make(value: Expr) -> tuple[list[Stmt], Expr]:
        for dtype in types:
            value = cast(dtype, value)
        return [], cast("float32", value)

    assert verdict(of_value(make)) == expected


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        ("float16", "float32", True),
        ("float16", "bfloat16", False),
        ("bfloat16", "float16", False),
        ("int32", "float32", False),
        ("int16", "float32", True),
        ("int32", "int64", True),
        ("int32", "uint32", False),
        ("uint8", "int16", True),
        ("bool", "int8", True),
        ("float8_e4m3", "float16", False),
    ],
)
def test_which_types_keep_all_values_of_others(source: str, target: str, expected: bool) -> None:
    assert keeps(source, target) == expected


@pytest.mark.parametrize(("blocks", "expected"), [(4, "proved"), (2, "undecided"), (5, "undecided")])
def test_a_launch_of_other_blocks_is_not_the_same(blocks: int, expected: str) -> None:
    def change(stmt: Stmt) -> Stmt:
        there = isinstance(stmt, Thread) and stmt.tag == "blockIdx.x"
        return replace(stmt, extent=number(blocks)) if there else stmt  # type: ignore[call-arg]

    assert verdict(change) == expected


def test_a_destination_of_another_type_is_not_the_same() -> None:
    def change(stmt: Stmt) -> Stmt:
        if not isinstance(stmt, Evaluate) or "atomic_add" not in str(stmt.value.value):
            return stmt
        pointer, *rest = stmt.value.args
        load = pointer.args[0]
        assert load.buffer is not None
        typed = replace(load, dtype="float64", buffer=replace(load.buffer, dtype="float64"))
        return replace(stmt, value=replace(stmt.value, args=(replace(pointer, args=(typed,)), *rest)))

    assert verdict(change) == "undecided"


@pytest.mark.parametrize(("dtype", "expected"), [("int64", "proved"), ("int32", "proved"), ("int8", "refuted")])
def test_an_index_is_not_the_same_in_a_type_that_cannot_hold_it(dtype: str, expected: str) -> None:
    def make(value: Expr) -> tuple[list[Stmt], Expr]:
        return [], replace(value, args=(cast("int32", cast(dtype, value.args[0])),))

    assert verdict(of_value(make)) == expected
