"""T.transpose, against NumPy's."""

from __future__ import annotations

import numpy as np
import pytest

from tests.cpu.execute.ops.tile.building import Kernel, call, random, region
from tlcheck.execute.compare.trace import place_of, trace
from tlcheck.execute.request import Request
from tlcheck.execute.stops import NotModelled


@pytest.mark.parametrize("dtype", ["float16", "float32", "int8"])
@pytest.mark.parametrize("shape", [(4, 6), (1, 8), (2, 3, 5)])
def test_the_last_two_axes_change_places(shape: tuple[int, ...], dtype: str) -> None:
    kernel, a = Kernel(), random(dtype, *shape)
    turned = (*shape[:-2], shape[-1], shape[-2])
    source, target = kernel.tensor("A", dtype, a), kernel.tensor("B", dtype, list(turned))
    tile = kernel.tile("s", dtype, turned)
    found = kernel.run(call("transpose", region(source), region(tile)), call("copy", region(tile), region(target)))["B"]
    assert np.array_equal(found, a.swapaxes(-1, -2))


def test_a_square_onto_itself() -> None:
    kernel, a = Kernel(), random("float32", 4, 4)
    source = kernel.tensor("A", "float32", a)
    assert np.array_equal(kernel.run(call("transpose", region(source), region(source)))["A"], a.T)


def test_a_target_of_another_shape_is_not_modelled() -> None:
    kernel = Kernel()
    source, target = kernel.tensor("A", "float32", random("float32", 4, 6)), kernel.tensor("B", "float32", [4, 4])
    with pytest.raises(NotModelled, match="unlike sizes"):
        kernel.run(call("transpose", region(source), region(target)))


def test_a_transposed_element_comes_from_its_own_place() -> None:
    kernel = Kernel()
    source, target = kernel.tensor("A", "float32", (2, 3)), kernel.tensor("B", "float32", (3, 2))
    body = (call("transpose", region(source), region(target)),)
    snapshot = kernel.snapshot(body, body)
    request = Request(seeds=(0,))
    found = trace(snapshot, request, "B", (2, 0), place_of(snapshot, request, "B", (2, 0)), 4)
    assert [step.element for step in found.source.sources] == ["A[0, 2]"]
