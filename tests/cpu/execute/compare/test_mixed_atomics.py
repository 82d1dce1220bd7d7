"""Atomics of several operations on one element: their order decides its value, so something has to order them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cpu.execute.ops.tile.building import Kernel, add, call, load, number, parallel, text, variable
from tlcheck.execute.compare.both_levels import execute
from tlcheck.execute.compare.execution import Execution
from tlcheck.snapshot.ir import Evaluate, Expr, Stmt, Store

THREADS = 64


def _executed(*operations: str, blocks: int = 1, synced: bool = False, apart: bool = False) -> Execution:
    """Each thread changes one of four elements by these atomics, one after the other.

    synced: with T.sync_threads between. apart: a thread changes the same element each time, which no other does.
    """
    kernel = Kernel(threads=THREADS, blocks=blocks)
    a, out = kernel.tensor("A", "int32", (THREADS,)), kernel.tensor("D", "int32", (THREADS,))
    barrier = call("tvm_storage_sync", text("shared"))
    body: list[Evaluate] = []
    for operation in operations:
        place = kernel.tx if apart else Expr("floormod", "int32", (kernel.tx, number(4)))
        address = Expr("call", "handle", (load(out, place),), "address_of")
        value = add(load(a, kernel.tx), 1)
        body += [barrier] if synced and body else []
        body.append(call(f"atomic_{operation}_elem_op", address, value))
    return execute(kernel.snapshot(body, body))


@pytest.mark.parametrize("operations", [("min", "add"), ("max", "min"), ("add", "max", "add")])
def test_what_nothing_orders_is_the_authors(operations: tuple[str, ...]) -> None:
    found = _executed(*operations)
    (fault,) = found.faults
    assert fault.what == "iterations or threads race for D"
    assert [o.verdict for o in found.outputs] == ["undecided"]
    assert found.outputs[0].reason in fault.reasons


def test_one_operation_has_any_order() -> None:
    found = _executed("add", "add")
    assert not found.faults
    assert [o.verdict for o in found.outputs] == ["agreed"]


def test_what_is_ordered_agrees() -> None:
    for found in (_executed("min", "add", synced=True), _executed("min", "add", apart=True)):
        assert not found.faults
        assert [o.verdict for o in found.outputs] == ["agreed"]


def test_blocks_are_in_no_order() -> None:
    """A barrier of each block does not order them."""
    (fault,) = _executed("min", "add", blocks=2, synced=True).faults
    assert fault.what == "blocks race for D"


@pytest.mark.parametrize(
    ("operations", "between", "missing"),
    [(("min", "add"), False, ["a barrier"]), (("min", "add"), True, []), (("add", "add"), False, [])],
)
def test_a_barrier_that_is_missing_as_lowered_is_not_the_authors(
    operations: tuple[str, str], between: bool, missing: list[str]
) -> None:
    """Two loops over iterations come one after the other. As lowered, threads of two warps change one element."""
    kernel = Kernel(threads=THREADS)
    a, out = kernel.tensor("A", "int32", (THREADS,)), kernel.tensor("D", "int32", (THREADS,))
    tile, iteration = kernel.tile("s", "int32", (THREADS,), "shared"), variable("i")

    def atomic(number_of: Expr, nth: int) -> Evaluate:
        place = number_of if nth == 0 else Expr("sub", "int32", (number(THREADS - 1), number_of))
        address = Expr("call", "handle", (load(tile, place),), "address_of")
        return call(f"atomic_{operations[nth]}_elem_op", address, load(a, number_of))

    def body(loops: bool) -> Iterator[Stmt]:
        barrier = () if loops else (call("tvm_storage_sync", text("shared")),)
        yield Store(tile, (kernel.tx,), number(5))
        yield from barrier
        yield parallel([THREADS], [iteration], atomic(iteration, 0)) if loops else atomic(kernel.tx, 0)
        yield from barrier if between else ()
        yield parallel([THREADS], [iteration], atomic(iteration, 1)) if loops else atomic(kernel.tx, 1)
        yield from barrier
        yield Store(out, (kernel.tx,), load(tile, kernel.tx))

    found = execute(kernel.snapshot(list(body(loops=True)), list(body(loops=False))))
    assert [race.missing for race in found.races] == missing
    assert not found.faults
