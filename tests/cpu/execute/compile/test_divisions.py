"""Integer division: as TIR means it, and as compilers write it with the machine's."""

from __future__ import annotations

import numpy as np
import pytest

from tests.cpu.execute.ops.tile.building import Kernel, load, number
from tlcheck.snapshot.ir import Expr, Store

DIVIDENDS = np.repeat(np.arange(-7, 9, dtype=np.int32), 7)
DIVISORS = np.tile(np.arange(-3, 4, dtype=np.int32), 16)


def binary(op: str, a: Expr, b: Expr) -> Expr:
    return Expr(op, "bool" if op in ("le", "lt", "and", "or") else "int32", (a, b))


def rounded_down(a: Expr, b: Expr) -> tuple[Expr, Expr]:
    """Quotient and rest from those of the machine, which rounds to zero."""
    quotient, rest, zero = binary("truncdiv", a, b), binary("truncmod", a, b), number(0)
    same_sign = binary(
        "or",
        binary("and", binary("le", zero, b), binary("le", zero, rest)),
        binary("and", binary("lt", b, zero), binary("le", rest, zero)),
    )
    down = Expr("sub", "int32", (quotient, number(1)))
    return (
        Expr("select", "int32", (same_sign, quotient, down)),
        Expr("select", "int32", (same_sign, rest, binary("add", rest, b))),
    )


@pytest.mark.parametrize("part", [0, 1])
def test_both_ways_to_write_it_agree_by_zero_too(part: int) -> None:
    """A division by zero has no meaning; it must not make a right kernel look wrong."""
    kernel = Kernel(threads=len(DIVIDENDS))
    a, b = kernel.tensor("A", "int32", DIVIDENDS), kernel.tensor("B", "int32", DIVISORS)
    direct, rewritten = (kernel.tensor(name, "int32", [len(DIVIDENDS)]) for name in "CD")
    x, y = load(a, kernel.tx), load(b, kernel.tx)
    op = ("floordiv", "floormod")[part]
    left = kernel.run(
        Store(direct, (kernel.tx,), binary(op, x, y)), Store(rewritten, (kernel.tx,), rounded_down(x, y)[part])
    )
    assert left["C"].tolist() == left["D"].tolist()
    divided = DIVISORS != 0
    expected = (np.floor_divide, np.mod)[part](DIVIDENDS[divided], DIVISORS[divided])
    assert left["C"][divided].tolist() == expected.tolist()
