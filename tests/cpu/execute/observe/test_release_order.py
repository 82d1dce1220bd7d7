"""Atomics and fences order what threads do (PTX, Memory Consistency Model)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.cpu.execute.observe.test_tensors_in_order import Copy, store
from tests.cpu.execute.ops.tile.building import Kernel, add, call, load, multiply, number, text, variable
from tlcheck.execute.compare.both_levels import execute
from tlcheck.execute.compare.execution import Execution
from tlcheck.snapshot.ir import Bind, Expr, If, Stmt

RELAXED, ACQUIRE, RELEASE, ACQ_REL, SEQ_CST = 0, 2, 3, 4, 5
SYNC = call("tvm_storage_sync", text("shared"))


def fence(name: str) -> list[Stmt]:
    return [call("call_extern", text(name))] if name else []


def counted(
    adds: int, loads: int, *, blocks: int = 1, before: str = "", after: str = "", first: bool = False, used: bool = True
) -> Execution:
    """Threads write, count themselves, and where all have come, each reads what one of another warp or block wrote.

    adds, loads: memory orders. before, after: fences around the atomics. first: one thread of each block counts for
    all, between barriers. used: the count decides whether a thread reads.
    """
    copy = Copy(32, blocks)
    counter = copy.kernel.tensor("N", "int32", (1,))
    address = Expr("call", "handle", (load(counter, 0),), "address_of")
    seen = variable("seen")
    count: list[Stmt] = [*fence(before), call("atomic_add_elem_op", address, number(1), number(adds))]
    see = [Bind(seen, Expr("call", "int32", (address, number(loads)), "atomic_load_elem_op")), *fence(after)]
    block = copy.kernel.bx if blocks == 1 else Expr("sub", "int32", (number(1), copy.kernel.bx))
    here, there = (add(multiply(b, 64), copy.tx) for b in (copy.kernel.bx, block))
    read: Stmt = copy.read if blocks == 1 else store(copy.c, here, load(copy.g, there))
    arrivals = blocks if first else 64 * blocks
    guarded = If(Expr("le", "bool", (number(arrivals), seen)), read, None) if used else read
    if first:
        count = [SYNC, *[If(Expr("eq", "bool", (copy.tx, number(0))), stmt, None) for stmt in count]]
    body = (copy.write, *count, *see, guarded)
    return execute(copy.kernel.snapshot(body, body))


ORDERED: dict[str, Callable[[], Execution]] = {
    "release and acquire": lambda: counted(RELEASE, ACQUIRE),
    "sequentially consistent": lambda: counted(SEQ_CST, SEQ_CST),
    "of other blocks": lambda: counted(ACQ_REL, ACQUIRE, blocks=2),
    "after a barrier, by one thread": lambda: counted(RELEASE, ACQUIRE, blocks=2, first=True),
    "fences": lambda: counted(RELAXED, RELAXED, before="__threadfence", after="__threadfence"),
    "fences of other blocks": lambda: counted(
        RELAXED, RELAXED, blocks=2, before="__threadfence", after="__threadfence_system"
    ),
    "a fence and an acquire": lambda: counted(RELAXED, ACQUIRE, blocks=2, before="__threadfence"),
    "fences of the block": lambda: counted(RELAXED, RELAXED, before="__threadfence_block", after="__threadfence_block"),
}
UNORDERED: dict[str, Callable[[], Execution]] = {
    "relaxed": lambda: counted(RELAXED, RELAXED),
    "released by nobody": lambda: counted(RELAXED, ACQUIRE),
    "acquired by nobody": lambda: counted(RELEASE, RELAXED),
    "a fence that nobody acquires": lambda: counted(RELAXED, RELAXED, before="__threadfence"),
    "a fence of the block alone": lambda: counted(RELAXED, ACQUIRE, blocks=2, before="__threadfence_block"),
    "a count that decides nothing": lambda: counted(RELEASE, ACQUIRE, used=False),
}


@pytest.mark.parametrize("pattern", ORDERED)
def test_release_and_acquire_order(pattern: str) -> None:
    found = ORDERED[pattern]()
    assert (found.races, found.contested) == ((), ())
    assert {outcome.verdict for outcome in found.outputs} == {"agreed"}


@pytest.mark.parametrize("pattern", UNORDERED)
def test_what_is_no_pattern_orders_nothing(pattern: str) -> None:
    assert [(race.buffer, race.second.kind) for race, _ in UNORDERED[pattern]().contested] == [("G", "read")]


@pytest.mark.parametrize(("before", "after", "undecided"), [("__threadfence", "", True), ("", "__threadfence", False)])
def test_blocks_race_where_nothing_is_released(before: str, after: str, undecided: bool) -> None:
    """A thread with no fence of its own may see late what a fence released: most devices are kinder than PTX."""
    ((_, contest),) = counted(RELAXED, RELAXED, blocks=2, before=before, after=after).contested
    assert contest.atomics == undecided


def test_a_thread_releases_for_others_of_its_warp_only_after_a_barrier() -> None:
    """The first thread releases what its warp wrote, with T.sync_warp before it or without."""
    copy = Copy(32)
    flag = copy.kernel.tensor("N", "int32", (1,))
    address = Expr("call", "handle", (load(flag, 0),), "address_of")
    publish = If(
        Expr("eq", "bool", (copy.tx, number(0))),
        call("atomic_store_elem_op", address, number(1), number(RELEASE)),
        None,
    )
    sees = Expr("eq", "bool", (number(1), Expr("call", "int32", (address, number(ACQUIRE)), "atomic_load_elem_op")))
    there = Expr("sub", "int32", (copy.tx, number(32)))
    is_late = Expr("le", "bool", (number(32), copy.tx))
    read = If(is_late, If(sees, store(copy.c, there, load(copy.g, there)), None), None)
    for between, races in (([call("sync_warp")], False), ([], True)):
        body = (copy.write, *between, publish, read)
        assert bool(execute(copy.kernel.snapshot(body, body)).contested) == races


@pytest.mark.parametrize(("order", "agrees"), [(ACQ_REL, True), (RELEASE, False)])
def test_the_last_of_many_blocks_reads_what_the_others_wrote(order: int, agrees: bool) -> None:
    """All blocks run, and the counter, which nobody gives, begins at 0: else no block would be the last one."""
    kernel = Kernel(threads=1, blocks=8)
    written, out = kernel.tensor("P", "float32", (8,)), kernel.tensor("O", "float32", (1,))
    counter, ticket = kernel.tensor("C", "int32", (1,)), kernel.tile("ticket", "int32", (1,), "local")
    address = Expr("call", "handle", (load(counter, 0),), "address_of")
    takes = Expr("call", "int32", (address, number(1), number(order)), "atomic_add_ret_elem_op")
    is_last = Expr("eq", "bool", (load(ticket, 0), number(7)))
    body = (
        store(written, kernel.bx, Expr("cast", "float32", (kernel.bx,))),
        store(ticket, 0, takes),
        If(is_last, store(out, 0, load(written, 3)), None),
    )
    outcomes = {o.name: o.verdict for o in execute(kernel.snapshot(body, body)).outputs}
    assert outcomes["O"] == ("agreed" if agrees else "undecided")
