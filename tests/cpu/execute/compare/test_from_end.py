"""Negative indices that TileLang counts from the end and the source does not, or the other way, are out of bounds."""

from __future__ import annotations

import pytest

from tests.cpu.execute.ops.tile.building import Index, Kernel, add, call, load, number, parallel, region, variable
from tlcheck.execute.compare.both_levels import execute
from tlcheck.execute.compare.execution import Execution
from tlcheck.snapshot.ir import Buffer, Expr, For, If, Seq, Stmt, Store

ROWS, SIZE, STEPS = 9, 32, 2
LAST = ROWS - 1


def _executed(*, tile: bool, below: int, row: int) -> Execution:
    """Each step copies row k - 1 of A to row k of C; those below some copy the same row of B to row k of D.

    tile: by T.copy, not T.Parallel. row: of B that the first step copies as lowered.
    """
    kernel = Kernel(threads=SIZE)
    a, b = (kernel.tensor(name, "int32", (ROWS, SIZE)) for name in "AB")
    c, d = (kernel.tensor(name, "int32", (STEPS, SIZE)) for name in "CD")
    k, i = variable("k"), variable("i")
    before = Expr("sub", "int32", (k, number(1)))

    def copied(source: Buffer, target: Buffer) -> Stmt:
        if tile:
            return call("copy", region(source, (before, 0), (1, SIZE)), region(target, (k, 0), (1, SIZE)))
        return parallel((SIZE,), (i,), Store(target, (k, i), load(source, before, i)))

    def stored(target: Buffer, source: Buffer, at: Index) -> Stmt:
        return Store(target, (k, kernel.tx), load(source, at, kernel.tx))

    def steps(halo: Stmt, body: Stmt) -> Stmt:
        held = Expr("lt", "bool", (k, number(below)))
        return For(k, number(0), number(STEPS), "serial", Seq((halo, If(held, body))))

    is_first = Expr("eq", "bool", (k, number(0)))
    zeros = Store(c, (k, kernel.tx), number(0))
    lowered = steps(
        If(is_first, zeros, stored(c, a, before)), If(is_first, stored(d, b, add(k, row)), stored(d, b, before))
    )
    return execute(kernel.snapshot([steps(copied(a, c), copied(b, d))], [lowered]))


@pytest.mark.parametrize("tile", [True, False])
def test_a_negative_index_that_is_counted_from_the_end_is_the_authors(tile: bool) -> None:
    found = _executed(tile=tile, below=1, row=LAST)
    (fault,) = [fault for fault in found.faults if not fault.warning]
    assert (fault.problem, fault.open) == ("source-bounds", "")
    assert not [other for other in found.faults if other.problem == "source-stray" and other.buffer == fault.buffer]
    assert fault.what.startswith("the index of B[-1, 0] is out of bounds: B has the shape [9, 32], and TileLang counts")
    assert [o.verdict for o in found.outputs if o.name == "C"] == ["agreed"]
    assert [(o.verdict, o.reason in fault.reasons) for o in found.outputs if o.name == "D"] == [("undecided", True)]


@pytest.mark.parametrize("tile", [True, False])
@pytest.mark.parametrize(("below", "row"), [(1, LAST - 1), (STEPS, LAST)])
def test_another_row_is_not_the_authors(tile: bool, below: int, row: int) -> None:
    """A row that no reading has; and the last one for an index that is not always negative."""
    found = _executed(tile=tile, below=below, row=row)
    assert not [fault for fault in found.faults if not fault.warning]
    assert [o.verdict for o in found.outputs if o.name == "D"] == ["refuted"]


def _guarded(*, tile: bool, row: Index | None, stored: int) -> Execution:
    """The only block copies a row of A, or row bx - 2; as lowered it stores a number instead."""
    kernel, i = Kernel(threads=SIZE), variable("i")
    a, c = kernel.tensor("A", "int32", (ROWS, SIZE)), kernel.tensor("C", "int32", (1, SIZE))
    at = add(kernel.bx, -2) if row is None else row
    written: Stmt = call("copy", region(a, (at, 0), (1, SIZE)), region(c))
    if not tile:
        written = parallel((SIZE,), (i,), Store(c, (number(0), i), load(a, at, i)))
    return execute(kernel.snapshot([written], [Store(c, (number(0), kernel.tx), number(stored))]))


