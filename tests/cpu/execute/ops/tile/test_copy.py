"""T.copy in all directions, against slices of arrays."""

from __future__ import annotations

from dataclasses import replace

import ml_dtypes
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
    poisoned,
    random,
    region,
    variable,
    whole_pointer,
)
from tlcheck.execute.events import Observer
from tlcheck.execute.memory.cells import Position
from tlcheck.execute.memory.frame import Frame, Mask
from tlcheck.execute.memory.places import Located, Place
from tlcheck.execute.memory.values import Value
from tlcheck.execute.observe.authors import Author
from tlcheck.execute.stops import NotModelled
from tlcheck.snapshot.ir import Bind, Block, Expr, For, If, Seq, Store

MINUS_ONE = Expr("float", "float32", (), -1.0)
SCOPES = ["shared", "shared.dyn", "local.fragment"]


@pytest.mark.parametrize("name", ["copy", "async_copy", "tma_copy"])
@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize("dtype", ["float16", "float32", "int8", "int64", "bool"])
def test_a_tile_of_each_block_goes_through(dtype: str, scope: str, name: str) -> None:
    """Global to tile to tile to global, with another place for each block."""
    kernel, a = Kernel(blocks=3), random(dtype, 12, 10)
    source, target = kernel.tensor("A", dtype, a), kernel.tensor("B", dtype, [12, 10])
    first, second = kernel.tile("s", dtype, (4, 8), scope), kernel.tile("f", dtype, (4, 8), "local.fragment")
    row = multiply(kernel.bx, 4)
    found = kernel.run(
        call(name, region(source, (row, 2), (4, 8)), region(first)),
        call(name, region(first), region(second)),
        call(name, region(second), region(target, (row, 1), (4, 8))),
    )["B"]
    assert np.array_equal(found[:, 1:9], a[:, 2:10])


def test_axes_of_one_element_are_left_out() -> None:
    kernel, a = Kernel(), random("float32", 2, 3, 4, 5)
    source, target = kernel.tensor("A", "float32", a), kernel.tensor("B", "float32", [4, 1, 5])
    tile = kernel.tile("s", "float32", (1, 4, 1, 5))
    found = kernel.run(
        call("copy", region(source, (1, 2, 0, 0), (1, 1, 4, 5)), region(tile)),
        call("copy", region(tile), region(target)),
    )["B"]
    assert np.array_equal(found[:, 0], a[1, 2])


@pytest.mark.parametrize("safe", [None, 7.0, -2.5])
def test_what_is_outside_of_the_source_reads_as_zero_or_the_safe_value(safe: float | None) -> None:
    kernel, a = Kernel(), random("float32", 6, 5)
    if safe is not None:
        kernel.annotations["safe_value_map"] = f"{{A: {safe}, other: 3}}"
    source, target = kernel.tensor("A", "float32", a), kernel.tensor("B", "float32", [8, 8])
    tile, first = kernel.tile("s", "float32", (8, 8)), load(kernel.tensor("N", "int32", np.array([-1])), 0)
    found = kernel.run(
        call("copy", region(source, (2, first), (8, 8)), region(tile)),
        call("copy", region(tile), region(target)),
    )["B"]
    expected = np.full((8, 8), safe or 0.0)
    expected[:4, 1:6] = a[2:]
    assert np.array_equal(found, expected)


def test_a_safe_value_holds_in_its_block_alone() -> None:
    """One copy, the same node before, in and after a block that says another value."""
    kernel, a = Kernel(), random("float32", 4)
    kernel.annotations["safe_value_map"] = "{A: -1}"
    source, target = kernel.tensor("A", "float32", a), kernel.tensor("B", "float32", [4, 8])
    tile, beyond = kernel.tile("s", "float32", (8,)), load(source, add(kernel.tx, 0))
    kernel.threads = 8

    def kept(row: int, value: Expr) -> Store:
        return Store(target, (number(row), kernel.tx), value)

    copied = Seq((call("copy", region(source, (0,), (8,)), region(tile)), kept(1, load(tile, kernel.tx))))
    block = Block("inner", Seq((copied, kept(3, beyond))), (), (("safe_value_map", "{A: -9}"),))
    found = kernel.run(kept(0, beyond), block, kept(2, beyond))["B"]
    assert found[:, 4:].tolist() == [[-1.0] * 4, [-9.0] * 4, [-1.0] * 4, [-9.0] * 4]


