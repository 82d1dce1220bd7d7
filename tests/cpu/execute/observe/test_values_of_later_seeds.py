"""A write leaves what is there with the inputs of the first seed, and races with those of the second one."""

from __future__ import annotations

from tests.cpu.execute.ops.tile.building import Kernel, call, load, number
from tlcheck.execute.compare.both_levels import execute
from tlcheck.execute.observe.races import Race
from tlcheck.snapshot.ir import Expr, Store

_ZERO = Expr("float", "float32", (), 0.0)


def _races(*, whole: bool) -> tuple[Race, ...]:
    """A part of each number is stored, then zeros are, by other threads and with no barrier between.

    whole: the number itself. Otherwise its digits after the point: the numbers of the first seed have none.
    """
    kernel = Kernel(threads=64)
    a, b = kernel.tensor("A", "float32", (64,)), kernel.tensor("B", "float32", (64,))
    tile, number_there = kernel.tile("s", "float32", (64,)), load(a, kernel.tx)
    below = _ZERO if whole else Expr("cast", "float32", (Expr("cast", "int32", (number_there,)),))
    first = Store(tile, (kernel.tx,), Expr("sub", "float32", (number_there, below)))
    zeros = Store(tile, (Expr("sub", "int32", (number(63), kernel.tx)),), _ZERO)
    barrier = call("tvm_storage_sync", Expr("str", "handle", (), "shared"))
    last = barrier, Store(b, (kernel.tx,), load(tile, kernel.tx))
    return execute(kernel.snapshot((first, barrier, zeros, *last), (first, zeros, *last))).races


def test_a_race_that_the_values_of_the_first_seed_hide() -> None:
    assert {(race.buffer, race.missing, race.seed) for race in _races(whole=False)} == {("s", "a barrier", 1)}


def test_a_race_that_they_show() -> None:
    assert {(race.buffer, race.missing, race.seed) for race in _races(whole=True)} == {("s", "a barrier", 0)}