@pytest.mark.parametrize("tile", [True, False])
def test_a_negative_index_that_is_guarded_is_the_authors(tile: bool) -> None:
    """The sign depends on how many blocks there are, which TileLang may not know."""
    found = _guarded(tile=tile, row=None, stored=0)
    (fault,) = [fault for fault in found.faults if not fault.warning]
    assert (fault.problem, fault.index, fault.open) == ("source-bounds", (-2, 0), "")
    assert fault.what.endswith("TileLang counts a negative index from the end only where it can prove its sign")
    assert [(o.verdict, o.reason in fault.reasons) for o in found.outputs if o.name == "C"] == [("undecided", True)]


@pytest.mark.parametrize("tile", [True, False])
@pytest.mark.parametrize(("row", "stored"), [(None, 77), (-2, 0)])
def test_another_number_and_a_constant_index_are_not_the_authors(tile: bool, row: Index | None, stored: int) -> None:
    """TileLang always counts a negative constant from the end."""
    found = _guarded(tile=tile, row=row, stored=stored)
    assert not [fault for fault in found.faults if not fault.warning]
    assert [o.verdict for o in found.outputs if o.name == "C"] == ["refuted"]


def _atomic(first: int, to: int) -> Execution:
    """Half of the threads add to elements from `first` on; as lowered to those from `to` on."""
    kernel = Kernel(threads=2 * SIZE)
    a, b = kernel.tensor("A", "int32", (SIZE,)), kernel.tensor("B", "int32", (2 * SIZE,))

    def added(at: Expr) -> Stmt:
        element = Expr("call", "handle", (load(b, at),), "address_of")
        return If(is_first, call("atomic_add_elem_op", element, load(a, kernel.tx)))

    is_first = Expr("lt", "bool", (kernel.tx, number(SIZE)))
    return execute(kernel.snapshot([added(add(kernel.tx, first))], [added(add(kernel.tx, to))]))


def test_a_negative_index_of_an_atomic_is_the_authors() -> None:
    found = _atomic(-SIZE, SIZE)
    (fault,) = [fault for fault in found.faults if not fault.warning]
    assert fault.what.startswith(f"the index of B[-{SIZE}] is out of bounds: B has the shape [{2 * SIZE}]")
    assert [(o.verdict, o.reason in fault.reasons) for o in found.outputs] == [("undecided", True)]


def test_an_atomic_that_is_counted_from_elsewhere_is_not_the_authors() -> None:
    found = _atomic(-SIZE, SIZE - 1)
    assert not [fault for fault in found.faults if not fault.warning]
    assert [o.verdict for o in found.outputs] == ["refuted"]


@pytest.mark.parametrize(("to", "found"), [(SIZE - 1, "agreed"), (SIZE - 2, "refuted")])
def test_a_negative_constant_of_an_atomic_counts_from_the_end(to: int, found: str) -> None:
    kernel = Kernel(threads=SIZE)
    a, b = kernel.tensor("A", "int32", (SIZE,)), kernel.tensor("B", "int32", (ROWS, SIZE))

    def added(*at: Index) -> Stmt:
        element = Expr("call", "handle", (load(b, *at),), "address_of")
        return call("atomic_add_elem_op", element, load(a, kernel.tx))

    outputs = execute(kernel.snapshot([added(-1, -1)], [added(LAST, to)])).outputs
    assert [o.verdict for o in outputs] == [found]


def test_an_atomic_whose_row_is_negative_in_so_few_blocks_is_not_understood() -> None:
    """Each block adds to the row before its own: the only one to the last row, if that counts from the end."""
    kernel, i = Kernel(threads=SIZE), variable("i")
    a, b, c = (
        kernel.tensor(name, "int32", shape) for name, shape in (("A", (SIZE,)), ("B", (2, SIZE)), ("C", (SIZE,)))
    )
    element = Expr("call", "handle", (load(b, add(kernel.bx, -1), i),), "access_ptr")
    added = parallel((SIZE,), (i,), call("atomic_add_elem_op", element, load(a, i)))
    source, lowered = (Store(c, (kernel.tx,), number(value)) for value in (1, 2))
    found = execute(kernel.snapshot([added, source], [lowered]))
    assert {o.name: o.verdict for o in found.outputs} == {"B": "undecided", "C": "refuted"}
