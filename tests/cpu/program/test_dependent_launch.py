"""A kernel that starts early has what the one ahead writes only behind T.pdl_sync."""

from __future__ import annotations

import pytest

from tests.cpu.execute.observe.test_tensors_in_order import store
from tests.cpu.execute.ops.tile.building import Kernel, call, load, number
from tlcheck.program.dependent_launch import access_ahead
from tlcheck.snapshot.ir import Stmt

WAITS = call("pdl_sync")


def ahead(*names: str, waits: bool = True) -> tuple[str, int] | None:
    """The first kernel makes W of A. The second makes `names[1]` of `names[0]`, and then waits."""
    made = Kernel(threads=32)
    tensors = {name: made.tensor(name, "float32", (32,)) for name in "AWB"}
    copy: Stmt = store(tensors[names[1]], made.tx, load(tensors[names[0]], number(3)))
    first = made.function(store(tensors["W"], made.tx, load(tensors["A"], made.tx)))
    return access_ahead([first, made.function(copy, *[WAITS] * waits)])


@pytest.mark.parametrize(("source", "target", "found"), [("W", "B", "W"), ("B", "A", "A"), ("B", "W", "W")])
def test_what_the_kernel_ahead_may_still_need(source: str, target: str, found: str) -> None:
    assert ahead(source, target) == (found, 0)


def test_what_it_does_not_write() -> None:
    assert ahead("A", "B") is None


def test_a_kernel_that_waits_for_nothing_starts_late() -> None:
    assert ahead("W", "B", waits=False) is None


def test_behind_the_wait_all_is_there() -> None:
    made = Kernel(threads=32)
    w, b = (made.tensor(name, "float32", (32,)) for name in "WB")
    first = made.function(store(w, made.tx, load(b, made.tx)))
    assert access_ahead([first, made.function(WAITS, store(b, made.tx, load(w, made.tx)))]) is None
