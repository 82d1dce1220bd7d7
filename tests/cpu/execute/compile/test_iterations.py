"""Loops whose iterations run at once leave what plain loops leave."""

from __future__ import annotations

import numpy as np
import pytest

from tests.cpu.execute.ops.tile.building import Array, Kernel, add, load, multiply, number, variable
from tlcheck.execute.machine import Machine
from tlcheck.execute.machine_options import Options
from tlcheck.execute.memory.state import Tensor, World
from tlcheck.execute.memory.values import kind_of
from tlcheck.snapshot.ir import For, Seq, Stmt, Store


def _left(kernel: Kernel, body: Stmt, *, plain: bool) -> Array:
    """Return what the first tensor of 64 integers holds afterwards."""
    tensors = {"O": Tensor(kind_of("int32"), 64, lambda seed, numbers: np.zeros(len(numbers), np.int32))}
    options = Options(source=False, plain=plain)
    machine = Machine(kernel.function(body), (32, 1, 1), [World(0), World(1)], tensors, {}, options)
    machine.run()
    return machine.pages("O").outcome(0).values


def _around(kernel: Kernel, first: str, times: int) -> Stmt:
    """The inner loop gives each of its iterations a register of its own, which the outer one uses as well."""
    i, j, t = variable("i"), variable("j"), kernel.tile("t", "int32", [1], "local")
    out = kernel.tensor("O", "int32", (64,))
    begin = Store(t, (number(0),), load(t, 0) if first == "itself" else number(5))
    inner = For(j, number(0), number(4), "unrolled", Store(t, (number(0),), add(multiply(j, 2), 1)))
    after = Store(out, (add(multiply(i, 32), kernel.tx),), add(load(t, 0), i))
    loop = For(i, number(0), number(times), "unrolled", Seq((begin, inner, after)))
    return Seq((Store(t, (number(0),), number(3)), loop))


@pytest.mark.parametrize("first", ["itself", "a number"])
@pytest.mark.parametrize("times", [1, 2])
def test_a_loop_around_one_whose_iterations_have_copies(first: str, times: int) -> None:
    kernel = Kernel()
    body = _around(kernel, first, times)
    assert np.array_equal(_left(kernel, body, plain=False), _left(kernel, body, plain=True))
