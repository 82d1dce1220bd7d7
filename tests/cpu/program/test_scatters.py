"""Stores to places that a tensor names."""

from __future__ import annotations

import pytest

from tests.cpu.execute.ops.tile.building import Kernel, load, number, variable
from tlcheck.program.scatters import scatters
from tlcheck.snapshot.ir import Bind, Buffer, Expr, Stmt, Store

KERNEL = Kernel()
A, INDEX = KERNEL.tensor("A", "int32", (), (8,)), KERNEL.tensor("I", "int32", (), (8,))
T = variable("t")
NAMED = load(INDEX, number(0))


def _store(index: Expr, value: Expr, buffer: Buffer = A) -> Store:
    return Store(buffer, (index,), value)


@pytest.mark.parametrize(
    ("body", "scattered"),
    [
        ([_store(number(0), NAMED)], False),
        ([_store(NAMED, number(1))], True),
        ([Bind(T, NAMED), _store(Expr("add", "int32", (T, number(1))), number(1))], True),
        ([Bind(T, number(3)), _store(T, NAMED)], False),
    ],
)
def test_what_a_tensor_names(body: list[Stmt], scattered: bool) -> None:
    assert scatters(KERNEL.function(*body)) == scattered
