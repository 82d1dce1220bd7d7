"""Indices of the source that are out of bounds wherever they run: where the lowered kernel stops, the author does."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.cpu.execute.ops.tile.building import Kernel, add, call, load, multiply, number, region, variable
from tlcheck.execute.compare.both_levels import execute
from tlcheck.execute.compare.execution import Execution
from tlcheck.execute.compare.faults import BOUNDS
from tlcheck.snapshot.ir import Expr, For, If, Stmt, Store

SIZE = 4


def _executed(first: int, *, stride: int = 1, tile: bool = False, before: int = 0) -> Execution:
    """Threads add to elements of a tensor of four, from `first` on; as lowered without guards, and `before` more.

    tile: a tile operator does.
    """
    kernel = Kernel(threads=SIZE)
    a, b = kernel.tensor("A", "int32", (SIZE,)), kernel.tensor("B", "int32", (SIZE,))
    step = multiply(kernel.tx, stride)

    def added(at: int) -> Stmt:
        element = Expr("call", "handle", (load(b, add(step, at)),), "address_of")
        return call("atomic_add_elem_op", element, load(a, kernel.tx))

    box = region(b, (add(kernel.bx, first),), (SIZE,))
    written = call("atomicadd", region(a), box) if tile else added(first)
    return execute(kernel.snapshot([written], [added(first + before)]))


@pytest.mark.parametrize(("first", "tile", "before"), [(SIZE, False, 0), (-9, True, 1)])
def test_an_index_that_is_never_in_bounds_is_the_authors(first: int, tile: bool, before: int) -> None:
    """One beyond the end; and one before the tensor, which TileLang counts from the end."""
    found = _executed(first, tile=tile, before=before)
    assert found.illegal is None
    (fault,) = found.faults
    assert (fault.problem, fault.buffer, fault.index, fault.open) == (BOUNDS, "B", (first,), "")
    assert fault.what == f"the index of B[{first}] is out of bounds: B has the shape [4]"


def test_an_exclusive_or_that_is_never_in_bounds_is_the_authors() -> None:
    """A loop of one step reads the other row of a tensor that has one."""
    kernel, i = Kernel(threads=SIZE), variable("i")
    a, c = kernel.tensor("A", "int32", (1, SIZE)), kernel.tensor("C", "int32", (SIZE,))
    other = Expr("call", "int32", (i, number(1)), "bitwise_xor")
    read = For(i, number(0), number(1), "serial", Store(c, (kernel.tx,), load(a, other, kernel.tx)))
    found = execute(kernel.snapshot([read], [read]))
    assert found.illegal is None
    assert [(fault.problem, fault.buffer) for fault in found.faults] == [(BOUNDS, "A")]


@pytest.mark.parametrize(("first", "whose"), [(SIZE, "the author's"), (SIZE - 1, "")])
def test_a_region_of_a_tile_that_begins_beyond_its_end_is_the_authors(first: int, whose: str) -> None:
    """One that begins within the tile is in bounds for some elements: TileLang guards the others."""
    kernel = Kernel(threads=SIZE)
    out, tile = kernel.tensor("B", "int32", (SIZE,)), kernel.tile("s", "int32", (SIZE,), "shared")
    fill = Store(tile, (kernel.tx,), number(1), line=3)
    copied = replace(call("copy", region(tile, (number(first),), (SIZE,)), region(out)), line=4)
    lowered = Store(out, (kernel.tx,), load(tile, add(kernel.tx, first)), line=4)
    found = execute(kernel.snapshot([fill, copied], [fill, lowered]))
    assert (found.illegal is None) == bool(whose)
    assert [(fault.problem, fault.buffer, fault.line) for fault in found.faults] == [(BOUNDS, "s", 4)] * bool(whose)


@pytest.mark.parametrize("blocks", [0, 1])
def test_a_region_that_the_source_never_uses_is_not_the_authors(blocks: int) -> None:
    """As lowered its condition is gone. blocks: those that it lets pass."""
    kernel = Kernel(threads=SIZE)
    out, tile = kernel.tensor("B", "int32", (SIZE,)), kernel.tile("s", "int32", (SIZE,), "shared")
    copied = replace(call("copy", region(tile, (number(SIZE),), (SIZE,)), region(out)), line=4)
    lowered = Store(out, (kernel.tx,), load(tile, add(kernel.tx, SIZE)), line=4)
    found = execute(kernel.snapshot([If(Expr("lt", "bool", (kernel.bx, number(blocks))), copied)], [lowered]))
    assert [fault.buffer for fault in found.faults if not fault.warning] == ["s"] * blocks
    assert (found.illegal is None) == bool(blocks)


@pytest.mark.parametrize(("first", "stride"), [(SIZE - 1, 1), (-1, 1), (0, 2)])
def test_an_index_that_is_in_bounds_somewhere_is_tilelangs(first: int, stride: int) -> None:
    """TileLang guards such an index, or has lost its guard."""
    found = _executed(first, stride=stride)
    assert found.illegal is not None
    assert not [fault for fault in found.faults if not fault.warning]


def test_a_size_that_was_drawn_does_not_accuse_the_author() -> None:
    """The tensor ends where tlcheck said: with another size its end is another one."""
    kernel, n = Kernel(threads=SIZE), Expr("var", "int32", (), "n", 97_001)
    a, c = kernel.tensor("A", "int32", np.zeros(0), shape=(n,)), kernel.tensor("C", "int32", (SIZE,))
    read = Store(c, (kernel.tx,), load(a, add(kernel.tx, 4096)))
    found = execute(kernel.snapshot([read], [read]))
    assert found.illegal is not None
    assert not [fault for fault in found.faults if not fault.warning]
