"""A kernel may declare any number of mbarriers, and each of them has a time of its own."""

from __future__ import annotations

from collections.abc import Sequence

from tests.cpu.execute.ops.tile.building import Kernel, call, load, number, text
from tlcheck.execute.compare.both_levels import execute
from tlcheck.execute.compare.execution import Execution
from tlcheck.execute.observe.order import HappensBefore
from tlcheck.snapshot.ir import Expr, If, Stmt, Store

THREADS, MANY = 64, 200


def executed(*, waited: Sequence[int], made: int) -> Execution:
    """Threads store, arrive at one mbarrier, wait for others, and read what another warp has stored."""
    kernel = Kernel(threads=THREADS)
    b, s = kernel.tensor("B", "int32", (THREADS,)), kernel.tile("s", "int32", (THREADS,))
    full = kernel.tile("full", "uint64", (MANY,), "shared.barrier")
    first = Expr("eq", "bool", (kernel.tx, number(0)))
    last = Expr("sub", "int32", (number(THREADS - 1), kernel.tx))
    synced = call("tvm_storage_sync", text("shared"))
    each = dict.fromkeys([*waited, made])
    init = [If(first, call("ptx_init_barrier_thread_count", load(full, n), number(THREADS)), None) for n in each]
    arrive = [call("ptx_arrive_barrier", load(full, made))]
    wait = [call("mbarrier_wait_parity", load(full, n), number(0)) for n in waited]
    store, read = Store(s, (kernel.tx,), kernel.tx), Store(b, (kernel.tx,), load(s, last))
    lowered: list[Stmt] = [*init, synced, store, *arrive, *wait, read]
    return execute(kernel.snapshot([store, synced, read], lowered))


def test_the_last_of_many_mbarriers_is_in_bounds() -> None:
    found = executed(waited=[MANY - 1], made=MANY - 1)
    assert [outcome.verdict for outcome in found.outputs] == ["agreed"]
    assert not found.races


def test_the_next_one_is_not() -> None:
    found = executed(waited=[MANY], made=MANY)
    assert found.illegal is not None
    assert "full" in found.illegal.what


def test_each_has_a_time_of_its_own() -> None:
    kernel = Kernel(threads=THREADS)
    kernel.tile("full", "uint64", (MANY,), "shared.barrier")
    watch = HappensBefore(kernel.machine(), frozenset())
    assert len({int(watch.agent(("full", n), 0)) for n in range(MANY)}) == MANY
