"""Vector atomics that are given a pointer to their values: it is the author who keeps that in bounds."""

from __future__ import annotations

import pytest

from tests.cpu.prove.handmade import (
    BLOCK,
    THREAD,
    add,
    address,
    load,
    number,
    operation,
    own,
    pair,
    status,
    tensor,
    within,
)
from tlcheck.prove.subject import evidences, subject
from tlcheck.snapshot.ir import Expr, Stmt

SUMS, ROWS, INDEX = (
    tensor("y", "float32", 256, 91_030),
    tensor("x", "float32", 40 * 256, 91_031),
    tensor("idx", "int32", 256, 91_032),
)
FOUR = operation("mul", THREAD, number(4))
ROW = own(INDEX)


def gathered(row: Expr, *conditions: Expr) -> Stmt:
    """Each thread adds four elements of a row."""
    source = load(ROWS, operation("add", operation("mul", row, number(256)), FOUR))
    return add(load(SUMS, FOUR), address(source), *conditions, name="atomic_addx4_elem_op")


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        pytest.param(within(ROW, 40), "same", id="of the source"),
        pytest.param((), "same", id="none"),
        pytest.param(within(ROW, 39), "different", id="without the last row"),
        pytest.param((operation("lt", BLOCK, number(3)),), "different", id="of something else"),
    ],
)
def test_a_guard_of_the_source_leaves_out_what_the_author_answers_for(
    conditions: tuple[Expr, ...], expected: str
) -> None:
    assert status(gathered(ROW), gathered(ROW, *conditions), SUMS, ROWS, INDEX) == expected


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        pytest.param(ROW, "undecided", id="where memory says"),
        pytest.param(operation("mul", ROW, number(4)), "same", id="at a multiple of what memory says"),
        pytest.param(operation("add", FOUR, number(1)), "different", id="at an odd element"),
    ],
)
def test_the_author_answers_for_the_alignment_of_his_own_vectors_where_memory_says_it(
    start: Expr, expected: str
) -> None:
    source = address(load(ROWS, FOUR))
    written = add(load(SUMS, start), source, name="atomic_addx4_elem_op")
    assert status(written, written, SUMS, ROWS, INDEX) == expected


@pytest.mark.parametrize(
    ("moved", "expected"),
    [pytest.param(0, "undecided", id="at its element"), pytest.param(1, "different", id="one further")],
)
def test_own_vectors_are_misaligned_also_where_others_read_out_of_bounds(moved: int, expected: str) -> None:
    small = tensor("x", "float32", 128, 91_033)
    read = load(small, FOUR)
    written = load(SUMS, operation("add", FOUR, number(moved)))
    source, name = address(read), "atomic_addx4_elem_op"
    guard = operation("lt", THREAD, number(31))
    assert status(add(written, source, name=name), add(written, source, guard, name=name), SUMS, small) == expected


def test_instructions_of_threads_that_add_nothing_are_too_many_and_not_apart() -> None:
    """One thread of the source adds four elements; as lowered all do."""
    vector = address(load(ROWS, FOUR))
    first = operation("lt", THREAD, number(1))
    written, lowered = (add(load(SUMS, FOUR), vector, *when, name="atomic_addx4_elem_op") for when in ((first,), ()))
    (found,) = evidences(subject(pair(written, lowered, SUMS, ROWS)))
    assert found.difference is not None
    assert (found.difference.lanes, found.difference.missing) == (None, None)
    assert found.difference.repeated is not None
    assert found.difference.repeated.wrong == 4 * 63
