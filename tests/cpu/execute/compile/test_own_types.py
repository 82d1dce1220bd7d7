"""Constants have their own type where floats are rounded: a maximum that starts at one is equal to it."""

from __future__ import annotations

import numpy as np

from tests.cpu.execute.ops.tile.building import Kernel, load, number
from tlcheck.execute.compare.interpreter import interpret
from tlcheck.execute.request import Request
from tlcheck.snapshot.ir import Expr, Store


def test_a_constant_is_what_its_type_holds() -> None:
    """`m - max(m, x)` of an online softmax that begins at -3e38, which float32 has not, on minus infinity."""
    kernel = Kernel(threads=4)
    x, left = (kernel.tensor(name, "float32", (4,)) for name in "XO")
    m = kernel.tile("m", "float32", (1,), "local")
    largest = Expr("max", "float32", (load(m, 0), load(x, kernel.tx)))
    body = (
        Store(m, (number(0),), Expr("float", "float32", (), -3e38)),
        Store(left, (kernel.tx,), Expr("sub", "float32", (load(m, 0), largest))),
    )
    given = {0: {"X": np.array([-np.inf, 0.0, 0.0, -np.inf]), "O": np.zeros(4)}}
    found = interpret(kernel.snapshot(body, body), Request(seeds=(0,), given=given))
    assert found.left["O"].values.tolist() == [0.0, -float(np.float32(3e38)), -float(np.float32(3e38)), 0.0]
