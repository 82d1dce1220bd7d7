"""Atomics whose operand is out of a tensor's bounds: TileLang leaves them out, so what they come to is the author's."""

from __future__ import annotations

import pytest

from tests.cpu.execute.ops.tile.building import Kernel, add, call, load, number
from tlcheck.execute.compare.both_levels import execute
from tlcheck.execute.compare.execution import Execution
from tlcheck.snapshot.ir import Buffer, Evaluate, Expr, If, Stmt

THREADS, SIZE = 64, 40


def _atomic(operation: str, out: Buffer, kernel: Kernel, value: Expr) -> Evaluate:
    return call(f"atomic_{operation}_elem_op", Expr("call", "handle", (load(out, kernel.tx),), "address_of"), value)


def _executed(operation: str, plus: int, size: int = THREADS, below: int = SIZE) -> Execution:
    """Each thread combines an element of a tensor of 40, and a number. size: of what they change.

    below: threads that make the atomic as lowered.
    """
    kernel = Kernel(threads=THREADS)
    a, out = kernel.tensor("A", "int32", (SIZE,)), kernel.tensor("D", "int32", (size,))
    value = add(load(a, kernel.tx), plus) if plus else load(a, kernel.tx)
    written: Stmt = _atomic(operation, out, kernel, value)
    lowered = If(Expr("lt", "bool", (kernel.tx, number(below))), written)
    return execute(kernel.snapshot([written], [lowered]))


@pytest.mark.parametrize(("operation", "plus"), [("min", 0), ("add", 1)])
def test_an_atomic_that_is_left_out_there_is_the_authors(operation: str, plus: int) -> None:
    found = _executed(operation, plus)
    (fault,) = [fault for fault in found.faults if not fault.warning]
    assert (fault.problem, fault.what) == ("source-bounds", "the index of A[40] is out of bounds: A has the shape [40]")
    assert [(o.verdict, o.reason in fault.reasons) for o in found.outputs] == [("undecided", True)]


def test_a_sum_of_what_is_not_there_agrees() -> None:
    assert [o.verdict for o in _executed("add", 0).outputs] == ["agreed"]


@pytest.mark.parametrize("size", [SIZE, THREADS])
def test_an_atomic_that_is_left_out_elsewhere_is_not_the_authors(size: int) -> None:
    """In a tail that leaves both tensors nothing is combined, and what is added of elements in bounds has to be."""
    plus = int(size == SIZE)
    found = _executed("add", plus, size, below=SIZE // 2)
    assert not [fault for fault in found.faults if not fault.warning]
    assert [o.verdict for o in found.outputs] == ["refuted"]


def test_an_element_that_an_index_out_of_bounds_names_is_the_authors() -> None:
    """The terms are in bounds; the tensor that says where to add them is too short."""
    kernel = Kernel(threads=THREADS)
    a, where = kernel.tensor("A", "int32", (THREADS,)), kernel.tensor("I", "int32", (SIZE,))
    element = Expr(
        "call", "handle", (load(kernel.tensor("D", "int32", (SIZE,)), load(where, kernel.tx)),), "address_of"
    )
    written = call("atomic_add_elem_op", element, load(a, kernel.tx))
    found = execute(kernel.snapshot([written], [If(Expr("lt", "bool", (kernel.tx, number(SIZE))), written)]))
    (fault,) = [fault for fault in found.faults if not fault.warning]
    assert fault.what == "the index of I[40] is out of bounds: I has the shape [40]"
    assert [(o.verdict, o.reason in fault.reasons) for o in found.outputs] == [("undecided", True)]


@pytest.mark.parametrize(("chosen", "again"), [(False, False), (True, False), (True, True)])
def test_inputs_that_say_where_to_add_leave_what_is_read_out_of_bounds(chosen: bool, again: bool) -> None:
    """The element of A is the same one on all inputs, unless another tensor says whether it is read.

    again: an element that is in bounds is read on all inputs.
    """
    kernel = Kernel(threads=THREADS)
    a, out = kernel.tensor("A", "int32", (SIZE,)), kernel.tensor("D", "int32", (4,))
    value: Expr = load(a, kernel.tx)
    if chosen:
        other = load(kernel.tensor("C", "int32", (THREADS,)), kernel.tx)
        value = Expr("select", "int32", (Expr("lt", "bool", (number(0), other)), value, number(1)))
    value = add(value, load(a, number(0))) if again else value
    place = Expr("floormod", "int32", (value, number(4)))
    written = call("atomic_add_elem_op", Expr("call", "handle", (load(out, place),), "address_of"), number(1))
    found = execute(kernel.snapshot([written], [If(Expr("lt", "bool", (kernel.tx, number(SIZE))), written)]))
    (fault,) = [fault for fault in found.faults if not fault.warning]
    assert fault.what.endswith("is out of bounds: A has the shape [40]")
    assert bool(fault.open) == chosen
