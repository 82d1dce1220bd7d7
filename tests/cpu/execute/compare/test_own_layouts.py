"""A layout of the author's with a negative index: the element lies before the memory of its tile."""

from __future__ import annotations

import pytest

from tests.cpu.execute.ops.tile.building import Kernel, add, call, load, number, region, variable
from tlcheck.execute.compare.both_levels import execute
from tlcheck.execute.request import Request
from tlcheck.snapshot.ir import Layout, Store

SIZE = 32


@pytest.mark.parametrize(
    ("shift", "told"), [(-1, [("source-bounds", "T.annotate_layout puts s[0] at -1, before the memory of s")]), (0, [])]
)
def test_an_element_before_the_tile_is_the_authors(shift: int, told: list[tuple[str, str]]) -> None:
    kernel = Kernel(threads=SIZE)
    a, b = kernel.tensor("A", "float32", (SIZE,)), kernel.tensor("B", "float32", (SIZE,))
    tile, i = kernel.tile("s", "float32", (SIZE,)), variable("i")
    kernel.layouts = [(tile.data, Layout((i,), (number(SIZE),), (add(i, shift),)))]
    written = [call("copy", region(a), region(tile)), call("copy", region(tile), region(b))]
    place = add(kernel.tx, -1)  # whatever the layout: it stops
    lowered = [Store(tile, (place,), load(a, kernel.tx)), Store(b, (kernel.tx,), load(tile, place))]
    found = execute(kernel.snapshot(written, lowered), Request())
    assert [(fault.problem, fault.what) for fault in found.faults] == told
    assert (found.illegal is None) == bool(told)
