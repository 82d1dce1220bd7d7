"""A loop whose length is read from memory may have no step: seed 0 has such a length."""

from __future__ import annotations

import numpy as np
import pytest

from tests.cpu.execute.ops.tile.building import Kernel, call, load, number, parallel, text, variable
from tlcheck.execute.compare.both_levels import execute
from tlcheck.execute.memory.values import kind_of
from tlcheck.execute.request import Request
from tlcheck.execute.worlds import inputs
from tlcheck.execute.worlds.offsets import lengths
from tlcheck.snapshot.ir import Bind, Expr, For, Snapshot, Stmt, Store

THREADS = 64
BARRIER = call("tvm_storage_sync", text("shared"))


def _around_a_loop(size: int, place: Expr | int, *between: Stmt) -> Snapshot:
    """A tile is written before a loop, and read after it by other threads. A step has a barrier; between: another one.

    The loop has as many steps as an element of N says.
    """
    kernel = Kernel(threads=THREADS, blocks=2)
    n, out = kernel.tensor("N", "int32", (size,)), kernel.tensor("B", "int32", (2, THREADS))
    tile = kernel.tile("s", "int32", (THREADS,), "shared")
    index = kernel.bx if isinstance(place, Expr) else number(place)
    i, steps = variable("i"), variable("steps")
    bind = Bind(steps, load(n, index))

    def mirrored(lane: Expr) -> Expr:
        return load(tile, Expr("sub", "int32", (number(THREADS - 1), lane)))

    def loop(body: Stmt) -> For:
        return For(variable("k"), number(0), steps, "serial", body)

    idle = parallel([THREADS], [i], Store(out, (kernel.bx, i), i))
    first, last = variable("i"), variable("i")
    written = [
        parallel([THREADS], [first], Store(tile, (first,), first)),
        loop(idle),
        parallel([THREADS], [last], Store(out, (kernel.bx, last), mirrored(last))),
    ]
    store = Store(out, (kernel.bx, kernel.tx), mirrored(kernel.tx))
    return kernel.snapshot(
        [bind, *written], [bind, Store(tile, (kernel.tx,), kernel.tx), loop(BARRIER), *between, store]
    )


@pytest.mark.parametrize(("size", "place"), [(1, 0), (3, 2), (2, variable("of the block"))])
def test_the_barrier_of_a_loop_that_has_no_step(size: int, place: Expr | int) -> None:
    (race,) = execute(_around_a_loop(size, place)).races
    assert (race.buffer, race.missing) == ("s", "a barrier")
    assert execute(_around_a_loop(size, place, BARRIER)).is_clean


def test_other_seeds_have_steps() -> None:
    """A step is seen, too."""
    snapshot = _around_a_loop(1, 0, BARRIER)
    assert not execute(snapshot).unreached
    assert execute(snapshot, Request(seeds=(0,))).unreached


def test_which_elements_are_lengths() -> None:
    assert lengths(_around_a_loop(3, 2).checkpoints["source"]) == {"N": {0, 2}}
    assert lengths(_around_a_loop(3, variable("of the block")).checkpoints["source"]) == {"N": {0}}


def test_lengths_are_empty_for_seed_0_alone() -> None:
    def drawn(seed: int, start: int, count: int, *lengths: int, gaps: bool = True) -> list[int]:
        contents = inputs.contents("N", kind_of("int32"), inputs.Draw(gaps=gaps), set(lengths))
        found: list[int] = np.asarray(contents(seed, np.arange(start, start + count))).tolist()
        return found

    usual = drawn(0, 0, 9)
    assert drawn(0, 0, 9, 0, 2) == [0, usual[1], 0, *usual[3:]] != usual
    assert drawn(0, 1, 4, 0, 2) == [usual[1], 0, *usual[3:5]]
    assert drawn(1, 0, 9, 0, 2) == drawn(1, 0, 9)
    assert drawn(0, 0, 9, 0, 2, gaps=False) == usual
