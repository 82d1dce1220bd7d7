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
from tlcheck.execute.stops import SourceUnclear
from tlcheck.snapshot.ir import Bind, Buffer, Expr, If, Seq, Stmt, Store


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


def halves(kernel: Kernel, threads: int) -> tuple[Buffer, Stmt]:
    """A register that is 7 in the last threads, 3 in the others, and after a T.Parallel of the others; what they see.

    threads: of the first half, which run the T.Parallel that adds what the register holds to 0, 1, 2, 3, 4.
    """
    own, i = kernel.tile("x", "int32", (1,), "local.var"), variable("i")
    first = Expr("lt", "bool", (kernel.tx, number(threads)))
    target, kept = kernel.tensor("B", "int32", [5]), kernel.tensor("C", "int32", [8])
    loop = parallel([5], [i], Store(target, (i,), add(load(own, 0), i)))
    differ = If(Expr("lt", "bool", (kernel.tx, number(4))), Store(own, (number(0),), number(3)), seven(own))
    return kept, Seq((differ, If(first, loop), Store(kept, (kernel.tx,), load(own, 0))))


def seven(own: Buffer) -> Stmt:
    return Store(own, (number(0),), number(7))


def test_a_register_that_differs_only_in_threads_that_take_no_part_is_clear() -> None:
    """T.Parallel within a branch is run by its threads; the registers of others stay as they are."""
    kernel = Kernel(threads=8)
    found = kernel.run(halves(kernel, 4)[1])
    assert found["B"].tolist() == [3, 4, 5, 6, 7]
    assert found["C"].tolist() == [3, 3, 3, 3, 7, 7, 7, 7]


def test_a_register_that_differs_in_threads_that_take_part_is_unclear() -> None:
    kernel = Kernel(threads=8)
    with pytest.raises(SourceUnclear, match=r"register used in T\.Parallel differs"):
        kernel.run(halves(kernel, 5)[1])


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
