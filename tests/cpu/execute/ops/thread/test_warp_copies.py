"""Bulk copies of which each warp issues one: each completes the barrier that its own thread names."""

from __future__ import annotations

from tests.cpu.execute.ops.tile.building import Kernel, call, load, multiply, number, parallel, text, variable
from tlcheck.execute.compare.both_levels import execute
from tlcheck.snapshot.ir import Buffer, Expr, If, Seq, Store


def test_each_warp_waits_for_its_own_copy() -> None:
    kernel, i = Kernel(threads=64), variable("i")
    a, b = kernel.tensor("A", "float32", (64,)), kernel.tensor("B", "float32", (64,))
    tile, barriers = kernel.tile("s", "float32", (64,)), kernel.tile("mbar", "uint64", (2,), "shared.barrier")
    warp = Expr("floordiv", "int32", (kernel.tx, number(32)))
    own = load(barriers, warp)

    def address(of: Buffer) -> Expr:
        return Expr("call", "handle", (load(of, multiply(warp, 32)),), "address_of")

    def one_of(threads: int) -> Expr:
        return Expr("call", "bool", (number(threads),), "tl_shuffle_elect")

    made = [call("ptx_init_barrier_thread_count", load(barriers, n), number(32)) for n in (0, 1)]
    issued = (
        call("mbarrier_expect_tx", own, number(128)),
        call("tma_load", address(tile), address(a), own, number(128), number(0)),
    )
    lowered = (
        If(one_of(0), Seq(tuple(made))),
        call("ptx_fence_barrier_init"),
        call("tvm_storage_sync", text("shared")),
        If(one_of(32), Seq(issued)),
        call("ptx_arrive_barrier", own),
        call("mbarrier_wait_parity", own, number(0)),
        Store(b, (kernel.tx,), load(tile, kernel.tx)),
    )
    found = execute(kernel.snapshot((parallel([64], [i], Store(b, (i,), load(a, i))),), lowered))
    assert found.is_clean
    assert found.outputs[0].verdict == "agreed"
