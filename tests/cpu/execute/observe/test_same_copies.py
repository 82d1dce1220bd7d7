"""Two asynchronous copies to one place: no race where both bring the same."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np
import pytest

from tests.cpu.execute.ops.thread.test_hardware import FORMS, left_by_device, machine_of, run
from tests.cpu.execute.ops.tile.building import Kernel, add, call, load, number, region
from tlcheck.execute.compare.both_levels import execute
from tlcheck.execute.observe.races import Race
from tlcheck.execute.observe.watching import Watching
from tlcheck.execute.stops import NotModelled
from tlcheck.snapshot.ir import Buffer, Evaluate, Expr, Function, Seq, Stmt, Store
from tlcheck.snapshot.walk import rebuild

FORM = "tma_2d"
_BARRIER, _ROW, _BYTES = (
    1,
    4,
    1,
)  # the arguments of a load that say which mbarrier and row, of an arrival how many bytes


def _argument(call: Expr, place: int, change: Callable[[Expr], Expr]) -> Evaluate:
    return Evaluate(replace(call, args=(*call.args[:place], change(call.args[place]), *call.args[place + 1 :])))


def _twice(rows_on: int) -> Function:
    """The form with each copy issued twice, the second one of rows that lie further on."""

    def doubled(old: Stmt, new: Stmt) -> Stmt:
        if isinstance(new, Evaluate) and new.value.value == "tma_load":
            return Seq((_argument(new.value, _ROW, lambda row: _plus(row, rows_on)), new))
        if isinstance(new, Evaluate) and new.value.value == "ptx_arrive_barrier_expect_tx":
            return _argument(new.value, _BYTES, lambda count: replace(count, value=2 * int(count.value or 0)))
        return new

    lowered = FORMS[FORM].checkpoints["device-tir"]
    return replace(lowered, body=rebuild(lowered.body, doubled))


def _plus(e: Expr, number: int) -> Expr:
    return Expr("add", e.dtype, (e, Expr("int", e.dtype, (), number)))


def _raced(lowered: Function, written: str = "B") -> set[tuple[str, str]]:
    """Return which buffers race, and what is missing. written: a tensor that somebody may write."""
    machine = machine_of(FORMS[FORM], FORM, late=True, exact=True, lowered=lowered)
    watching = Watching(machine.function, frozenset({written}))
    machine.run(*watching(machine))
    return _named(watching.watches[0].races.values())


def _named(found: Iterable[Race]) -> set[tuple[str, str]]:
    return {(race.buffer, race.missing) for race in found}


def test_a_bulk_copy_with_a_placeholder_for_its_mbarrier() -> None:
    """0.1.7 and 0.1.8 leave this where warps are not specialized: no barrier of the kernel's, so no number 0."""

    def without(_: Stmt, new: Stmt) -> Stmt:
        if isinstance(new, Evaluate) and new.value.value == "tma_load":
            return _argument(new.value, _BARRIER, lambda _: number(0))
        return new

    lowered = FORMS[FORM].checkpoints["device-tir"]
    with pytest.raises(NotModelled, match="a bulk copy that names no mbarrier"):
        _raced(replace(lowered, body=rebuild(lowered.body, without)))


def test_bulk_copies_of_the_same_rows() -> None:
    assert _raced(_twice(0)) == set()
    left = run(FORMS[FORM], FORM, late=True, exact=True, lowered=_twice(0))
    np.testing.assert_array_equal(left[1], left_by_device(FORM, 1))


def test_bulk_copies_of_other_rows() -> None:
    assert ("a", "a wait for the copy") in _raced(_twice(1))


def test_bulk_copies_of_what_the_kernel_writes() -> None:
    """Whether both bring the same is not known."""
    assert ("a", "a wait for the copy") in _raced(_twice(0), "A")


@pytest.mark.parametrize(("on", "raced"), [(0, set()), (1, {("s", "a wait for the copy")})])
def test_copies_by_threads(on: int, raced: set[tuple[str, str]]) -> None:
    kernel = Kernel(threads=32)
    a, b = kernel.tensor("A", "float32", (64,)), kernel.tensor("B", "float32", (32,))
    tile = kernel.tile("s", "float32", (32,))
    to, *sources = (_address(tile, kernel.tx), _address(a, kernel.tx), _address(a, add(kernel.tx, on)))
    copies = [call("ptx_cp_async", to, source, number(1)) for source in reversed(sources)]
    waits = [call("ptx_commit_group"), call("ptx_wait_group", number(0))]
    lowered = (*copies, *waits, Store(b, (kernel.tx,), load(tile, kernel.tx)))
    written = (call("copy", region(a, sizes=[32]), region(tile)), call("copy", region(tile), region(b)))
    found = execute(kernel.snapshot(written, lowered))
    assert _named(found.races) == raced


def _address(of: Buffer, index: Expr) -> Expr:
    return Expr("call", "handle", (load(of, index),), "address_of")
