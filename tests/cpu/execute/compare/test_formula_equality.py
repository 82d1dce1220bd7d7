"""Outputs that are the same formulas at both levels, and those that only seem so on the numbers that are drawn."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import pytest

from tests.cpu.mutations.survivors import kernels
from tlcheck.execute.compare.both_levels import execute
from tlcheck.execute.compare.formula_equality import Formulas
from tlcheck.execute.field import Field
from tlcheck.execute.request import Request
from tlcheck.execute.worlds.blocks import Block
from tlcheck.execute.worlds.courses import levels_of
from tlcheck.snapshot.ir import Evaluate, Expr, Function, Snapshot, Stmt, Store, Thread
from tlcheck.snapshot.walk import rebuild, statements

LOWERED = "device-tir"
UNEQUAL = "values agree, formulas may differ"
COMPARED = "numbers of tensors are compared"


@pytest.mark.parametrize(
    "name",
    [
        "nested sm_80",
        "norm sm_90",
        "replicated_tile sm_80",
        "rs_fp16 sm_90",
        "softmax sm_90",
        "tails sm_90",
        "tma_4d sm_90",
    ],
)
def test_a_kernel_is_the_same_formulas(name: str) -> None:
    found = execute(kernels()[name])
    assert found.formulas is not None
    assert found.formulas.equal == {outcome.name for outcome in found.outputs}


@pytest.mark.parametrize(
    ("name", "reason", "line"),
    [("prefixes sm_90", "int32 of a tensor", 129), ("parts sm_80", "the function has several kernels", 0)],
)
def test_what_no_formula_says_is_told(name: str, reason: str, line: int) -> None:
    formulas = execute(kernels()[name]).formulas
    assert formulas is not None
    assert (formulas.equal, formulas.reason, formulas.line) == (frozenset(), reason, line)


def _number(value: float) -> Expr:
    return Expr("float", "float32", (), value)


def _int(value: int) -> Expr:
    return Expr("int", "int32", (), value)


def _op(op: str, *args: Expr, dtype: str = "float32") -> Expr:
    return Expr(op, dtype, args)


def _with_totals(change: Callable[[Expr], Expr]) -> Formulas:
    """Return the verdict on a kernel whose lowered form makes something else of its sums, which agrees all the same."""
    snapshot = kernels()["norm sm_90"]

    def changed(_: Stmt, stmt: Stmt) -> Stmt:
        is_sum = isinstance(stmt, Store) and stmt.value.op == "call"
        return replace(stmt, value=change(stmt.value)) if isinstance(stmt, Store) and is_sum else stmt

    function = snapshot.checkpoints[LOWERED]
    body = rebuild(function.body, changed)
    assert body != function.body
    found = execute(_lowered(snapshot, replace(function, body=body)))
    assert found.is_settled
    assert found.formulas is not None
    return found.formulas


def _lowered(snapshot: Snapshot, function: Function) -> Snapshot:
    return replace(snapshot, checkpoints={**snapshot.checkpoints, LOWERED: function})


@pytest.mark.parametrize(
    "change",
    [
        lambda e: _op("sub", _op("add", e, _number(0.3)), _number(0.3)),
        lambda e: _op("div", _op("mul", e, _number(3.0)), _number(3.0)),
        lambda e: _op("min", e, e),
        lambda e: _op("max", _number(-math.inf), e),
        lambda e: _op("max", _op("mul", _number(2.0), _number(-math.inf)), e),
        lambda e: _op("add", e, Expr("call", "float32", (_number(-math.inf),), "exp2f")),
    ],
)
def test_another_way_to_write_a_formula_is_the_same(change: Callable[[Expr], Expr]) -> None:
    assert _with_totals(change).equal == {"B", "D"}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda e: _op("min", e, _number(1e9)), UNEQUAL),
        (lambda e: _op("max", e, _number(0.0)), UNEQUAL),
        (lambda e: _op("mul", e, _number(1.0 + 2.0**-40)), UNEQUAL),
        (lambda e: Expr("call", "float32", (e,), "fabsf"), UNEQUAL),
        (lambda e: _op("select", _op("lt", e, _number(1e9), dtype="bool"), e, _number(0.0)), COMPARED),
        (
            lambda e: _op("add", e, _op("cast", _op("cast", _op("mul", e, _number(1e-9)), dtype="int32"))),
            "int32 made of float32",
        ),
    ],
)
def test_what_agrees_on_the_inputs_alone_is_not_equal(change: Callable[[Expr], Expr], reason: str) -> None:
    formulas = _with_totals(change)
    assert (formulas.equal, formulas.reason) == (frozenset(), reason)


def test_a_fault_of_ours_says_nothing_against_what_agreed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Field, "function", lambda *args: 1 // 0)
    found = execute(kernels()["norm sm_90"])
    assert found.is_settled
    assert found.formulas is not None
    assert found.formulas.reason.startswith("tlcheck itself failed: ZeroDivisionError")


def test_blocks_that_others_stand_for_do_not_run_over_the_field() -> None:
    """Those who say that blocks do the same tell what is wrong in one alone."""
    asked: list[list[Block]] = []

    def first(source: Function, lowered: Function, sizes: Mapping[str, int], blocks: Sequence[Block]) -> list[Block]:
        asked.append(list(blocks))
        return [blocks[0]]

    snapshot = kernels()["norm sm_90"]
    levels = levels_of(snapshot, Request(representatives=first)).of_representatives()
    assert {world.block for world in levels.worlds} == {asked[0][0]} < set(asked[0])


def test_blocks_that_make_up_for_one_another_are_not_equal() -> None:
    """Each block is compared by itself: of the blocks that did not run, none makes up for another."""
    snapshot = kernels()["norm sm_90"]
    block = next(s.var for s in statements(snapshot.checkpoints[LOWERED].body) if isinstance(s, Thread))

    def changed(_: Stmt, stmt: Stmt) -> Stmt:
        if not isinstance(stmt, Evaluate) or stmt.value.value != "atomic_add_elem_op":
            return stmt
        address, value, *others = stmt.value.args
        more = _op(
            "cast", _op("sub", _op("mul", block, _int(2), dtype="int32"), _int(3), dtype="int32")
        )  # -3, -1, 1, 3
        return replace(stmt, value=replace(stmt.value, args=(address, _op("add", value, more), *others)))

    function = snapshot.checkpoints[LOWERED]
    found = execute(_lowered(snapshot, replace(function, body=rebuild(function.body, changed))))
    assert found.is_settled
    assert found.formulas is not None
    assert found.formulas.equal == {"B"}
