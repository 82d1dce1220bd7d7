"""A wait that has no end where numbers are large enough to lead there: what agrees on smaller ones is not all."""

from __future__ import annotations

import pytest

from tests.cpu.execute.ops.tile.building import Kernel, call, load, number, variable
from tlcheck.execute.compare.both_levels import execute
from tlcheck.execute.compare.execution import Execution
from tlcheck.execute.compare.faults import WAIT, _synchronizes
from tlcheck.snapshot.ir import Expr, For, If, Seq, Store


def executed(*, waits: bool) -> Execution:
    """Steps that a tensor counts; from the second one on the threads wait for a barrier at which nobody arrives."""
    kernel = Kernel(threads=32, blocks=8)
    counts, b = kernel.tensor("L", "int32", (8,)), kernel.tensor("B", "float32", (8, 32))
    barrier, k = kernel.tile("full", "uint64", (1,), "shared.barrier"), variable("k")
    step = Store(b, (kernel.bx, kernel.tx), Expr("cast", "float32", (k,)))
    wait = call("mbarrier_wait_parity", load(barrier, 0), number(0))
    body = Seq((step, If(Expr("gt", "bool", (k, number(0))), wait, None))) if waits else step
    init = If(
        Expr("eq", "bool", (kernel.tx, number(0))),
        call("ptx_init_barrier_thread_count", load(barrier, 0), number(32)),
        None,
    )
    loop = For(k, number(0), load(counts, kernel.bx), "serial", body)
    always = Store(b, (kernel.bx, kernel.tx), Expr("float", "float32", (), 1.0))
    return execute(kernel.snapshot((always, init, loop), (always, init, loop)))


def test_what_agrees_only_where_nobody_waits_is_not_agreed() -> None:
    found = executed(waits=True)
    assert [outcome.verdict for outcome in found.outputs] == ["undecided"]
    assert "the author's: as written, deadlock" in found.outputs[0].reason
    assert [(fault.problem, bool(fault.open)) for fault in found.faults] == [(WAIT, True)]


def test_without_the_wait_all_of_it_agrees() -> None:
    assert [outcome.verdict for outcome in executed(waits=False).outputs] == ["agreed"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [("clc_try_cancel", True), ("mbarrier_wait_parity", True), ("tma_copy", True), ("fill", False), ("ptx_mma", False)],
)
def test_a_signature_says_what_synchronizes_and_else_the_name(name: str, expected: bool) -> None:
    stmt = call(name, number(0), number(0))
    assert _synchronizes(stmt) == expected
