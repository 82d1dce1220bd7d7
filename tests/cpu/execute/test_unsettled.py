"""Outputs that the kernel as written leaves to chance: what half of depends on nothing is not agreed."""

from __future__ import annotations

import pytest

from tests.cpu.execute.tiles.building import Kernel, load, number
from tlcheck.execute.run import execute
from tlcheck.snapshot.ir import Expr, If, Seq, Store

THREADS = 64


@pytest.mark.parametrize(
    ("written", "verdict", "reason"),
    [
        (THREADS, "agreed", ""),
        (THREADS - 8, "agreed", ""),
        (THREADS // 2, "undecided", "as written, 50% of it depends on memory that nothing wrote"),
        (0, "undecided", "as written, all of it depends on memory that nothing wrote"),
    ],
)
def test_registers_that_some_threads_set(written: int, verdict: str, reason: str) -> None:
    kernel = Kernel(threads=THREADS)
    a, b = kernel.tensor("A", "float32", (THREADS,)), kernel.tensor("B", "float32", (THREADS,))
    register = kernel.tile("r", "float32", (1,), "local")
    some = If(Expr("lt", "bool", (kernel.tx, number(written))), Store(register, (number(0),), load(a, kernel.tx)), None)
    body = Seq((some, Store(b, (kernel.tx,), load(register, 0))))
    (found,) = execute(kernel.snapshot((body,), (body,))).outputs
    assert (found.verdict, found.reason) == (verdict, reason)
