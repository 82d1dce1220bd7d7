"""Lanes that a warp waits for in a shuffle while they wait at a barrier: whose fault that is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from tests.cpu.checking import executed
from tests.cpu.execute.ops.tile.building import Kernel, call, number, text
from tlcheck.execute.request import Request
from tlcheck.snapshot.ir import Expr, If, Stmt, Store

BARRIER = call("tvm_storage_sync", text("shared"))
GUARDED, INSIDE, APART = range(3)


def guilty(barrier: int) -> str:
    """The pass that is blamed for a sum of 31 lanes. barrier: where the last lane waits."""
    kernel = Kernel(threads=32)
    out = kernel.tensor("B", "float32", (32,))
    sums = "tl::AllReduce<tl::SumOp, 32, 1, 0>::run"
    value = Expr("call", "float32", (text(sums), Expr("float", "float32", value=1.0)), "call_extern")
    store, first = (
        Store(out, (kernel.tx,), Expr("float", "float32", value=32.0)),
        Expr("lt", "bool", (kernel.tx, number(31))),
    )
    shuffle = Store(out, (kernel.tx,), value)
    lowered: dict[int, Sequence[Stmt]] = {
        GUARDED: [If(first, shuffle), BARRIER],
        INSIDE: [If(Expr("ge", "bool", (kernel.tx, number(31))), BARRIER), shuffle],
        APART: [If(first, shuffle, BARRIER)],
    }
    snapshot = replace(kernel.snapshot([store], lowered[barrier]), passes={"lower-tile-op": "tl.LowerTileOp"})
    (found,) = [c.finding for c in executed(snapshot, Request()) if c.finding is not None and c.kind == "legality"]
    assert found.rule == "TLL002"
    return found.pass_name


def test_the_guard_of_a_sum_is_to_blame_and_not_the_barrier_after_it() -> None:
    assert guilty(GUARDED) == "tl.LowerTileOp"


@pytest.mark.parametrize("barrier", [INSIDE, APART])
def test_a_barrier_in_a_branch_of_its_own_is_to_blame(barrier: int) -> None:
    assert guilty(barrier) == "tl.ThreadSync"


@pytest.mark.parametrize(("waited", "rules"), [("warp_reduce_sum", {"TLS004"}), ("warp_reduce_max", {"TLL002"})])
def test_an_exchange_that_the_source_has_in_a_branch_is_the_authors(waited: str, rules: set[str]) -> None:
    """As lowered, lanes are absent from this one. The barrier after it is TileLang's."""
    kernel = Kernel(threads=32)
    out, first = kernel.tensor("B", "float32", (32,)), Expr("lt", "bool", (kernel.tx, number(31)))
    one = Expr("float", "float32", value=1.0)
    store = Store(out, (kernel.tx,), one)

    def shared(name: str) -> Stmt:
        return If(first, Store(out, (kernel.tx,), Expr("call", "float32", (one,), name)), store)

    snapshot = kernel.snapshot([shared("warp_reduce_sum")], [shared(waited), BARRIER])
    found = [c.finding for c in executed(snapshot, Request()) if c.finding is not None]
    assert {f.rule for f in found} == rules
