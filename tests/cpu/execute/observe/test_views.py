"""A view is the buffer that it is a view of: what iterations of one T.Parallel do to both is the author's race."""

from __future__ import annotations

from dataclasses import replace

from tests.cpu.execute.ops.tile.building import Kernel, add, load, number, parallel, variable
from tlcheck.execute.compare.both_levels import execute
from tlcheck.execute.compare.execution import Execution
from tlcheck.snapshot.ir import Buffer, Expr, Seq, Store


def _executed(together: bool) -> Execution:
    """64 threads set s, and read it as a view 32 elements on, with no barrier between. together: so has the source."""
    kernel = Kernel(threads=64)
    a, b = kernel.tensor("A", "float32", (64,)), kernel.tensor("B", "float32", (64,))
    tile = kernel.tile("s", "float32", (64,))
    view = Buffer("v", "float32", (number(1), number(64)), tile.scope, tile.data)

    def statements(i: Expr) -> list[Store]:
        far = Expr("mod", "int32", (add(i, 32), number(64)))
        return [Store(view, (number(0), i), load(a, i)), Store(b, (i,), load(tile, far))]

    i, j = variable("i"), variable("j")
    if together:
        source = [parallel([64], [i], Seq(tuple(statements(i))))]
    else:
        source = [parallel([64], [i], statements(i)[0]), parallel([64], [j], statements(j)[1])]
    return execute(kernel.snapshot(source, statements(kernel.tx)))


def test_a_race_through_a_view_is_the_authors() -> None:
    found = _executed(together=True)
    assert not found.races
    assert {contest.who for _, contest in found.contested} == {"iterations or threads"}


def test_what_two_statements_do_through_a_view_is_in_order() -> None:
    found = _executed(together=False)
    assert [race.missing for race in found.races] == ["a barrier"]
    assert not found.contested


def test_a_lowered_tile_may_be_called_like_the_pointer() -> None:
    """A pointer has the name of the last view of it, even if nobody reads that."""
    kernel = Kernel(threads=64)
    a, b = kernel.tensor("A", "float32", (64,)), kernel.tensor("B", "float32", (64,))
    last = kernel.tile("last", "float32", (64,))
    tile, i = Buffer("s", "float32", last.shape, last.scope, last.data), variable("i")
    written = Seq(tuple(_exchanged(tile, a, b, i)))
    source = replace(kernel, tiles=[tile]).function(parallel([64], [i], written))
    lowered = kernel.function(*_exchanged(last, a, b, kernel.tx))
    snapshot = kernel.snapshot([], [])
    found = execute(replace(snapshot, checkpoints={"source": source, "device-tir": lowered}))
    assert not found.races
    assert [(race.buffer, contest.who) for race, contest in found.contested] == [("last", "iterations or threads")]


def _exchanged(tile: Buffer, a: Buffer, b: Buffer, i: Expr) -> list[Store]:
    far = Expr("mod", "int32", (add(i, 32), number(64)))
    return [Store(tile, (i,), load(a, i)), Store(b, (i,), load(tile, far))]
