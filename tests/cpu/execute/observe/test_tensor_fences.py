"""tcgen05.fence: what one warp stores in tensor memory and another one loads needs both, around their barrier."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.cpu.execute.ops.thread.test_tensor_memory import BARRIER, allocated, first_warp, freed, lowered, moved
from tests.cpu.execute.ops.tile.building import Kernel, call, number
from tlcheck.execute.observe.glance import Glance
from tlcheck.execute.observe.order import HappensBefore
from tlcheck.execute.observe.race_watch import Watch
from tlcheck.snapshot.ir import Expr, If, Seq, Stmt, Store

BEFORE, AFTER = call("tcgen05_before_thread_sync"), call("tcgen05_after_thread_sync")


def watched(between: Sequence[Stmt], by: type[Watch | Glance]) -> HappensBefore:
    """Warp 0 stores, and warp 4 loads the same lanes; what stands between."""
    kernel = Kernel(threads=256, lowered=lowered())
    word, a = kernel.tile("t", "uint32", (1,), "shared"), kernel.tile("a", "float32", (1,), "local")
    fill = Store(a, (number(0),), Expr("cast", "float32", (kernel.tx,)))
    warp_4 = Expr("eq", "bool", (Expr("floordiv", "int32", (kernel.tx, number(32))), number(4)))
    body = [fill, first_warp(kernel, moved("st", 32, 1, word, a)), *between, If(warp_4, moved("ld", 32, 1, word, a))]
    machine = kernel.machine(*allocated(kernel, word, 32), *body, *freed(kernel, word, 32))
    watch = by(machine, frozenset())
    machine.run(watch)
    return watch


@pytest.mark.parametrize(
    ("between", "ordered"),
    [
        ([BEFORE, BARRIER, AFTER], True),
        ([BARRIER, AFTER], False),
        ([BEFORE, BARRIER], False),
        ([BARRIER], False),
        ([BARRIER, BEFORE, AFTER], False),
        ([AFTER, BEFORE, BARRIER], False),
        ([BEFORE, BARRIER, BARRIER, AFTER], True),
    ],
)
def test_both_fences_are_needed_around_the_barrier(between: list[Stmt], ordered: bool) -> None:
    watch = watched(between, Watch)
    missing = {race.missing for race in watch.races.values()}
    assert missing == (set() if ordered else {"tcgen05.fence::before_thread_sync and ::after_thread_sync"})
    glance = watched(between, Glance)
    assert isinstance(glance, Glance)
    assert bool(glance.found) is not ordered


def test_without_a_barrier_that_is_what_is_missing() -> None:
    assert {race.missing for race in watched([BEFORE, AFTER], Watch).races.values()} == {"a barrier"}


def test_a_warp_needs_no_fence_for_its_own() -> None:
    kernel = Kernel(threads=128, lowered=lowered())
    word, a = kernel.tile("t", "uint32", (1,), "shared"), kernel.tile("a", "float32", (1,), "local")
    fill = Store(a, (number(0),), Expr("cast", "float32", (kernel.tx,)))
    own = Seq((fill, moved("st", 32, 1, word, a), moved("ld", 32, 1, word, a)))
    machine = kernel.machine(*allocated(kernel, word, 32), own, *freed(kernel, word, 32))
    watch = Watch(machine, frozenset())
    machine.run(watch)
    assert not watch.races
