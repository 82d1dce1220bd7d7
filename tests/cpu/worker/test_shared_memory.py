"""Taking merged shared memory apart again, on functions made by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.cpu.snapshot.recorded import Maker
from tlcheck.snapshot.ir import Alloc, Buffer, Evaluate, Expr, For, Function, If, Launch, Seq, Stmt, Store
from tlcheck.snapshot.text import render
from tlcheck.worker.graph import read_graph
from tlcheck.worker.graph_nodes import Nodes
from tlcheck.worker.shared_memory import UNMERGED, _Home, _places, item_size, unmerge, unmerge_all

LEFT, RIGHT, MERGED = (Expr("var", "handle", (), name, uid) for uid, name in enumerate(("left", "right", "merged"), 1))
I = Expr("var", "int32", (), "i", 9)  # noqa: E741


def number(value: int) -> Expr:
    return Expr("int", "int32", (), value)


def buffer(data: Expr, dtype: str, count: int) -> Buffer:
    return Buffer(str(data.value), dtype, (number(count),), "shared.dyn", data)


def plus(e: Expr, value: int) -> Expr:
    """As TVM's simplifier adds a constant."""
    if value == 0:
        return e
    if e.op == "int":
        return number(int(e.value or 0) + value)
    if e.op in ("add", "sub") and e.args[1].op == "int":
        old = int(e.args[1].value or 0)
        return plus(e.args[0], value + (old if e.op == "add" else -old))
    return Expr("add" if value > 0 else "sub", "int32", (e, number(abs(value))))


def load(source: Buffer, index: Expr) -> Expr:
    return Expr("load", source.dtype, (index,), buffer=source)


def vector(index: Expr) -> Expr:
    return Expr("ramp", "int32x4", (index, number(1)), 4)


def program(left: Buffer, right: Buffer, allocated: list[Buffer], left_at: int = 0, right_at: int = 0) -> Function:
    """Accesses of all kinds; `left_at` and `right_at` are where the buffers lie, in their elements."""
    times = Expr("mul", "int32", (I, number(8)))
    pointer = Expr("call", "handle", (Expr("call", "float16", (), "type_annotation"), left.data, plus(times, left_at)))
    body: list[Stmt] = [
        Store(left, (vector(plus(times, left_at)),), Expr("float", "float16x4", (), 0.0)),
        Store(right, (plus(plus(times, -16), right_at),), load(left, plus(I, left_at))),
        If(Expr("lt", "bool", (load(right, number(3 + right_at)), I)), Evaluate(load(right, number(right_at)))),
        Evaluate(replace(pointer, value="tvm_access_ptr")),
    ]
    loop = For(I, number(2), number(4), "serial", Seq(tuple(body)))
    return Function("f", (), (), (), Seq((*[Alloc(b) for b in allocated], loop)))


def before() -> Function:
    left, right = buffer(LEFT, "float16", 64), buffer(RIGHT, "float32", 32)
    return program(left, right, [left, right])


