"""T.Parallel and the threads around it."""

from __future__ import annotations

import numpy as np
import pytest

from tests.cpu.execute.ops.tile.building import (
    Kernel,
    add,
    call,
    load,
    multiply,
    number,
    parallel,
    random,
    region,
    variable,
)
from tlcheck.execute.reasons import SourceUnclear
from tlcheck.snapshot.ir import Bind, Buffer, Expr, Seq, Stmt, Store


def row(kernel: Kernel, target: Buffer, value: Expr) -> Stmt:
    """Write a row of the target, element i of it `value + i`."""
    i = variable("i")
    return parallel([5], [i], Store(target, (kernel.bx, i), add(value, i)))


def test_a_variable_that_is_read_out_of_bounds_in_some_blocks() -> None:
    """It is one value for each block, however many threads there are."""
    kernel, a, x = Kernel(blocks=3), random("int32", 3) // 4, variable("x")
    source, target = kernel.tensor("A", "int32", a), kernel.tensor("B", "int32", np.zeros((3, 5), np.int32))
    bind = Bind(x, load(source, add(kernel.bx, 1)))
    found = kernel.run(Seq((bind, row(kernel, target, x))))["B"]
    assert np.array_equal(found, np.append(a[1:], 0)[:, None] + np.arange(5))


def test_a_register_that_was_not_written_is_not_unclear() -> None:
    kernel = Kernel()
    target, own = kernel.tensor("B", "float32", [5]), kernel.tile("x", "float32", (1,), "local.var")
    i = variable("i")
    store = Store(own, (number(0),), Expr("cast", "float32", (i,)))
    found = kernel.run(parallel([5], [i], Seq((store, Store(target, (i,), load(own, 0))))))["B"]
    assert found.tolist() == [0, 1, 2, 3, 4]


def test_a_variable_that_differs_between_threads_is_unclear() -> None:
    kernel, x = Kernel(), variable("x")
    target = kernel.tensor("B", "int32", [1, 5])
    with pytest.raises(SourceUnclear, match="differs between threads"):
        kernel.run(Seq((Bind(x, multiply(kernel.tx, 2)), row(kernel, target, x))))


def test_a_value_of_the_threads_is_used_where_they_agree() -> None:
    kernel, x = Kernel(threads=8), variable("x")
    target, own = kernel.tensor("B", "int32", [1, 5]), kernel.tile("n", "int32", (1,), "local")
    steps = (call("fill", region(own), number(7)), Bind(x, load(own, 0)), row(kernel, target, x))
    assert np.array_equal(kernel.run(Seq(steps))["B"][0], 7 + np.arange(5))
