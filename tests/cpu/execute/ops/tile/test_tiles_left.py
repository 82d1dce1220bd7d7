"""Tile operators whose region leaves its buffer: TileLang guards tensors and copies, the rest is the author's."""

from __future__ import annotations

import pytest

from tests.cpu.execute.ops.tile.building import Kernel, call, flag, number, region, text
from tlcheck.execute.stops import Illegal
from tlcheck.snapshot.ir import Evaluate

SIZE, FIRST = 4, 2


def _operator(name: str, kernel: Kernel, scope: str) -> Evaluate:
    """An operator on SIZE elements of a buffer that has FIRST fewer from where the region begins."""
    other = kernel.tile("t", "float32", (SIZE,))
    made = kernel.tensor("B", "float32", [SIZE]) if scope == "global" else kernel.tile("s", "float32", (SIZE,), scope)
    left = region(made, (FIRST,), (SIZE,))
    if name == "fill":
        return call("fill", left, number(1))
    if name == "atomicadd":
        return call("atomicadd", region(other), left)
    if name == "reduce":
        return call("reduce", left, region(other, (0,), (1,)), text("max"), number(0), flag(True))
    return call("copy", left, region(other))


@pytest.mark.parametrize(
    ("name", "scope"), [("fill", "shared"), ("fill", "local.fragment"), ("reduce", "shared"), ("atomicadd", "shared")]
)
def test_the_author_leaves_a_tile(name: str, scope: str) -> None:
    kernel = Kernel()
    with pytest.raises(Illegal, match="access of s out of bounds") as stop:
        kernel.run(_operator(name, kernel, scope))
    assert (stop.value.index, stop.value.extent) == ((SIZE,), (SIZE,))


@pytest.mark.parametrize(("name", "scope"), [("copy", "shared"), ("fill", "global"), ("atomicadd", "global")])
def test_copies_and_operators_on_tensors_are_guarded(name: str, scope: str) -> None:
    kernel = Kernel()
    kernel.run(_operator(name, kernel, scope))


def _added_from_beyond(kernel: Kernel, first: int) -> Evaluate:
    """An atomic of SIZE elements, of which a tile has FIRST fewer. first: where it begins to change the tensor."""
    source = kernel.tile("s", "float32", (SIZE,))
    target = kernel.tensor("B", "float32", [SIZE])
    return call("atomicadd", region(source, (FIRST,), (SIZE,)), region(target, (first,), (SIZE,)))


def test_what_an_atomic_adds_leaves_a_tile() -> None:
    kernel = Kernel()
    with pytest.raises(Illegal, match="access of s out of bounds") as stop:
        kernel.run(_added_from_beyond(kernel, 0))
    assert (stop.value.index, stop.value.extent) == ((SIZE,), (SIZE,))


def test_nothing_is_read_for_what_lies_beyond_a_tensor() -> None:
    kernel = Kernel()
    kernel.run(_added_from_beyond(kernel, FIRST))
