"""The line of a lowered statement that has none: not that of what happens to stand before it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from tests.cpu.execute.ops.tile.building import Kernel, call, load, number, parallel, region, text, variable
from tlcheck.execute.compare.counterparts import Counterparts
from tlcheck.snapshot.ir import Alloc, Buffer, Expr, For, Function, Seq, Stmt, Store

KERNEL = Kernel()
A, B = KERNEL.tensor("A", "float32", (32,)), KERNEL.tensor("B", "float32", (32,))
F, S = KERNEL.tile("f", "float32", (32,), "local"), KERNEL.tile("s", "float32", (32,))
TX = KERNEL.tx
SET, LOAD, READ = Store(F, (TX,), load(A, TX)), Store(S, (TX,), load(A, TX)), Store(B, (TX,), load(S, TX))
SOURCE = [replace(SET, line=11), replace(LOAD, line=13), replace(READ, line=14), replace(LOAD, line=15)]
UNKNOWN = call("ptx_mma", number(0))


def near(lowered: list[Stmt], place: int, buffer: str = "") -> int:
    found = Counterparts(KERNEL.function(*SOURCE), KERNEL.function(*lowered))
    return found.line_near(lowered[place], buffer)


@pytest.mark.parametrize(("place", "line"), [(0, 11), (1, 13), (2, 15)])
def test_several_that_do_the_same_have_the_next_lines(place: int, line: int) -> None:
    assert near([SOURCE[0], replace(LOAD), replace(LOAD)], place) == line


def test_one_after_its_own_line_has_that() -> None:
    assert near([SOURCE[1], replace(LOAD)], 1) == 13


def test_the_line_of_a_loop_around_is_none_of_a_statement() -> None:
    """The first of two statements that have it does line 13 alone; what the second one reads is hidden."""
    k = variable("k")
    step = [replace(LOAD, line=13), replace(Store(S, (TX,), load(F, TX)), line=15), replace(READ, line=16)]
    hidden = Store(S, (TX,), load(KERNEL.tile("g", "float32", (32,), "local"), TX))
    KERNEL.tiles.pop()
    lowered = [replace(stmt, line=12) for stmt in (LOAD, hidden, READ)]
    source, other = (For(k, number(0), number(4), "serial", Seq(tuple(body)), line=12) for body in (step, lowered))
    found = Counterparts(KERNEL.function(source), KERNEL.function(other))
    assert [found.line_near(stmt, "s") for stmt in lowered] == [13, 15, 16]


@pytest.mark.parametrize(("buffer", "line"), [("s", 13), ("B", 14), ("f", 11), ("unknown", 11), ("", 11)])
def test_of_one_that_says_nothing_the_buffer_is_known(buffer: str, line: int) -> None:
    assert near([SOURCE[0], UNKNOWN], 1, buffer) == line


def test_a_buffer_may_be_named_by_its_pointer() -> None:
    """After T.reshape the pointer has the name of the view."""
    viewed = replace(S, data=variable("v"))
    source = [SOURCE[0], replace(LOAD, buffer=viewed, line=13)]
    found = Counterparts(_with_tile(viewed, source), _with_tile(viewed, [SOURCE[0], UNKNOWN]))
    assert found.line_near(UNKNOWN, "v") == 13


def _with_tile(tile: Buffer, body: Sequence[Stmt]) -> Function:
    return KERNEL.function(Alloc(tile), *body)


@pytest.mark.parametrize(("line", "found"), [(11, 11), (12, 13), (13, 13), (0, 0)])
def test_a_statement_is_the_one_on_its_line_or_in_the_loop_there(line: int, found: int) -> None:
    """Registers of its own hide what it reads: two statements of the source store to f."""
    i = variable("i")
    looped = replace(parallel((32,), (i,), replace(Store(F, (i,), load(S, i)), line=13)), line=12)
    hidden = replace(Store(F, (TX,), load(KERNEL.tile("g", "float32", (32,), "local"), TX)), line=line)
    KERNEL.tiles.pop()
    counterparts = Counterparts(KERNEL.function(replace(SET, line=11), looped), KERNEL.function(hidden))
    only = counterparts.only(hidden)
    assert (0 if only is None else only.line) == found


@pytest.mark.parametrize(
    ("function", "line"), [("tl::AllReduce<tl::SumOp, 32, 1>::run", 17), ("tl::other<1>::run", 16)]
)
def test_threads_that_reduce_among_them_finish_the_reducer(function: str, line: int) -> None:
    """It stands in a loop of another statement, which has nothing to do with it."""
    finish, k = replace(call("finalize_reducer", region(F)), line=17), variable("k")
    other = Store(A, (TX,), number(0), line=16)
    reduced = Store(F, (TX,), Expr("call", "float32", (text(function), load(F, TX)), "call_extern"))
    source = [*SOURCE, For(k, number(0), number(4), "serial", other), finish]
    lowered = For(k, number(0), number(4), "serial", Seq((other, reduced)))
    found = Counterparts(KERNEL.function(*source), KERNEL.function(lowered))
    assert found.line_near(reduced, "workspace") == line
