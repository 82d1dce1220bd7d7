"""Atomics of several operations on one element: their order decides its value, so something has to order them."""

from __future__ import annotations

import pytest

from tests.cpu.execute.ops.tile.building import Kernel, add, call, load, number, text
from tlcheck.execute.compare.execution import Execution
from tlcheck.execute.compare.run import execute
from tlcheck.snapshot.ir import Evaluate, Expr

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
