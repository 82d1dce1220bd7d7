"""Buffers of one name: an author writes `s = T.alloc_shared(...)` a second time."""

from __future__ import annotations

from tests.cpu.prove.handmade import THREAD, add, load, own, status, tensor
from tlcheck.snapshot.ir import Seq, Store

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
