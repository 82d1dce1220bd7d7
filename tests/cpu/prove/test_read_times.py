"""Conditions on memory that is written under them hold once, and not again."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.cpu.prove.handmade import ADDED, STEP, THREAD, add, load, operation, status, tensor
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
from tlcheck.verdicts.atomic_claims import judge_atomics
from tlcheck.verdicts.claim import Claim

RAGGED = {f.path: f for f in read().fixtures}["edges/ragged_source-0.1.15"]
OTHER = Buffer("other", "int32", (number(1),), "local", Expr("var", "handle", value="other", uid=90_005))
IS_SET = Expr("ge", "bool", (loaded(NUMBERS, number(0)), number(500)))


def claim(snapshot: Snapshot) -> Claim:
    (found,) = judge_atomics(snapshot).claims
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
    assert "I is read, and written again before the atomic, and not in the same order" in found.reason


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


FLAGS = tensor("F", "int32", 64, 91_020)
HELD = Expr("var", "int32", value="v", uid=91_021)
CLEAR = Store(FLAGS, (number(0),), number(-1))
FLAG = load(FLAGS, number(0))


def when(condition: Expr) -> Stmt:
    return add(load(ADDED, THREAD), number(1), condition)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(when(operation("lt", number(3), HELD)), when(operation("lt", number(3), FLAG)), id="condition"),
        pytest.param(add(load(ADDED, THREAD), HELD), add(load(ADDED, THREAD), FLAG), id="value"),
        pytest.param(add(load(ADDED, HELD), number(1)), add(load(ADDED, FLAG), number(1)), id="index"),
    ],
)
def test_a_variable_is_not_what_memory_holds_after_another_write(before: Stmt, after: Stmt) -> None:
    """A pass that puts a load in the place of the variable has to leave the write behind it."""
    kept = Seq((Bind(HELD, FLAG), CLEAR, before))
    assert status(kept, kept, FLAGS) == "same"
    assert status(kept, Seq((after, CLEAR)), FLAGS) != "different"
    assert status(kept, Seq((CLEAR, after)), FLAGS) == "undecided"
    assert status(Seq((CLEAR, after)), kept, FLAGS) == "undecided"


def test_a_condition_is_the_one_around_the_atomic() -> None:
    """The same condition elsewhere is evaluated at another time."""
    once = operation("lt", number(3), FLAG)
    other = If(once, Store(FLAGS, (number(3),), number(2)))
    body = Seq((add(load(ADDED, THREAD), number(1)), CLEAR))
    each = For(STEP, number(0), number(4), "serial", If(once, body))
    assert status(Seq((other, each)), Seq((other, each)), FLAGS) == "same"
    unswitched = If(once, For(STEP, number(0), number(4), "serial", body))
    assert status(Seq((other, each)), Seq((other, unswitched)), FLAGS) == "undecided"


def test_another_view_of_memory_has_its_own_indices() -> None:
    """Element 4 of the one is element (1, 0) of the other."""
    wide = replace(FLAGS, shape=(number(16), number(4)))
    flag = operation("lt", number(3), Expr("load", "int32", (number(1), number(0)), buffer=wide))
    clear = Store(replace(FLAGS, shape=(number(8), number(8))), (number(0), number(4)), number(-1))
    adding = add(load(ADDED, THREAD), number(1))
    assert status(If(flag, Seq((clear, adding))), Seq((If(flag, clear), If(flag, adding))), FLAGS) == "undecided"


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
