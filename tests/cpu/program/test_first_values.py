"""Variables whose first value is a note of the block: once, or in each iteration of the loop that uses them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from tests.cpu.execute.ops.tile.building import Kernel, add, load, number, variable
from tlcheck.execute.compare.both_levels import execute
from tlcheck.execute.compare.output_outcome import OutputOutcome
from tlcheck.snapshot.ir import Alloc, Block, Expr, For, Seq, Stmt, Store

NOTE = (("tl.local_var_init", "{v: 0}"),)


def _outcome(made: Kernel, body: Sequence[Stmt], notes: tuple[tuple[str, str], ...] = NOTE) -> OutputOutcome:
    block = Block("tilelang_root", Seq(tuple(body)), (), notes)
    (outcome,) = execute(made.snapshot([block], body)).outputs
    return outcome


def _counting(made: Kernel, inside: bool) -> list[Stmt]:
    """`v = T.alloc_var(init=0)`, a loop that adds its variable to v, and a store of v in the loop or after it."""
    total = made.tensor("S", "int32", [32, 4], [32, 4])
    v, k = replace(made.tile("v", "int32", [1], "local.var")), variable("k")
    made.tiles.clear()
    value = load(v, 0)
    step, result = Store(v, (number(0),), add(value, add(k, 1))), Store(total, (made.tx, k), value)
    last = Store(total, (made.tx, number(0)), value)
    loop = For(k, number(0), number(4), "serial", Seq((step, result)) if inside else step)
    return [Alloc(v), Store(v, (number(0),), number(0)), loop, *([] if inside else [last])]


def test_what_hangs_on_where_a_variable_was_made_is_undecided() -> None:
    """But for the first iteration, which comes to the same."""
    made = Kernel(threads=32)
    outcome = _outcome(made, _counting(made, inside=True))
    assert outcome.verdict == "undecided"
    assert outcome.reason.startswith("as written, 75% of it")
    assert outcome.reason.endswith("or on whether T.alloc_var sets a variable in each iteration")


@pytest.mark.parametrize("notes", [(), NOTE])
def test_a_variable_that_is_used_after_the_loop_was_made_before_it(notes: tuple[tuple[str, str], ...]) -> None:
    made = Kernel(threads=32)
    assert _outcome(made, _counting(made, inside=False), notes).verdict == "agreed"


def test_a_release_that_stores_first_values_where_they_are_written_has_no_doubt() -> None:
    made = Kernel(threads=32)
    assert _outcome(made, _counting(made, inside=True), ()).verdict == "agreed"


def test_where_both_come_to_the_same_nothing_hangs_on_it() -> None:
    made = Kernel(threads=32)
    alloc, first, loop = _counting(made, inside=True)
    assert isinstance(first, Store)
    assert isinstance(loop, For)
    again = replace(loop, body=Seq((replace(first, value=Expr("add", "int32", (loop.var, number(0)))), loop.body)))
    assert _outcome(made, [alloc, first, again]).verdict == "agreed"
