"""A barrier of all blocks: they run together, and what they did before is over for all of them."""

from __future__ import annotations

import pytest

from tests.cpu.execute.ops.tile.building import Kernel, call, load, number
from tlcheck.execute.compare.both_levels import execute
from tlcheck.execute.request import Request
from tlcheck.snapshot.ir import Expr, If, Seq, Snapshot, Stmt, Store

BLOCKS = 6


def _exchange(*barrier: Stmt) -> Snapshot:
    """Each block writes a row of S, and reads that of another block."""
    kernel = Kernel(threads=32, blocks=BLOCKS)
    a, s = kernel.tensor("A", "int32", (BLOCKS, 32)), kernel.tensor("S", "int32", (BLOCKS, 32))
    c, mirrored = kernel.tensor("C", "int32", (BLOCKS, 32)), Expr("sub", "int32", (number(BLOCKS - 1), kernel.bx))
    first = Store(s, (kernel.bx, kernel.tx), load(a, kernel.bx, kernel.tx))
    last = Store(c, (kernel.bx, kernel.tx), load(s, mirrored, kernel.tx))
    written = [first, call("sync_grid"), last]
    return kernel.snapshot(written, [first, *barrier, last])


@pytest.mark.parametrize("request_", [Request(), Request(blocks=((3, 0, 0),))], ids=["usual", "one block"])
def test_all_blocks_run(request_: Request) -> None:
    found = execute(_exchange(call("sync_grid")), request_)
    assert found.is_clean
    assert [o.verdict for o in found.outputs] == ["agreed", "agreed"]
    assert len(found.blocks) == BLOCKS
    assert not any(found.ordered.values())


def test_without_it_blocks_race() -> None:
    (race,) = execute(_exchange()).races
    assert race.buffer == "S"
    assert race.first.block != race.second.block


def test_in_a_branch_it_is_not_modelled() -> None:
    some = If(
        Expr("lt", "bool", (number(3), Expr("call", "int32", (number(0),), "launch_thread_idx"))), call("sync_grid")
    )
    (first, _) = execute(_exchange(Seq((some,)))).outputs
    assert (first.verdict, first.reason) == ("undecided", "sync_grid in a branch")
