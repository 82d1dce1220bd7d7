"""Conditions on memory that is written under them hold once, and not again."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.cpu.prove.test_content import (
    GUARDED,
    LOWERED,
    NUMBERS,
    WRITTEN,
    Change,
    is_atomic,
    loaded,
    number,
    with_change,
)
from tests.fixtures.index import read
from tlcheck.snapshot.ir import Bind, Buffer, Expr, For, If, Seq, Snapshot, Stmt, Store
from tlcheck.verdicts.check import check
from tlcheck.verdicts.claim import Claim

RAGGED = {f.path: f for f in read().fixtures}["edges/ragged_source-0.1.15"]
OTHER = Buffer("other", "int32", (number(1),), "local", Expr("var", "handle", value="other", uid=90_005))
IS_SET = Expr("ge", "bool", (loaded(NUMBERS, number(0)), number(500)))


def claim(snapshot: Snapshot) -> Claim:
    (found,) = check(snapshot).claims
    return found


def cleared(stmt: Stmt) -> Stmt:
    """Add once a flag is set, and clear the flag before."""
    return If(IS_SET, Seq((Store(NUMBERS, (number(0),), number(-1)), stmt))) if is_atomic(stmt) else stmt


def split(stmt: Stmt) -> Stmt:
    """The same with a condition for each statement: what is added asks for a flag that is cleared by then."""
    cleared_alone = If(IS_SET, Store(NUMBERS, (number(0),), number(-1)))
    return Seq((cleared_alone, If(IS_SET, stmt))) if is_atomic(stmt) else stmt


def asked_twice(stmt: Stmt) -> Stmt:
    """Ask for the flag once more where it is cleared."""
    again = If(IS_SET, stmt)
    return If(IS_SET, Seq((Store(NUMBERS, (number(0),), number(-1)), again))) if is_atomic(stmt) else stmt


def set_before(stmt: Stmt) -> Stmt:
    """A flag that is written, but not under its condition."""
    return Seq((Store(NUMBERS, (number(0),), number(501)), If(IS_SET, stmt))) if is_atomic(stmt) else stmt


def of_another_element(stmt: Stmt) -> Stmt:
    """A flag beside another one, which its condition reads."""
    return If(IS_SET, Seq((Store(NUMBERS, (number(1),), number(-1)), stmt))) if is_atomic(stmt) else stmt


@pytest.mark.parametrize("change", [cleared, asked_twice, set_before, of_another_element])
def test_conditions_at_the_same_times_are_the_same(change: Change) -> None:
    assert claim(with_change(GUARDED.snapshot(), change, ())).verdict == "proved"


@pytest.mark.parametrize(("written", "lowered"), [(cleared, split), (split, cleared), (asked_twice, cleared)])
def test_a_condition_behind_the_write_of_what_it_reads_is_another(written: Change, lowered: Change) -> None:
    found = claim(with_change(with_change(GUARDED.snapshot(), written, WRITTEN), lowered, LOWERED))
    assert found.verdict == "undecided"
    assert "conditions are read from I, which is written under them" in found.reason


def bound(stmt: Stmt) -> Stmt:
    """The same with a variable that holds what the condition was before the flag is cleared."""
    held = Expr("var", "bool", value="held", uid=90_007)
    parts = (Bind(held, IS_SET), If(held, Store(NUMBERS, (number(0),), number(-1))), If(held, stmt))
    return Seq(parts) if is_atomic(stmt) else stmt


def bound_late(stmt: Stmt) -> Stmt:
    """A variable that holds what the condition is then."""
    held = Expr("var", "bool", value="held", uid=90_007)
    return (
        Seq((If(IS_SET, Store(NUMBERS, (number(0),), number(-1))), Bind(held, IS_SET), If(held, stmt)))
        if is_atomic(stmt)
        else stmt
    )


@pytest.mark.parametrize(("lowered", "verdict"), [(bound, "proved"), (bound_late, "undecided")])
def test_a_condition_that_a_variable_holds_is_evaluated_where_it_is_bound(lowered: Change, verdict: str) -> None:
    snapshot = with_change(with_change(GUARDED.snapshot(), cleared, WRITTEN), lowered, LOWERED)
    assert claim(snapshot).verdict == verdict


@pytest.mark.parametrize(("own", "verdict"), [(True, "undecided"), (False, "proved")])
def test_the_end_of_a_loop_that_the_loop_writes(own: bool, verdict: str) -> None:
    """TIR reads it once, C in each iteration."""

    def shorter(stmt: Stmt) -> Stmt:
        if not isinstance(stmt, For) or stmt.extent.buffer is None:
            return stmt
        target, where = (stmt.extent.buffer, stmt.extent.args) if own else (OTHER, (number(0),))
        less = Expr("sub", "int32", (loaded(target, *where), number(1)))
        return replace(stmt, body=Seq((stmt.body, Store(target, where, less))))

    found = claim(with_change(RAGGED.snapshot(), shorter, ()))
    assert found.verdict == verdict
    assert ("the end of a loop is read from L, which the loop writes" in found.reason) == own
