"""Branches that run side by side: what no barrier of the author's orders between them is the author's own race."""

from __future__ import annotations

import numpy as np
import pytest

from tests.cpu.execute.ops.tile.building import Kernel, add, call, load, number, text
from tlcheck.execute.compile import registry
from tlcheck.execute.machine import Machine
from tlcheck.execute.machine_options import Options
from tlcheck.execute.memory.state import Tensor, World
from tlcheck.execute.memory.values import kind_of
from tlcheck.execute.observe.authors import Author
from tlcheck.snapshot.ir import Expr, If, Seq, Stmt, Store

registry.load()


def barrier(count: int, name: int) -> Stmt:
    return call("tvm_storage_sync", text("shared"), number(name), number(count))


def sides_of(threads_of_barrier: int, nested: bool) -> dict[str, int]:
    """The first warp writes what the last one reads, after a barrier of so many threads."""
    kernel = Kernel(threads=96)
    kernel.tensor("B", "float32", [96])
    (b,) = (made for made, _ in kernel.tensors.values())
    shared = kernel.tile("s", "float32", [32])
    name = 1 if threads_of_barrier == 64 else 2
    write = Store(shared, (kernel.tx,), Expr("float", "float32", (), 1.0), line=10)
    read = Store(b, (kernel.tx,), load(shared, add(kernel.tx, -64)), line=20)
    first = Seq((write, barrier(threads_of_barrier, name)))
    last = Seq((barrier(threads_of_barrier, name if threads_of_barrier == 64 else 3), read))
    idle = barrier(32, 4)
    lanes = [Expr("lt", "bool", (kernel.tx, number(limit))) for limit in (32, 64)]
    if nested:
        body: Stmt = If(lanes[0], first, If(lanes[1], idle, last))
    else:
        body = If(lanes[0], first, If(Expr("le", "bool", (number(64), kernel.tx)), last, None))
    function = kernel.function(body)
    kind = kind_of("float32")
    tensors = {"B": Tensor(kind, 96, lambda seed, numbers: np.zeros(len(numbers)))}
    machine = Machine(function, (96, 1, 1), [World(0, (0, 0, 0))], tensors, {}, Options(source=True))
    watch = Author(machine, frozenset({"s"}))
    machine.run(watch)
    return {name: clash.line for name, clash in watch.sides.items()}


@pytest.mark.parametrize("nested", [False, True])
def test_a_race_between_branches_is_the_authors(nested: bool) -> None:
    assert sides_of(32, nested) == {"s": 20}


@pytest.mark.parametrize("nested", [False, True])
def test_a_barrier_of_both_branches_orders_them(nested: bool) -> None:
    assert sides_of(64, nested) == {}
