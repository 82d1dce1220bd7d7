"""Atomics of tiles, against additions, maxima and minima in order."""

from __future__ import annotations

import numpy as np
import pytest

from tests.cpu.execute.ops.tile.building import Kernel, call, load, multiply, number, random, region
from tlcheck.execute.stops import NotModelled
from tlcheck.snapshot.ir import Expr, If

OPERATIONS = {"atomicadd": np.add, "atomicmax": np.maximum, "atomicmin": np.minimum}


@pytest.mark.parametrize("scope", ["shared.dyn", "local.fragment"])
@pytest.mark.parametrize("dtype", ["float32", "float16", "int32"])
@pytest.mark.parametrize("name", OPERATIONS)
def test_blocks_combine_into_one_tensor(name: str, dtype: str, scope: str) -> None:
    """Blocks overlap by half of a tile."""
    kernel, a, b = Kernel(blocks=3), random(dtype, 3, 4, 6), random(dtype, 8, 6, seed=1)
    source, target, tile = (
        kernel.tensor("A", dtype, a),
        kernel.tensor("B", dtype, b),
        kernel.tile("t", dtype, (4, 6), scope),
    )
    found = kernel.run(
        call("copy", region(source, (kernel.bx, 0, 0), (1, 4, 6)), region(tile)),
        call(name, region(tile), region(target, (multiply(kernel.bx, 2), 0), (4, 6))),
    )["B"]
    expected = b.copy()
    with np.errstate(over="ignore"):
        for block in range(3):
            part = expected[2 * block : 2 * block + 4]
            part[:] = OPERATIONS[name](part, a[block])
    assert np.array_equal(found, expected)


def test_elements_outside_are_left_out() -> None:
    """The first column is -2, -1 and 0 in three blocks: of unknown sign, so that none counts from the end."""
    kernel, a, b = Kernel(blocks=3), random("float32", 4, 6), random("float32", 5, 8, seed=1)
    source, target = kernel.tensor("A", "float32", a), kernel.tensor("B", "float32", b)
    first = Expr("sub", "int32", (kernel.bx, number(2)))
    found = kernel.run(call("atomicadd", region(source), region(target, (3, first), (4, 6))))["B"]
    expected = b.copy()
    for before in (2, 1, 0):
        expected[3:5, : 6 - before] += a[:2, before:]
    assert np.array_equal(found, expected)


def test_one_value_for_all_elements_and_a_block_does_it_once() -> None:
    kernel, b = Kernel(threads=64, blocks=2), random("int32", 3, 4) // 2
    target = kernel.tensor("B", "int32", b)
    assert np.array_equal(kernel.run(call("atomicadd", number(5), region(target)))["B"], b + 10)


def test_one_element_and_a_source_of_one_for_many() -> None:
    kernel, a, b = Kernel(), random("float32", 4), random("float32", 4, 3, seed=1)
    source, target = kernel.tensor("A", "float32", a), kernel.tensor("B", "float32", b)
    found = kernel.run(
        call("atomicadd", region(source, (1,), (1,)), region(target, (2, 0), (1, 3))),
        call("atomicadd", region(source, (3,), (1,)), region(target, (0, 0), (1, 1))),
    )["B"]
    expected = b.copy()
    expected[2] += a[1]
    expected[0, 0] += a[3]
    assert np.array_equal(found, expected)


def test_regions_of_unlike_sizes() -> None:
    """TileLang loops over the destination's sizes, and says nothing."""
    kernel = Kernel()
    source, target = kernel.tensor("A", "float32", random("float32", 4, 3)), kernel.tensor("B", "float32", [4, 6])
    with pytest.raises(NotModelled, match="unlike sizes"):
        kernel.run(call("atomicadd", region(source), region(target)))


def test_a_place_of_each_thread_is_done_by_each_thread() -> None:
    kernel, a = Kernel(threads=8), random("float32", 8, 2)
    source, target = kernel.tensor("A", "float32", a), kernel.tensor("B", "float32", np.zeros((4, 2)))
    half = Expr("floordiv", "int32", (kernel.tx, number(2)))
    step = call("atomicadd", region(source, (kernel.tx, 0), (1, 2)), region(target, (half, 0), (1, 2)))
    assert np.array_equal(kernel.run(step)["B"], a[::2] + a[1::2])


def test_blocks_and_threads_in_which_a_condition_holds() -> None:
    """A block does it once if one of its threads does."""
    kernel, a = Kernel(threads=32, blocks=4), random("float32", 2)
    source, target = kernel.tensor("A", "float32", a), kernel.tensor("B", "float32", np.zeros(2))
    block = Expr("lt", "bool", (kernel.bx, number(3)))
    thread = Expr("lt", "bool", (kernel.tx, number(7)))
    step = If(Expr("and", "bool", (block, thread)), call("atomicadd", region(source), region(target)))
    assert np.array_equal(kernel.run(step)["B"], 3 * a)


def test_values_are_converted() -> None:
    kernel, a = Kernel(), np.array([1.75, -2.5])
    source, target = kernel.tensor("A", "float32", a), kernel.tensor("B", "int32", np.array([10, 20]))
    assert kernel.run(call("atomicadd", region(source), region(target)))["B"].tolist() == [11, 18]


def test_regions_of_unlike_axes_are_not_modelled() -> None:
    kernel = Kernel()
    source, target = kernel.tensor("A", "float32", [4]), kernel.tensor("B", "float32", [4, 4])
    with pytest.raises(NotModelled, match="unlike axes"):
        kernel.run(call("atomicadd", region(source), region(target)))


@pytest.mark.parametrize("form", ["tile", "element"])
def test_no_device_has_atomics_on_registers(form: str) -> None:
    """Shared memory is right: it is combined into by the tests above."""
    kernel = Kernel(threads=4)
    fragment = kernel.tile("f", "float32", (4,), "local.fragment")
    element = call("atomic_add_elem_op", Expr("call", "handle", (load(fragment, kernel.tx),), "access_ptr"), number(1))
    with pytest.raises(NotModelled, match="an atomic on f, which is in registers"):
        kernel.run(call("atomicadd", number(1), region(fragment)) if form == "tile" else element)


@pytest.mark.parametrize(
    ("name", "row", "first", "value", "refused"),
    [
        ("atomic_add_elem_op", 1, 0, 1.0, True),
        ("atomic_max_elem_op", 1, 0, 0.0, True),
        ("atomic_add_elem_op", 1, 0, 0.0, False),
        ("atomic_add_elem_op", 2, 0, 1.0, False),
        ("atomic_add_elem_op", 0, -2, 1.0, True),
        ("atomic_add_elem_op", 1, -2, 1.0, True),
    ],
    ids=["into the next row", "a maximum", "adds nothing", "behind the tensor", "before it", "into the row before"],
)
def test_an_element_whose_index_leaves_its_axis(name: str, row: int, first: int, value: float, refused: bool) -> None:
    """TileLang guards some of them, so that nobody knows what the author means. Behind the tensor all do nothing."""
    kernel, expected = Kernel(threads=8), np.zeros((3, 6))
    column = Expr("add", "int32", (kernel.tx, number(first)))
    place = Expr("call", "handle", (load(kernel.tensor("B", "float32", np.zeros((3, 6))), row, column),), "access_ptr")
    step = call(name, place, Expr("float", "float32", (), value))
    if refused:
        with pytest.raises(NotModelled, match="an atomic whose index leaves an axis of B"):
            kernel.run(step)
    else:
        expected[row] += value
        assert np.array_equal(kernel.run(step)["B"], expected)
