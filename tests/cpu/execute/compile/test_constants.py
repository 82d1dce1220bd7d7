"""Arithmetic of constants, which a compiler does once and rounds: 1 - 0.1 is not 0.9 in 24 bits."""

from __future__ import annotations

import numpy as np
import pytest

from tests.cpu.execute.ops.tile.building import Kernel, load, variable
from tlcheck.execute.compare.both_levels import execute
from tlcheck.snapshot.ir import Bind, Expr, Store


def _float(value: float) -> Expr:
    return Expr("float", "float32", (), value)


@pytest.mark.parametrize(
    ("folded", "expected"),
    [(0.8999999761581421, "agreed"), (float(np.float32(0.9) + np.float32(3e-7)), "refuted"), (0.9, "agreed")],
)
def test_a_folded_constant_is_rounded_once_more(folded: float, expected: str) -> None:
    made = Kernel(threads=32)
    a, c = made.tensor("A", "float32", np.zeros(32)), made.tensor("C", "float32", [32])
    part = variable("part", "float32")
    rest = Expr("sub", "float32", (_float(1.0), part))
    written = Store(c, (made.tx,), Expr("mul", "float32", (rest, load(a, made.tx))))
    lowered = Store(c, (made.tx,), Expr("mul", "float32", (_float(folded), load(a, made.tx))))
    (outcome,) = execute(made.snapshot([Bind(part, _float(0.1)), written], [lowered])).outputs
    assert outcome.verdict == expected
