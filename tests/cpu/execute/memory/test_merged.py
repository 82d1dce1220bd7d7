"""Shared buffers merged into one allocation, all reached through one name: 0.1.9 with a scan that takes addresses."""

from __future__ import annotations

import numpy as np
import pytest

from tlcheck.execute.compile import registry
from tlcheck.execute.machine import Machine
from tlcheck.execute.machine_options import Options
from tlcheck.execute.memory.state import Tensor, World
from tlcheck.execute.memory.values import kind_of
from tlcheck.execute.stops import Illegal
from tlcheck.snapshot.ir import Alloc, Buffer, Expr, Function, Seq, Store, Thread

registry.load()

THREADS = 32


def _int(value: int) -> Expr:
    return Expr("int", "int32", (), value)


def _run(first: int) -> list[float]:
    """Return what a second buffer, elements `first` and on of 64 floats, gives. The name has the first one's 32."""
    tx = Expr("var", "int32", (), "tx", 1)
    a, b = (
        Buffer(n, "float32", (_int(THREADS),), "global", Expr("var", "handle", (), n, u))
        for n, u in (("A", 2), ("B", 3))
    )
    pool = Buffer("pool", "uint8", (_int(256),), "shared.dyn", Expr("var", "handle", (), "pool", 4))
    name = Buffer("pool.1", "float32", (_int(THREADS),), "shared.dyn", pool.data)
    at = Expr("add", "int32", (tx, _int(first)))
    body = (
        Alloc(pool),
        Store(name, (at,), Expr("load", "float32", (tx,), buffer=a)),
        Store(b, (tx,), Expr("load", "float32", (at,), buffer=name)),
    )
    function = Function("main", (a.data, b.data), (a, b), (), Thread(tx, "threadIdx.x", _int(THREADS), Seq(body)))
    kind = kind_of("float32")
    values = np.arange(THREADS, dtype=np.float64)
    tensors = {
        "A": Tensor(kind, THREADS, lambda seed, numbers: values[numbers]),
        "B": Tensor(kind, THREADS, lambda seed, numbers: None),
    }
    machine = Machine(function, (THREADS, 1, 1), [World(0)], tensors, {}, Options(source=False))
    machine.run()
    return [float(value) for value in machine.pages("B").outcome(0)[1]]


@pytest.mark.parametrize("first", [0, 32])
def test_every_buffer_of_the_allocation_is_in_bounds(first: int) -> None:
    assert _run(first) == list(range(THREADS))


def test_what_lies_behind_the_allocation_is_not() -> None:
    with pytest.raises(Illegal, match="out of bounds"):
        _run(33)