def after(left_bytes: int, right_bytes: int) -> Function:
    left, right = buffer(MERGED, "float16", 64), buffer(MERGED, "float32", 32)
    return program(left, right, [buffer(MERGED, "uint8", 256)], left_bytes // 2, right_bytes // 4)


@pytest.fixture
def nodes() -> Nodes:
    maker = Maker()
    return Nodes(read_graph(maker.text(intent=maker.null)), [], {})


@pytest.mark.parametrize("places", [(0, 128), (128, 0), (64, 192), (0, 0), (32, 32)])
def test_every_placement_gives_the_function_before_the_merge(places: tuple[int, int], nodes: Nodes) -> None:
    merged = after(*places)
    assert "merged" in str(render(merged))
    assert str(render(unmerge(before(), merged, nodes))) == str(render(before()))


def test_accesses_that_are_no_constant_apart_are_left_alone(nodes: Nodes) -> None:
    merged = after(0, 128)
    assert isinstance(merged.body, Seq)
    loop = merged.body.body[-1]
    assert isinstance(loop, For)
    assert isinstance(loop.body, Seq)
    moved = [Evaluate(load(buffer(MERGED, "float16", 64), I)), *loop.body.body[1:]]
    other = replace(loop, body=Seq(tuple(moved)))
    function = replace(merged, body=Seq((*merged.body.body[:-1], other)))
    assert unmerge(before(), function, nodes) is function


@pytest.mark.parametrize(("left_at", "right_at"), [(0, 0), (0, 32), (48, 0), (128, 120)])
def test_the_places_of_buffers_that_overlap_are_kept(nodes: Nodes, left_at: int, right_at: int) -> None:
    """LEFT and RIGHT have 64 elements of 2 and of 4 bytes."""
    places = unmerge(before(), after(left_at, right_at), nodes).places
    assert [(data.value, place) for data, place in places] == [("left", 0), ("right", 0)]


def home(name: str, size: int, place: int) -> _Home:
    return _Home(buffer(Expr("var", "handle", (), name), "int8", size), place, 0)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ([("a", 2048, 0), ("b", 2048, 2048), ("c", 3072, 0)], [0, 2048, 0]),
        ([("a", 2048, 2048), ("b", 2048, 0), ("c", 3072, 0)], [0, 2048, 0]),
        ([("a", 2048, 7168), ("b", 2048, 4096), ("c", 6144, 4096)], [0, 2048, 0]),
        ([("a", 512, 0), ("b", 512, 512)], []),
        ([("a", 512, 0), ("b", 512, 2048), ("c", 512, 100), ("d", 512, 2048)], [0, 0, 1024, 1024]),
        ([("a", 4096, 0), ("b", 16, 0), ("c", 16, 2048), ("d", 16, 1)], [0, 0, 1024, 0]),
        ([("a", 1000, 64), ("b", 200, 964), ("c", 150, 1114)], [0, 900, 1050]),
    ],
)
def test_places_are_canonical(found: list[tuple[str, int, int]], expected: list[int]) -> None:
    """One buffer after the other, groups apart; the last is a chain that no low places give."""
    assert [place for _, place in _places([home(*each) for each in found])] == expected


def test_kernels_of_a_function_have_their_own_buffers(nodes: Nodes) -> None:
    def two(first: Function, second: Function) -> Function:
        bodies = (first.body, second.body)
        return replace(first, body=Seq(tuple(Launch(f"k{n}", (), (), body) for n, body in enumerate(bodies))))

    undone = unmerge(two(before(), before()), two(after(0, 128), after(192, 0)), nodes)
    assert str(render(undone)) == str(render(two(before(), before())))
    assert not undone.places


def test_one_access_more_is_left_alone(nodes: Nodes) -> None:
    merged = after(0, 128)
    more = Evaluate(load(buffer(MERGED, "float16", 64), I))
    function = replace(merged, body=Seq((merged.body, more)))
    assert unmerge(before(), function, nodes) is function


def test_another_use_of_the_merged_buffer_is_left_alone(nodes: Nodes) -> None:
    merged = after(0, 128)
    other = Evaluate(Expr("call", "handle", (MERGED,), "opaque"))
    function = replace(merged, body=Seq((merged.body, other)))
    assert unmerge(before(), function, nodes) is function


def test_what_was_not_merged_is_left_alone(nodes: Nodes) -> None:
    function = before()
    assert unmerge(before(), function, nodes) is function


def test_with_every_pass_recorded_all_after_the_merge_are_undone(nodes: Nodes) -> None:
    passes = {"1": "tl.Simplify", "2": "tl.MergeSharedMemoryAllocations", "3": "tl.ThreadSync"}
    checkpoints = {"1": before(), "2": after(0, 128), "3": after(128, 0)}
    assert unmerge_all(checkpoints, passes, nodes)
    assert len({str(render(f)) for f in checkpoints.values()}) == 1


def test_the_module_before_the_merge_is_no_checkpoint(nodes: Nodes) -> None:
    passes = {UNMERGED: "tl.MergeSharedMemoryAllocations", "device-tir": "tl.Simplify"}
    checkpoints = {UNMERGED: before(), "device-tir": after(64, 0)}
    assert unmerge_all(checkpoints, passes, nodes)
    assert list(checkpoints) == ["device-tir"]


@pytest.mark.parametrize(
    ("dtype", "size"), [("float32", 4), ("float16x8", 16), ("bool", 1), ("uint8", 1), ("float8_e4m3", 1), ("int4", 1)]
)
def test_bytes_of_an_element(dtype: str, size: int) -> None:
    assert item_size(dtype) == size
