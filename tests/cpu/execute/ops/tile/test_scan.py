"""T.cumsum and T.cummax, against NumPy's."""

from __future__ import annotations

import numpy as np
import pytest

from tests.cpu.execute.ops.tile.building import (
    Array,
    Kernel,
    call,
    flag,
    number,
    poisoned,
    random,
    region,
    whole_pointer,
)
from tlcheck.execute.memory.values import poison
from tlcheck.execute.stops import Illegal

OF = {"cumsum": np.add, "cummax": np.maximum}


def run(name: str, a: Array, dtype: str, axis: int, reverse: bool, exact: bool = True) -> Array:
    kernel = Kernel(exact=exact)
    source, target = kernel.tensor("A", dtype, a), kernel.tensor("B", dtype, list(a.shape))
    tile = kernel.tile("s", dtype, a.shape)
    return kernel.run(
        call("copy", region(source), region(tile)),
        call(name, region(tile), region(tile), number(axis), flag(reverse)),
        call("copy", region(tile), region(target)),
    )["B"]


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(("shape", "axis"), [((17,), 0), ((4, 9), 0), ((4, 9), 1)])
@pytest.mark.parametrize("dtype", ["float32", "int32", "uint8"])
@pytest.mark.parametrize("name", ["cumsum", "cummax"])
def test_lines_in_place(name: str, dtype: str, shape: tuple[int, ...], axis: int, reverse: bool) -> None:
    a = random(dtype, *shape)
    lines = np.flip(a, axis) if reverse else a
    expected = OF[name].accumulate(lines, axis=axis, dtype=a.dtype)
    assert np.array_equal(run(name, a, dtype, axis, reverse), np.flip(expected, axis) if reverse else expected)


def test_a_part_of_a_buffer_into_another_buffer() -> None:
    kernel, a = Kernel(), random("float32", 4, 12)
    source, target = kernel.tensor("A", "float32", a), kernel.tensor("B", "float32", np.zeros((4, 12)))
    part = ((1, 3), (2, 5))
    found = kernel.run(call("cumsum", region(source, *part), region(target, *part), number(1), flag(False)))["B"]
    expected = np.zeros((4, 12))
    expected[1:3, 3:8] = a[1:3, 3:8].cumsum(1)
    assert np.array_equal(found, expected)


@pytest.mark.parametrize("axis", [0, 1])
def test_a_part_that_leaves_a_tile(axis: int) -> None:
    """The device library takes an address and sizes: nothing guards its accesses."""
    kernel = Kernel()
    tile, first = kernel.tile("s", "float32", (4, 6)), [0, 0]
    first[axis] = 3
    part = region(tile, tuple(first), (3, 4))
    with pytest.raises(Illegal, match="access of s out of bounds"):
        kernel.run(call("cumsum", part, part, number(1), flag(False)))


def test_buffers_by_pointer() -> None:
    kernel, a = Kernel(), random("float32", 8)
    source, target = kernel.tensor("A", "float32", a), kernel.tensor("B", "float32", [8])
    step = call("cumsum", whole_pointer(source), whole_pointer(target), number(0), flag(True))
    assert np.array_equal(kernel.run(step)["B"], a[::-1].cumsum()[::-1])


def test_real_sums_have_the_dtype() -> None:
    a = random("float16", 9) / 3
    found = run("cumsum", a.astype(np.float16).astype(np.float64), "float16", 0, False, exact=False)
    assert np.array_equal(found, found.astype(np.float16).astype(np.float64))


def test_poison_goes_on_and_nan_gives_way() -> None:
    a = np.array([1.0, np.nan, 3.0, 2.0, 5.0])
    assert run("cummax", a, "float32", 0, False).tolist() == [1.0, 1.0, 3.0, 3.0, 5.0]
    a[2] = poison(1)
    assert poisoned(run("cummax", a, "float32", 0, False)).tolist() == [False, False, True, True, True]
