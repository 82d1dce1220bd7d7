"""Integers of 32 bits that overflow as written: what TileLang makes of them is the author's."""

from __future__ import annotations

import pytest

from tests.cpu.execute.observe.test_tensors_in_order import store
from tests.cpu.execute.ops.tile.building import Kernel, add, load, multiply, number
from tlcheck.execute.compare.both_levels import execute
from tlcheck.snapshot.ir import Expr

LARGE = 1_000_000_000


def _quotient(a: Expr, of: int) -> Expr:
    return Expr("floordiv", a.dtype, (a, number(of)))


class Whole:
    """Each thread stores what it computes of one of its floats, as an integer."""

    def __init__(self, factor: int, dtype: str = "int32") -> None:
        self.kernel = Kernel(threads=32)
        given = self.kernel.tensor("A", "float32", (32,))
        self.output = self.kernel.tensor("B", dtype, (32,))
        large = Expr("mul", "float32", (load(given, self.kernel.tx), Expr("float", "float32", (), float(factor))))
        self.number = Expr("cast", "int32", (large,))

    def verdict(self, source: Expr, lowered: Expr) -> tuple[str, str]:
        written, made = (store(self.output, self.kernel.tx, value) for value in (source, lowered))
        (found,) = (o for o in execute(self.kernel.snapshot((written,), (made,))).outputs if o.name == "B")
        return found.verdict, found.reason


@pytest.mark.parametrize(
    ("factor", "added", "verdict"),
    [(1, 2, "agreed"), (1, 3, "refuted"), (LARGE, 2, "undecided"), (LARGE, 3, "refuted")],
)
def test_a_product_that_overflows_is_divided_again(factor: int, added: int, verdict: str) -> None:
    """`(i * 4 + 8) // 4` is `i + 2`, and not `i + 3`."""
    kernel = Whole(factor)
    source = _quotient(add(multiply(kernel.number, 4), 8), 4)
    found, reason = kernel.verdict(source, add(kernel.number, added))
    assert found == verdict
    assert reason == ("as written, integers become larger than int32 holds" if found == "undecided" else "")


def test_a_float_that_no_integer_holds() -> None:
    """`(i - 3) % 7` is `(i + 4) % 7`, but at the end of the type."""
    kernel = Whole(1000 * LARGE)
    source, lowered = (Expr("floormod", "int32", (add(kernel.number, n), number(7))) for n in (-3, 4))
    assert kernel.verdict(source, lowered)[0] == "undecided"


def test_a_sum_that_tilelang_narrows() -> None:
    """In 64 bits the source does not overflow: that the lowered kernel does is TileLang's."""
    kernel = Whole(LARGE, "int64")
    wide = Expr("cast", "int64", (kernel.number,))
    four = Expr("int", "int64", (), 4)
    source = Expr("mul", "int64", (wide, four))
    lowered = Expr("cast", "int64", (multiply(kernel.number, 4),))
    assert kernel.verdict(source, lowered)[0] == "refuted"