@pytest.mark.parametrize("rows", [0, -3])
def test_a_copy_of_no_rows_does_nothing(rows: int) -> None:
    """As many as are known when it runs: the last tile of a sequence whose length is a multiple of it."""
    kernel, a = Kernel(), random("float32", 8, 8)
    source, target = kernel.tensor("A", "float32", a), kernel.tensor("B", "float32", [8, 8])
    length = kernel.tensor("N", "int32", np.array([rows], np.int32))
    tile = kernel.tile("s", "float32", (8, 8))
    found = kernel.run(
        call("fill", region(tile), number(2)),
        call("copy", region(source, (3, 0), (load(length, 0), 8)), region(tile, (0, 0), (load(length, 0), 8))),
        call("copy", region(tile), region(target)),
    )["B"]
    assert np.array_equal(found, np.full((8, 8), 2.0))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (
            Expr("mul", "float32", (Expr("call", "float32", (), "infinity"), Expr("float", "float32", (), -1.0))),
            -np.inf,
        ),
        (Expr("cast", "float16", (Expr("float", "float32", (), -0.1),)), float(np.float16(-0.1))),
        (Expr("sub", "int32", (number(1), number(8))), -7.0),
    ],
)
def test_a_safe_value_is_computed(value: Expr, expected: float) -> None:
    kernel, a = Kernel(threads=8, exact=False), random("float32", 4)
    source, target = kernel.tensor("A", "float32", a), kernel.tensor("B", "float32", [8])
    kept = Store(target, (kernel.tx,), load(source, add(kernel.tx, 0)))
    found = kernel.run(Block("inner", kept, safe_values=((source.data, value),)))["B"]
    assert found.tolist() == [*a.tolist(), *[expected] * 4]


@pytest.mark.parametrize("of", ["tx", "bx"])
def test_a_safe_value_that_is_no_constant_is_not_modelled(of: str) -> None:
    kernel, a = Kernel(threads=8, blocks=2), random("float32", 4)
    source, target = kernel.tensor("A", "float32", a), kernel.tensor("B", "float32", [8])
    kept = Store(target, (kernel.tx,), load(source, add(kernel.tx, 0)))
    with pytest.raises(NotModelled, match="safe value that is no constant"):
        kernel.run(Block("inner", kept, safe_values=((source.data, getattr(kernel, of)),)))


def test_what_is_outside_of_the_destination_is_not_written() -> None:
    kernel, a, b = Kernel(), random("float32", 8, 8), random("float32", 6, 5, seed=1)
    source, target = kernel.tensor("A", "float32", a), kernel.tensor("B", "float32", b)
    tile, first = kernel.tile("s", "float32", (8, 8)), load(kernel.tensor("N", "int32", np.array([-2])), 0)
    found = kernel.run(
        call("copy", region(source), region(tile)),
        call("copy", region(tile), region(target, (first, 3), (8, 8))),
    )["B"]
    expected = b.copy()
    expected[:, 3:] = a[2:8, :2]
    assert np.array_equal(found, expected)


def test_the_side_nearer_to_registers_says_how_far() -> None:
    """A region of a tensor that is given without extents has those of the other side, or larger ones."""
    kernel, a = Kernel(), random("float32", 16)
    source, target = kernel.tensor("A", "float32", a), kernel.tensor("B", "float32", [16])
    tile = kernel.tile("f", "float32", (4,), "local.fragment")
    found = kernel.run(
        call("copy", region(source, (3,), (9,)), region(tile)),
        call("fill", region(target), Expr("float", "float32", (), 0.5)),
        call("copy", region(tile), region(target, (8,), (2,))),
    )["B"]
    expected = np.full(16, 0.5)
    expected[8:12] = a[3:7]
    assert np.array_equal(found, expected)


