"""Indices out of bounds: TileLang counts one from the end, which the source does not say; the author leaves a tile."""

from __future__ import annotations

import pytest

from tests.cpu.execute.ops.tile.building import call, region
from tests.cpu.prove.handmade import BLOCK, THREAD, add, load, number, operation, own, status, tensor
from tlcheck.snapshot.ir import Buffer, Expr

VALUES, RESULTS, LESS = tensor("F", "float32", 256, 91_051), tensor("S", "float32", 64, 91_052), number(-3)


@pytest.mark.parametrize(("index", "found"), [(LESS, "same"), (operation("add", THREAD, LESS), "different")])
def test_only_a_negative_constant_counts_from_the_end(index: Expr, found: str) -> None:
    source = add(load(RESULTS, index), own(VALUES))
    lowered = add(load(RESULTS, operation("add", number(64), LESS)), own(VALUES))
    assert status(source, lowered, VALUES, RESULTS) == found


@pytest.mark.parametrize(("below", "found"), [(37, "undecided"), (50, "different")])
def test_an_index_that_is_negative_wherever_the_atomic_runs_is_the_authors(below: int, found: str) -> None:
    """The condition keeps the index below 0, and TileLang can prove that; or other threads are in bounds."""
    index = operation("add", operation("add", BLOCK, THREAD), number(-40))
    runs = operation("lt", operation("add", operation("mul", BLOCK, number(2)), THREAD), number(below))
    source = add(load(RESULTS, index), own(VALUES), runs)
    lowered = add(load(RESULTS, operation("add", number(64), index)), own(VALUES), runs)
    assert status(source, lowered, VALUES, RESULTS) == found


TILE = Buffer("s", "int32", (number(64),), "shared", Expr("var", "handle", value="s", uid=91_053))
NEXT = operation("add", THREAD, number(1))


@pytest.mark.parametrize(
    ("guarded", "found"), [((), "undecided"), ((operation("lt", THREAD, number(63)),), "different")]
)
def test_an_index_that_leaves_a_tile_is_the_authors(guarded: tuple[Expr, ...], found: str) -> None:
    """TileLang guards tensors alone: of a tile the author says where it ends."""
    values = tensor("V", "int32", 256, 91_054)
    source, lowered = add(load(TILE, NEXT), own(values), *guarded), add(load(TILE, NEXT), own(values))
    assert status(source, lowered, values, TILE) == found


@pytest.mark.parametrize(("first", "found"), [(32, "undecided"), (0, "different")])
def test_a_tile_that_leaves_another_is_the_authors(first: int, found: str) -> None:
    """As lowered its 64 elements are added from element 32 on. first: where the source says."""
    values = tensor("V", "int32", 256, 91_054)
    start = operation("mul", BLOCK, number(64))
    source = call("atomicadd", region(values, (start,), (64,)), region(TILE, (first,), (64,)))
    lowered = add(load(TILE, operation("add", THREAD, number(32))), own(values))
    assert status(source, lowered, values, TILE) == found
