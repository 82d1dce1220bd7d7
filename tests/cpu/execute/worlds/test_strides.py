"""Tensors whose rows lie apart: sizes of strides that the caller chooses, and where memory ends."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.cpu.execute.ops.tile.building import Kernel, add, buffer, load, number, parallel, variable
from tlcheck.execute.compare.both_levels import execute
from tlcheck.execute.worlds import inputs
from tlcheck.snapshot.ir import Evaluate, Expr, Function, Store

STEP, OUTER, ROWS = variable("step"), variable("outer"), variable("rows")


def function(*strides: Expr | int, promise: Expr | None = None) -> Function:
    shape = (3, 5, 100)[3 - len(strides) :]
    tensor = replace(buffer("A", "float32", shape), strides=tuple(number(s) for s in strides))
    body = Evaluate(promise if promise is not None else number(0))
    return Function("main", (tensor.data,), (tensor,), (), body)


def multiple(of: int) -> Expr:
    rest = Expr("floormod", "int32", (STEP, number(of)))
    return Expr("call", "handle", (Expr("eq", "bool", (rest, number(0))),), "assume")


@pytest.mark.parametrize(
    ("strides", "promised", "sizes"),
    [
        ((STEP, 1), 1, {"step": 128}),
        ((OUTER, STEP, 1), 1, {"outer": 704, "step": 128}),
        ((1, STEP), 1, {"step": 64}),
        ((STEP, 1), 1024, {"step": 1024}),
        ((STEP, 1), 101, {"step": 101}),
    ],
)
def test_rows_do_not_overlap(strides: tuple[Expr | int, ...], promised: int, sizes: dict[str, int]) -> None:
    assert inputs.sizes(function(*strides, promise=multiple(promised)), {}) == sizes


def test_a_stride_that_is_known_stays() -> None:
    assert inputs.sizes(function(OUTER, STEP, 1), {"step": 300}) == {"step": 300, "outer": 1536}


def test_a_size_that_is_a_stride_too_is_a_size() -> None:
    tensor = replace(buffer("A", "float32", (ROWS, ROWS)), strides=(ROWS, number(1)))
    assert inputs.sizes(Function("main", (tensor.data,), (tensor,), (), Evaluate(number(0))), {}) == {"rows": 64}


@pytest.mark.parametrize(("beyond", "verdict"), [(0, "agreed"), (64, "undecided")])
def test_a_flattened_tensor_ends_where_its_memory_does(beyond: int, verdict: str) -> None:
    """TileLang flattens a tensor of strides (1, 64) to 64 elements, however many columns there are."""
    kernel, i, j = Kernel(threads=64), variable("i"), variable("j")
    a, b = kernel.tensor("A", "float32", (64, 8)), kernel.tensor("B", "float32", (64, 8))
    columns = replace(a, strides=(number(1), number(64)))
    kernel.tensors["A"] = columns, None
    written = parallel([64, 8], [i, j], Store(b, (i, j), load(columns, i, j)))
    flat = replace(columns, shape=(number(64),), strides=())
    whole = [Store(b, (kernel.tx, number(n)), load(flat, add(kernel.tx, n * 64 + beyond))) for n in range(8)]
    found = execute(kernel.snapshot((written,), whole))
    assert found.outputs[0].verdict == verdict
    assert (found.illegal is not None) == (beyond > 0)


def test_a_block_number_of_64_bits_is_not_cut() -> None:
    wide = variable("bx", "int64")
    kernel = Kernel(blocks=4, bx=wide)
    b = kernel.tensor("B", "int32", [4])
    far = Expr("mul", "int64", (wide, Expr("int", "int64", (), 1 << 30)))
    place = Expr("floordiv", "int64", (far, Expr("int", "int64", (), 1 << 30)))
    assert kernel.run(Store(b, (place,), number(7)))["B"].tolist() == [7] * 4
