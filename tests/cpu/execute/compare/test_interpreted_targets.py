"""A source that is interpreted alone has the instructions of the target that its snapshot was lowered for."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.cpu.execute.ops.thread.test_tensor_memory import at
from tests.cpu.execute.ops.tile.building import Kernel, call, load, number
from tlcheck.execute.compare.interpreter import interpret
from tlcheck.execute.request import Request
from tlcheck.execute.stops import NotModelled
from tlcheck.snapshot.ir import Expr, If, Snapshot, Store


def committing(target: str) -> Snapshot:
    """A warp commits its products, of which there are none, and waits for that."""
    kernel = Kernel()
    out, done = kernel.tensor("out", "int32", (32,)), kernel.tile("done", "uint64", (1,), "shared.barrier")
    first = Expr("eq", "bool", (kernel.tx, number(0)))
    made = call("ptx_init_barrier_thread_count", load(done, 0), number(1))
    commits, waits = call("tcgen05_mma_arrive", at(done)), call("mbarrier_wait_parity", load(done, 0), number(0))
    body = [If(first, made), commits, waits, Store(out, (kernel.tx,), kernel.tx)]
    return replace(kernel.snapshot(body, body), target=target)


def test_instructions_are_those_of_the_target() -> None:
    left = interpret(committing("sm_103"), Request(seeds=(0,))).left["out"]
    assert left.values.tolist() == list(range(32))


@pytest.mark.parametrize(("target", "why"), [("sm_90", "tcgen05_mma_arrive on sm_90"), ("gfx1", "gfx1, which")])
def test_others_are_not_modelled(target: str, why: str) -> None:
    with pytest.raises(NotModelled, match=why):
        interpret(committing(target), Request(seeds=(0,)))
