"""All threads write the same to one place, and each reads it: what a thread wrote itself is there for it."""

from __future__ import annotations

import pytest

from tests.cpu.execute.ops.tile.building import Kernel, add, call, load, number
from tlcheck.execute.compare.both_levels import execute
from tlcheck.snapshot.ir import Expr, For, If, Seq, Stmt, Store


def _raced(writers: int) -> set[tuple[str, str]]:
    """Sums so far of four numbers, computed by the first threads of 64 and read by all, with no barrier between."""
    kernel = Kernel(threads=64)
    a, b = kernel.tensor("A", "float32", (4,)), kernel.tensor("B", "float32", (64,))
    sums, g = kernel.tile("s", "float32", (5,)), Expr("var", "int32", (), "g", 901)
    step = Store(sums, (add(g, 1),), Expr("add", "float32", (load(sums, g), load(a, g))))
    first = Store(sums, (number(0),), Expr("float", "float32", (), 0.0))
    made: Stmt = Seq((first, For(g, number(0), number(4), "serial", step)))
    if writers < 64:
        made = If(Expr("lt", "bool", (kernel.tx, number(writers))), made, None)
    lowered = (made, Store(b, (kernel.tx,), load(sums, 4)))
    ordered = (made, call("tvm_storage_sync", Expr("str", "handle", (), "shared")), lowered[1])
    found = execute(kernel.snapshot(ordered, lowered))
    return {(race.buffer, race.missing) for race in found.races}


@pytest.mark.parametrize(("writers", "raced"), [(64, set()), (32, {("s", "a barrier")}), (1, {("s", "a barrier")})])
def test_each_reads_what_it_wrote_or_waits_for_who_did(writers: int, raced: set[tuple[str, str]]) -> None:
    assert _raced(writers) == raced
