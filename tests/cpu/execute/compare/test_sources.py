"""Test what two toolchains have written of one kernel, on the same inputs."""

from __future__ import annotations

import numpy as np
import pytest

from tests.cpu.execute.ops.tile.building import Kernel, add, flag, load, multiply, number
from tlcheck.execute.compare.sources import differing_output
from tlcheck.execute.request import Request
from tlcheck.snapshot.ir import Expr, If, Seq, Snapshot, Stmt, Store

BLOCKS, THREADS = 12, 32
UNDEFINED = "undefined (nothing wrote it, or what it is made of)"


class SourceKernel:
    """A kernel that adds something to each element of A, in one way or another."""

    def __init__(self) -> None:
        self.kernel = Kernel(threads=THREADS, blocks=BLOCKS)
        self.a = self.kernel.tensor("A", "float32", np.zeros(BLOCKS * THREADS))
        self.b = self.kernel.tensor("B", "float32", [BLOCKS * THREADS])

    def snapshot(self, *body: Stmt) -> Snapshot:
        return self.kernel.snapshot(body, [])

    def store(self, block: Expr, *terms: float) -> Store:
        """In a block's row: A, and then each term."""
        place = add(multiply(block, THREADS), self.kernel.tx)
        value = load(self.a, place)
        for term in terms:
            value = Expr("add", "float32", (value, Expr("float", "float32", (), term)))
        return Store(self.b, (place,), value)

    @property
    def mirrored(self) -> Expr:
        """The number of a block from the other end."""
        return Expr("sub", "int32", (number(BLOCKS - 1), self.kernel.bx))


def differing(before: Snapshot, after: Snapshot) -> tuple[str, tuple[int, ...], str, str, int] | None:
    found = differing_output(before, after, Request())
    return found and (found[0], found[1].index, found[1].expected, found[1].got, found[1].count)


def test_another_value_is_told_with_both() -> None:
    made = SourceKernel()
    found = differing_output(
        made.snapshot(made.store(made.kernel.bx, 1.0)), made.snapshot(made.store(made.kernel.bx, 3.0)), Request()
    )
    assert found is not None
    assert (found[0], found[1].index, found[1].seed) == ("B", (0,), 0)
    assert float(found[1].got) == float(found[1].expected) + 2.0


def test_the_order_of_a_sum_is_no_difference() -> None:
    made = SourceKernel()
    sides = [made.snapshot(made.store(made.kernel.bx, *terms)) for terms in ((0.1, 0.7, -0.8), (-0.8, 0.7, 0.1))]
    assert differing(*sides) is None


def test_blocks_that_share_the_work_otherwise_do_the_same() -> None:
    """Of twelve blocks four are looked at; where these write other elements, all of them are."""
    made = SourceKernel()
    forth, back = made.snapshot(made.store(made.kernel.bx, 1.0)), made.snapshot(made.store(made.mirrored, 1.0))
    assert differing(forth, back) is None
    found = differing(forth, made.snapshot(made.store(made.mirrored, 2.0)))
    assert found is not None
    assert found[4] == BLOCKS * THREADS


@pytest.mark.parametrize("forth", [True, False])
def test_what_only_one_side_writes(forth: bool) -> None:
    """Block 5, which is none of the first four that are looked at, leaves its row out."""
    made = SourceKernel()
    skips = Expr("eq", "bool", (made.kernel.bx, number(5)))
    every, some = (
        made.snapshot(made.store(made.kernel.bx, 1.0)),
        made.snapshot(If(skips, Seq(()), made.store(made.kernel.bx, 1.0))),
    )
    found = differing(every, some) if forth else differing(some, every)
    assert found is not None
    assert (found[0], found[1], found[4]) == ("B", (5 * THREADS,), THREADS)
    assert (found[3] if forth else found[2]) == UNDEFINED
    assert (found[2] if forth else found[3]) != UNDEFINED


def test_an_equal_condition_is_no_difference() -> None:
    made = SourceKernel()
    always = made.snapshot(If(flag(True), made.store(made.kernel.bx, 1.0), None))
    assert differing(made.snapshot(made.store(made.kernel.bx, 1.0)), always) is None
