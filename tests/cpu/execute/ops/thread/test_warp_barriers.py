"""Barriers of a warp: T.sync_warp is printed, and the "warp" of T.tvm_storage_sync is not."""

from __future__ import annotations

from dataclasses import replace

from tests.cpu.execute.ops.tile.building import Kernel, call, load, number, text
from tlcheck.execute.compare.both_levels import execute
from tlcheck.execute.request import Request
from tlcheck.snapshot.ir import Evaluate, Expr, Snapshot, Stmt, Store

BLOCK, WARP = call("tvm_storage_sync", text("shared")), call("tvm_storage_sync", text("warp"))


def exchanged(source: Stmt, lowered: Stmt) -> Snapshot:
    """Each of 32 threads reads what its neighbour has stored. source, lowered: what stands between."""
    kernel = Kernel(threads=32)
    a, out = kernel.tensor("A", "float32", (32,)), kernel.tensor("B", "float32", (32,))
    shared, tx = kernel.tile("s", "float32", (32,), "shared"), kernel.tx
    put = Store(shared, (tx,), load(a, tx))
    get = Store(out, (tx,), load(shared, Expr("call", "int32", (tx, number(1)), "bitwise_xor")))
    return replace(kernel.snapshot((put, source, get), (put, lowered, get)), target="sm_90")


def races(source: Stmt, lowered: Stmt) -> list[str]:
    return [race.buffer for race in execute(exchanged(source, lowered), Request()).races]


def test_a_barrier_that_is_not_printed_orders_nothing() -> None:
    assert races(BLOCK, WARP) == races(BLOCK, Evaluate(number(0))) == ["s"]
    assert races(BLOCK, BLOCK) == races(BLOCK, call("sync_warp")) == []


def test_the_author_may_count_on_a_barrier_of_a_warp() -> None:
    assert races(WARP, WARP) == ["s"]
    assert races(WARP, call("sync_warp")) == []