@pytest.mark.parametrize("scope", ["local.fragment", "local"])
def test_registers_say_how_far_against_shared_memory(scope: str) -> None:
    kernel, a = Kernel(), random("float32", 9)
    source, target = kernel.tensor("A", "float32", a), kernel.tensor("B", "float32", [9])
    shared, own = kernel.tile("s", "float32", (9,)), kernel.tile("f", "float32", (4,), scope)
    found = kernel.run(
        call("copy", region(source), region(shared)),
        call("copy", region(shared), region(own)),
        call("copy", region(own), region(shared, (2,), (6,))),
        call("copy", region(shared), region(target)),
    )["B"]
    assert np.array_equal(found, [*a[:2], *a[:4], *a[6:]])


@pytest.mark.parametrize(
    ("source_dtype", "target_dtype"),
    [("float32", "float16"), ("float32", "bfloat16"), ("float32", "int32"), ("int32", "float32"), ("int32", "int8")],
)
@pytest.mark.parametrize("exact", [True, False])
def test_elements_are_converted(source_dtype: str, target_dtype: str, exact: bool) -> None:
    kernel = Kernel(exact=exact)
    a = np.array([1 / 3, -2.75, 100.5, 1e5]) if source_dtype == "float32" else np.array([3, -7, 300, 70000])
    source, target = kernel.tensor("A", source_dtype, a), kernel.tensor("B", target_dtype, [4])
    found = kernel.run(call("copy", region(source), region(target)))["B"]
    if target_dtype in ("float16", "bfloat16"):
        small = np.dtype(np.float16) if target_dtype == "float16" else np.dtype(ml_dtypes.bfloat16)
        with np.errstate(over="ignore"):
            expected = a if exact else a.astype(small).astype(np.float64)
    else:
        expected = a.astype(target_dtype)
    assert np.array_equal(found, expected)


def test_sizes_that_differ_between_blocks() -> None:
    kernel, a = Kernel(blocks=4), random("float32", 4, 8)
    lengths = np.array([0, 3, 8, 5])
    source, size = kernel.tensor("A", "float32", a), kernel.tensor("N", "int32", lengths)
    target, tile = kernel.tensor("B", "float32", np.zeros((4, 8))), kernel.tile("s", "float32", (8,))
    count = load(size, kernel.bx)
    found = kernel.run(
        call("fill", region(tile), Expr("float", "float32", (), 9.0)),
        call("copy", region(source, (kernel.bx, 0), (1, count)), region(tile, (0,), (count,))),
        call("copy", region(tile), region(target, (kernel.bx, 0), (1, 8))),
    )["B"]
    expected = np.where(np.arange(8) < lengths[:, None], a, 9.0)
    assert np.array_equal(found, expected)


def test_a_size_that_a_variable_of_one_block_holds() -> None:
    kernel, a = Kernel(), random("float32", 4, 8)
    source, target = kernel.tensor("A", "float32", a), kernel.tensor("B", "float32", np.zeros((4, 8)))
    end = variable("end")
    copied = call("copy", region(source, (0, 0), (4, end)), region(target, (0, 0), (4, end)))
    found = kernel.run(Bind(end, add(number(5), multiply(kernel.bx, 8))), copied)["B"]
    assert np.array_equal(found, np.where(np.arange(8) < 5, a, 0.0))


def test_registers_of_each_thread() -> None:
    """A place that depends on the thread, and a buffer of each thread: every thread copies its own."""
    kernel, a = Kernel(threads=8), random("float32", 8, 4)
    source, target = kernel.tensor("A", "float32", a), kernel.tensor("B", "float32", [8, 4])
    own = kernel.tile("own", "float32", (4,), "local")
    found = kernel.run(
        call("copy", region(source, (kernel.tx, 0), (1, 4)), region(own)),
        call("copy", region(own), region(target, (add(7, multiply(kernel.tx, -1)), 0), (1, 4))),
    )["B"]
    assert np.array_equal(found, a[::-1])


