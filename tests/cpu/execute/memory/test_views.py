"""Names of memory that are not an allocation of their own: views, regions, addresses that the kernel computes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.cpu.execute.ops.tile.building import Kernel, buffer, call, load, number, parallel, random, region, variable
from tlcheck.execute.memory.values import is_poison
from tlcheck.execute.stops import NotModelled
from tlcheck.snapshot.ir import Bind, Expr, Seq, Store


@pytest.mark.parametrize("dtype", ["int8", "float16", "uint16", "int32", "float64", "int64"])
def test_a_tensor_as_elements_of_another_type_has_the_same_bits(dtype: str) -> None:
    kernel, a = Kernel(), random("float32", 32).astype(np.float32)
    source = kernel.tensor("A", "float32", a)
    expected = a.view(dtype)
    target = kernel.tensor("B", dtype, [len(expected)])
    other = replace(source, dtype=dtype, shape=(number(len(expected)),))
    found = kernel.run(call("copy", region(other), region(target)))["B"]
    assert np.array_equal(found, expected.astype(found.dtype), equal_nan=True)


def test_what_nobody_wrote_is_poison_as_another_type_too() -> None:
    kernel = Kernel()
    a, b = kernel.tensor("A", "float32", [32]), kernel.tensor("B", "float16", [64])
    halves = replace(a, dtype="float16", shape=(number(64),))
    assert is_poison(kernel.run(call("copy", region(halves), region(b)))["B"]).all()


def test_a_tensor_is_written_as_another_type_of_its_width() -> None:
    kernel, a = Kernel(), random("float32", 32).astype(np.float32)
    source, target = kernel.tensor("A", "float32", a), kernel.tensor("B", "int32", [32])
    found = kernel.run(call("copy", region(source), region(replace(target, dtype="float32"))))["B"]
    assert np.array_equal(found, a.view(np.int32))


def test_a_tensor_that_is_written_as_elements_of_another_width_is_not_modelled() -> None:
    kernel = Kernel()
    a, b = kernel.tensor("A", "float32", random("float32", 32)), kernel.tensor("B", "float16", [64])
    words = replace(b, dtype="float32", shape=(number(32),))
    with pytest.raises(NotModelled, match="a tensor of float16 as float32, which the kernel writes"):
        kernel.run(call("copy", region(a), region(words)))


def test_a_tensor_in_another_shape_is_the_tensor() -> None:
    kernel, a = Kernel(), random("float32", 32)
    source, b = kernel.tensor("A", "float32", a), kernel.tensor("B", "float32", [8, 4])
    rows = replace(source, shape=(number(8), number(4)))
    assert np.array_equal(kernel.run(call("copy", region(rows), region(b)))["B"], a.reshape(8, 4))


def test_an_address_from_memory_is_not_modelled() -> None:
    kernel = Kernel()
    table, b = kernel.tensor("table", "int64", np.arange(1)), kernel.tensor("B", "float32", [32])
    there = buffer("There", "float32", [32])
    pointer = Bind(there.data, Expr("call", "handle", (load(table, 0),), "reinterpret"))
    with pytest.raises(NotModelled, match="memory of There, whose address is computed"):
        kernel.run(pointer, Store(b, (kernel.tx,), load(there, kernel.tx)))


def test_a_region_with_a_name_is_no_value() -> None:
    kernel, a = Kernel(), random("float32", 8, 4)
    source, b = kernel.tensor("A", "float32", a), kernel.tensor("B", "float32", [8, 4])
    rows = Expr("ramp", "int32x8", (number(0), number(1)), 8)
    columns = Expr("ramp", "int32x4", (number(0), number(1)), 4)
    named = Bind(variable("X", "float32x32"), Expr("load", "float32x32", (rows, columns), None, 0, source))
    assert np.array_equal(kernel.run(named, call("copy", region(source), region(b)))["B"], a)


def test_a_region_without_elements() -> None:
    kernel = Kernel()
    n, b = kernel.tensor("N", "int32", np.zeros(1)), kernel.tensor("B", "float32", np.ones(8))
    assert kernel.run(call("fill", region(b, (0,), (load(n, 0),)), number(0)))["B"].tolist() == [1.0] * 8


def test_asynchronous_copies_of_iterations_are_there_when_they_are_waited_for() -> None:
    """64 iterations of 32 threads: which thread issues which copy is not written anywhere."""
    kernel, a, i = Kernel(threads=32), random("float32", 64), variable("i")
    source, b = kernel.tensor("A", "float32", a), kernel.tensor("B", "float32", [64])
    tile = kernel.tile("s", "float32", (64,))
    here, there = (Expr("call", "handle", (load(x, i),), "address_of") for x in (tile, source))
    found = kernel.run(
        parallel([64], [i], call("ptx_cp_async", here, there, number(1))),
        call("ptx_commit_group"),
        call("ptx_wait_group", number(0)),
        call("copy", region(tile), region(b)),
    )
    assert np.array_equal(found["B"], a)


def test_negative_lanes_of_a_vector_count_from_the_end() -> None:
    """A[T.Ramp(-2, 1, 4)] as written; a number counts so too."""
    kernel, a = Kernel(threads=1), random("float32", 8) + 10
    source, b = kernel.tensor("A", "float32", a), kernel.tensor("B", "float32", [5])
    first, lanes = (Expr("ramp", "int32x4", (number(n), number(1)), 4) for n in (0, -2))
    some = Store(b, (first,), Expr("load", "float32x4", (lanes,), None, 0, source))
    last = Store(b, (number(4),), load(source, -1))
    assert kernel.run(some, last)["B"].tolist() == [a[6], a[7], a[0], a[1], a[7]]


def test_indices_that_are_negative_for_certain_count_from_the_end() -> None:
    """A[-i - 1] for i in 0..7, a tile of rows from -2 on, and A[-tx - 1]; A[i - 1] may be outside."""
    kernel, a = Kernel(threads=8), random("float32", 8, 4) + 10
    source, i = kernel.tensor("A", "float32", a), variable("i")
    b = kernel.tensor("B", "float32", np.zeros((8, 4)))
    backwards = Expr("sub", "int32", (number(-1), i))
    thread = Bind(variable("t"), Expr("call", "int32", (number(0),), "launch_thread_idx"))
    stores = [
        Store(b, (i, number(0)), load(source, backwards, 0)),
        Store(b, (i, number(1)), load(source, Expr("sub", "int32", (i, number(1))), 1)),
    ]
    found = kernel.run(
        parallel([8], [i], Seq(tuple(stores))),
        thread,
        Store(b, (thread.var, number(2)), load(source, Expr("sub", "int32", (number(-1), thread.var)), 2)),
        call("copy", region(source, (-2, 3), (2, 1)), region(b, (0, 3), (2, 1))),
    )["B"]
    assert np.array_equal(found[:, 0], a[::-1, 0])
    assert found[:, 1].tolist() == [0.0, *a[:-1, 1].tolist()]
    assert np.array_equal(found[:, 2], a[::-1, 2])
    assert np.array_equal(found[:2, 3], a[-2:, 3])
