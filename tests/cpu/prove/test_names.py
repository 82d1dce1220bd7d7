"""Buffers and loops of one name: an author writes `s = T.alloc_shared(...)` or `for z in ...` a second time."""

from __future__ import annotations

import pytest

from tests.cpu.prove.handmade import ADDED, STEP, THREAD, add, load, number, own, parallel, status, tensor
from tlcheck.snapshot.ir import Expr, For, Seq, Store

VALUES = tensor("F", "float32", 256, 91_051)
FIRST, SECOND = (tensor("S", "float32", 64, uid) for uid in (91_052, 91_053))
STORED = Store(FIRST, (THREAD,), own(VALUES))


def test_buffers_of_one_name_are_told_apart_by_the_order_of_their_uses() -> None:
    kernel = Seq((STORED, add(load(SECOND, THREAD), own(VALUES))))
    for declared in ((VALUES, FIRST, SECOND), (VALUES, SECOND, FIRST)):
        assert status(kernel, kernel, VALUES, FIRST, SECOND, seen=declared, root="S#2") == "same"


def test_an_addition_to_the_other_buffer_of_that_name_is_found() -> None:
    kernel, other = (Seq((STORED, add(load(to, THREAD), own(VALUES)))) for to in (SECOND, FIRST))
    assert status(kernel, other, VALUES, FIRST, SECOND, root="S#2") != "same"


@pytest.mark.parametrize(("steps", "found"), [(3, "same"), (2, "different")])
def test_a_loop_that_is_left_is_not_the_outer_one_of_its_name(steps: int, found: str) -> None:
    """`for z in T.unroll(1)` goes, and `for z in T.serial(3)` stays, both as another variable."""
    outer, inner, left = (Expr("var", "int32", value="z", uid=91_060 + n) for n in range(3))

    def added(z: Expr, count: int, to: Expr) -> For:
        return For(z, number(0), number(count), "serial", add(load(ADDED, to), own(VALUES, to)))

    source = For(outer, number(0), number(1), "unrolled", parallel(added(inner, 3, STEP)))
    assert status(source, added(left, steps, THREAD), VALUES) == found