def test_a_place_that_a_variable_of_the_threads_holds_is_one_place_of_the_block() -> None:
    """All threads hold the same number: one copy, not one for each, also for those that watch it."""
    kernel, a = Kernel(), random("float32", 6, 8)
    source, target = kernel.tensor("A", "float32", a), kernel.tensor("B", "float32", [4, 8])
    tile, held = kernel.tile("s", "float32", (4, 8)), kernel.tile("v", "int32", (1,), "local.var")
    body = (
        Store(held, (number(0),), number(4)),
        call("copy", region(source, (load(held, 0), 0), (4, 8)), region(tile)),
        call("copy", region(tile), region(target)),
    )
    assert np.array_equal(kernel.run(*body)["B"], np.concatenate([a[4:], np.zeros((2, 8), np.float32)]))
    machine = kernel.machine(*body)
    author = Author(machine, frozenset(("A", "s", "B")))
    machine.run(author)
    assert not any(author.contested.values())


def test_a_part_of_a_tile_onto_another_part() -> None:
    kernel, a = Kernel(), random("int32", 4, 4)
    source, target = kernel.tensor("A", "int32", a), kernel.tensor("B", "int32", [4, 4])
    tile = kernel.tile("s", "int32", (4, 4))
    found = kernel.run(
        call("copy", region(source), region(tile)),
        call("copy", region(tile, (0, 0), (3, 4)), region(tile, (1, 0), (3, 4))),
        call("copy", region(tile), region(target)),
    )["B"]
    assert np.array_equal(found, a[[0, 0, 1, 2]])


def test_what_was_never_written_stays_poison() -> None:
    kernel = Kernel()
    target, tile = kernel.tensor("B", "float32", [2, 4]), kernel.tile("s", "float32", (4,))
    found = kernel.run(
        call("fill", region(tile, (1,), (2,)), Expr("float", "float32", (), 1.0)),
        call("copy", region(tile), region(target, (0, 0), (1, 4))),
    )["B"]
    assert poisoned(found[0]).tolist() == [True, False, False, True]


def test_a_copy_within_a_parallel_loop_is_of_each_iteration() -> None:
    kernel, a, i = Kernel(), random("float32", 6), variable("i")
    source, target = kernel.tensor("A", "float32", a), kernel.tensor("B", "float32", [6])
    back = add(5, multiply(i, -1))
    one = call("copy", region(source, (i,), (1,)), region(target, (back,), (1,)))
    found = kernel.run(parallel([6], [i], Seq((one, Store(target, (back,), load(target, back))))))["B"]
    assert np.array_equal(found, a[::-1])


@pytest.mark.parametrize("named", [True, False])
def test_rows_that_are_named_go_to_a_tile_and_back(named: bool) -> None:
    """As expressions, or all as constants."""
    kernel, a, rows = Kernel(), random("float32", 8, 6), [5, 0, 7, 2]
    source, target = kernel.tensor("A", "float32", a), kernel.tensor("B", "float32", [4, 4])
    tile = kernel.tile("s", "float32", (4, 4))
    notes = {"is_gather4": "1", "gather4_col": "1"} | ({} if named else {"gather4_rows": str(rows)})
    gather = call("copy", region(source, (0, 0), (4, 4)), region(tile), notes=notes)
    if named:
        given = tuple((f"gather4_rows[{i}]", number(row)) for i, row in enumerate(rows))
        gather = replace(gather, value=replace(gather.value, computed=given))
    assert np.array_equal(kernel.run(gather, call("copy", region(tile), region(target)))["B"], a[rows, 1:5])

    kernel = Kernel()
    source, target = kernel.tensor("A", "float32", a[:4, :4]), kernel.tensor("B", "float32", [8, 6])
    tile, notes = (
        kernel.tile("s", "float32", (4, 4)),
        {"is_scatter4": "1", "gather4_col": "1", "gather4_rows": str(rows)},
    )
    scatter = call("copy", region(tile), region(target, (0, 0), (4, 4)), notes=notes)
    assert np.array_equal(kernel.run(call("copy", region(source), region(tile)), scatter)["B"][rows, 1:5], a[:4, :4])


