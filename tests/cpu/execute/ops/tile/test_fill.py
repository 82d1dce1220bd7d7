"""T.fill and T.clear, against assignment to slices."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.cpu.execute.ops.tile.building import (
    Kernel,
    add,
    call,
    load,
    multiply,
    number,
    poisoned,
    random,
    region,
    variable,
    whole_pointer,
)
from tlcheck.execute.compare.both_levels import execute
from tlcheck.execute.request import Request
from tlcheck.snapshot.ir import Expr, For, If, Store


@pytest.mark.parametrize(
    ("dtype", "value", "expected"),
    [("float32", 2.5, 2.5), ("int32", 2.75, 2), ("int8", 300, 44), ("bool", 1, True), ("float16", 7, 7.0)],
)
def test_all_elements_become_the_value(dtype: str, value: float, expected: float) -> None:
    kernel = Kernel()
    target, tile = kernel.tensor("B", dtype, [3, 5]), kernel.tile("s", dtype, (3, 5), "local.fragment")
    constant = Expr("int", "int32", (), value) if isinstance(value, int) else Expr("float", "float32", (), value)
    found = kernel.run(call("fill", region(tile), constant), call("copy", region(tile), region(target)))["B"]
    assert np.array_equal(found, np.full((3, 5), expected))


def test_a_value_that_is_computed_of_constants() -> None:
    """`-T.infinity("float32")` is `infinity * -1`, as an attention begins with: also among formulas."""
    kernel = Kernel(threads=4)
    given, target = kernel.tensor("A", "float32", (4,)), kernel.tensor("B", "float32", (4,))
    own = kernel.tile("m", "float32", (1,), "local")
    infinity = Expr("call", "float32", (Expr("str", "", (), "float32"),), "infinity")
    value = Expr("mul", "float32", (infinity, Expr("float", "float32", (), -1.0)))
    largest = Store(target, (kernel.tx,), Expr("max", "float32", (load(own, 0), load(given, kernel.tx))))
    source, lowered = (
        (call("fill", region(own), value), largest),
        (Store(own, (Expr("int", "int32", (), 0),), value), largest),
    )
    snapshot = replace(kernel.snapshot(source, lowered), target="sm_90", toolchain={"tilelang": "0.1.15"})
    found = execute(snapshot, Request())
    assert found.outputs[0].verdict == "agreed"
    assert found.formulas is not None
    assert found.formulas.equal == {"B"}


def test_a_part_of_a_tile_and_of_a_tensor() -> None:
    """The part outside of the tensor is dropped."""
    kernel, b = Kernel(), random("float32", 4, 6)
    target = kernel.tensor("B", "float32", b)
    found = kernel.run(call("fill", region(target, (1, 4), (2, 5)), Expr("float", "float32", (), 9.0)))["B"]
    expected = b.copy()
    expected[1:3, 4:] = 9.0
    assert np.array_equal(found, expected)


def test_regions_without_elements_from_several_rows() -> None:
    """`T.fill(s[k * 2 : 4], 9.0)` in a loop: what is left of 4 rows is soon nothing, and then less."""
    kernel, k = Kernel(), variable("k")
    tile, target = kernel.tile("s", "float32", (4,)), kernel.tensor("B", "float32", [4])
    rest = region(tile, (multiply(k, 2),), (add(4, multiply(k, -2)),))
    loop = For(k, number(0), number(5), "serial", call("fill", rest, Expr("float", "float32", (), 9.0)))
    assert np.array_equal(kernel.run(loop, call("copy", region(tile), region(target)))["B"], np.full(4, 9.0))


def test_a_whole_buffer_by_pointer() -> None:
    kernel = Kernel()
    target, tile = kernel.tensor("B", "float32", [2, 4]), kernel.tile("s", "float32", (2, 4))
    body = call("fill", whole_pointer(tile), Expr("int", "int32", (), 0))
    assert np.array_equal(kernel.run(body, call("copy", region(tile), region(target)))["B"], np.zeros((2, 4)))


def test_a_value_of_each_thread_fills_its_own_registers() -> None:
    kernel = Kernel(threads=4)
    target, own = kernel.tensor("B", "int32", [4, 3]), kernel.tile("own", "int32", (3,), "local")
    found = kernel.run(
        call("fill", region(own), kernel.tx),
        call("copy", region(own), region(target, (kernel.tx, 0), (1, 3))),
    )["B"]
    assert np.array_equal(found, np.repeat(np.arange(4), 3).reshape(4, 3))


def test_only_threads_in_which_a_condition_holds_fill_their_registers() -> None:
    kernel = Kernel(threads=4)
    target, own = kernel.tensor("B", "int32", [4]), kernel.tile("own", "int32", (1,), "local")
    condition = Expr("lt", "bool", (kernel.tx, Expr("int", "int32", (), 2)))
    found = kernel.run(
        call("fill", region(own), Expr("int", "int32", (), 7)),
        If(condition, call("fill", region(own), Expr("int", "int32", (), 9))),
        call("copy", region(own), region(target, (kernel.tx,), (1,))),
    )["B"]
    assert found.tolist() == [9, 9, 7, 7]


def test_a_value_of_each_block() -> None:
    kernel, a = Kernel(blocks=3), random("float32", 3)
    source, target = kernel.tensor("A", "float32", a), kernel.tensor("B", "float32", [4, 2])
    found = kernel.run(call("fill", region(target, (kernel.bx, 0), (1, 2)), load(source, kernel.bx)))["B"]
    assert np.array_equal(found[:3], np.repeat(a, 2).reshape(3, 2))
    assert not found[3].any()


def test_a_tensor_without_contents_is_poison_until_it_is_filled() -> None:
    kernel = Kernel()
    target, tile = kernel.tensor("B", "float32", [4]), kernel.tile("s", "float32", (4,))
    found = kernel.run(call("copy", region(tile), region(target)))["B"]
    assert poisoned(found).all()
