"""Conditions that are numbers, and T.sync_warp in loops that warps run for different numbers of steps."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from tests.cpu.execute.ops.tile.building import Kernel, add, call, load, number, variable
from tlcheck.execute.compare.both_levels import execute
from tlcheck.execute.observe.authors import Author
from tlcheck.execute.observe.watching import Watching
from tlcheck.execute.request import Request
from tlcheck.execute.worlds.levels import BothLevels
from tlcheck.snapshot.ir import Expr, For, If, Seq, Stmt, Store, While


def test_a_number_holds_where_it_is_not_zero() -> None:
    """if tx & 2: ..., as TileLang 0.1.9 leaves it, and a loop while a number is not 0."""
    kernel = Kernel(threads=32)
    b, left = kernel.tensor("B", "int32", (32,)), kernel.tile("left", "int32", (1,), "local.var")
    bits = Expr("call", "int32", (kernel.tx, number(2)), "bitwise_and")

    def body(condition: Expr, remains: Expr) -> tuple[Stmt, ...]:
        here = load(left, 0)
        count = Seq(
            (
                Store(left, (number(0),), Expr("sub", "int32", (here, number(1)))),
                Store(b, (kernel.tx,), add(load(b, kernel.tx), 4)),
            )
        )
        return (
            Store(b, (kernel.tx,), number(0)),
            If(condition, Store(b, (kernel.tx,), number(1)), Store(b, (kernel.tx,), number(2))),
            Store(left, (number(0),), kernel.tx),
            While(remains, count),
        )

    source = body(bits, load(left, 0))
    lowered = body(Expr("ne", "bool", (bits, number(0))), Expr("gt", "bool", (load(left, 0), number(0))))
    assert kernel.run(*source)["B"].tolist() == [(1 if n & 2 else 2) + 4 * n for n in range(32)]
    assert [outcome.verdict for outcome in execute(kernel.snapshot(source, lowered)).outputs] == ["agreed"]


def _exchanging(*, synced: bool) -> bool:
    """Whether the source races: each warp takes as many steps as its number says, with neighbours' elements."""
    kernel, k = Kernel(threads=64), variable("k")
    b, s = kernel.tensor("B", "float32", (64,)), kernel.tile("s", "float32", (64,))
    warp = Expr("floordiv", "int32", (kernel.tx, number(32)))
    neighbour = Expr("call", "int32", (kernel.tx, number(1)), "bitwise_xor")
    between = [call("sync_warp")] if synced else []
    put = Store(s, (kernel.tx,), Expr("cast", "float32", (add(k, kernel.tx),)))
    step = Seq((put, *between, Store(b, (kernel.tx,), load(s, neighbour)), *between))
    loop = For(k, number(0), add(warp, 1), "serial", step)
    snapshot = replace(kernel.snapshot((loop,), (loop,)), pass_configs={"tl.disable_thread_storage_sync": "True"})
    levels, every = BothLevels(snapshot, Request()), frozenset({"s"})
    invocation = levels.source_invocation(levels.source_run[1])
    watching = Watching(invocation.kernel, every, partial(Author, about=every))
    invocation.run(watching)
    return any("s" in watch.own for watch in watching.watches if isinstance(watch, Author))


def test_sync_warp_orders_a_warp_that_is_in_a_loop_alone() -> None:
    assert not _exchanging(synced=True)
    assert _exchanging(synced=False)