def test_rows_that_are_not_known_are_not_modelled() -> None:
    kernel = Kernel()
    source, tile = kernel.tensor("A", "float32", [4, 4]), kernel.tile("s", "float32", (4, 4))
    with pytest.raises(NotModelled, match="rows whose numbers are not known"):
        kernel.run(call("copy", region(source), region(tile), notes={"is_gather4": "1"}))


def test_regions_of_unlike_axes_are_not_modelled() -> None:
    kernel = Kernel()
    source, tile = kernel.tensor("A", "float32", [4, 4]), kernel.tile("s", "float32", (4,))
    with pytest.raises(NotModelled, match="unlike axes"):
        kernel.run(call("copy", region(source), region(tile)))


def test_a_tile_is_where_the_active_threads_say_and_no_others() -> None:
    """One warp keeps the number of its tile in a variable of its own, which has not been set in other threads."""
    kernel, a = Kernel(threads=4), random("float32", 3, 8)
    source, target = kernel.tensor("A", "float32", a), kernel.tensor("B", "float32", [3, 8])
    row, tile = kernel.tile("row", "int32", (1,), "local"), kernel.tile("s", "float32", (8,))
    body = (
        Store(row, (number(0),), number(2)),
        call("copy", region(source, (load(row, 0), 0), (1, 8)), region(tile)),
        call("copy", region(tile), region(target, (load(row, 0), 0), (1, 8))),
    )
    seen = _LanesOfTiles()
    machine = kernel.machine(If(Expr("ge", "bool", (kernel.tx, number(2))), Seq(body)))
    machine.run(seen)
    where, values = machine.pages("B").outcome(0)
    assert where.tolist() == list(range(16, 24))
    assert np.array_equal(values, a[2])
    assert set(seen.lanes) == {1}


class _LanesOfTiles(Observer):
    def __init__(self) -> None:
        self.lanes: list[int] = []

    def tile_accessed(
        self, place: Place, position: Position, mask: Mask | None, lanes: int, value: Value | None
    ) -> None:
        self.lanes.append(lanes)


def test_a_tile_in_shared_memory_is_located_once_for_each_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the start is read from a tensor, so that no variable tells it."""
    kernel, a, rounds = Kernel(blocks=2), random("float32", 12, 8), 6
    located: list[Frame] = []
    source, target = kernel.tensor("A", "float32", a), kernel.tensor("B", "float32", [12, 8])
    slots, step = kernel.tensor("slots", "int32", np.arange(rounds) % 2), variable("i")
    ring, row = kernel.tile("s", "float32", (2, 2, 8)), multiply(step, 2)
    slot = region(ring, (load(slots, step), 0, 0), (1, 2, 8))
    whole = Place.located

    def noted(self: Place, frame: Frame) -> Located:
        if self.name == "s":
            located.append(frame)
        return whole(self, frame)

    monkeypatch.setattr(Place, "located", noted)
    body = call("copy", region(source, (row, 0), (2, 8)), slot), call("copy", slot, region(target, (row, 0), (2, 8)))
    found = kernel.run(For(step, number(0), number(rounds), "serial", Seq(body)))["B"]
    assert np.array_equal(found, a)
    assert len(located) == 2 * 2


def test_a_tile_that_a_pointer_names_is_where_its_offset_says() -> None:
    kernel, a, step = Kernel(), random("float32", 12, 8), variable("i")
    source, target = kernel.tensor("A", "float32", a), kernel.tensor("B", "float32", [12, 8])
    ring, row = kernel.tile("s", "float32", (2, 2, 8)), multiply(step, 2)
    slot = whole_pointer(ring, multiply(step, 16))
    into = kernel.tile("f", "float32", (2, 8), "local.fragment")
    fill = call("copy", region(source, (row, 0), (2, 8)), slot)
    whole = region(ring, (step, 0, 0), (1, 2, 8))
    found = kernel.run(
        For(step, number(0), number(2), "serial", fill),
        For(
            step,
            number(0),
            number(2),
            "serial",
            Seq((call("copy", whole, region(into)), call("copy", region(into), region(target, (row, 0), (2, 8))))),
        ),
    )["B"]
    assert np.array_equal(found[:4], a[:4])
