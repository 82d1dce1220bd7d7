"""Two blocks that may write one element, as far as boxes of one view say."""

from __future__ import annotations

import pytest

from tlcheck.scope.overlaps import shared
from tlcheck.snapshot.ir import Buffer, Expr, Function, Store, Thread


def number(value: int) -> Expr:
    return Expr("int", "int32", (), value)


def var(name: str, uid: int, dtype: str = "int32") -> Expr:
    return Expr("var", dtype, (), name, uid)


BX, TX = var("bx", 1), var("tx", 2)
C = Buffer("C", "float16", (number(2), number(4), number(32)), "global", var("C", 12, "handle"))


def view(dtype: str, *shape: int) -> Buffer:
    return Buffer("C.1", dtype, tuple(map(number, shape)), "global", C.data)


def kernel(buffer: Buffer, *indices: Expr) -> Function:
    """Store 0 by 8 blocks of 32 threads."""
    store = Store(buffer, indices, Expr("float", buffer.dtype, (), 0.0))
    inner = Thread(TX, "threadIdx.x", number(32), store)
    return Function("main", (C.data,), (C,), (), Thread(BX, "blockIdx.x", number(8), inner))


@pytest.mark.parametrize(
    ("buffer", "row", "apart"),
    [
        (view("float16", 8, 32), BX, True),
        (view("float16", 8, 32), Expr("floordiv", "int32", (BX, number(2))), False),
        (view("float16", 9, 32), BX, False),  # more than the tensor has
        (view("float8_e4m3fn", 8, 32), BX, False),  # half of it
    ],
)
def test_boxes_are_of_a_view_of_the_whole_tensor(buffer: Buffer, row: Expr, apart: bool) -> None:
    function = kernel(buffer, row, TX)
    assert (shared(function, function, {}, (8, 1, 1)) is None) is apart
