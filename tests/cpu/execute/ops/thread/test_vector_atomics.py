"""A vector atomic as written that begins in bounds and ends outside is the author's fault: nothing is judged."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cpu.execute.ops.tile.building import Kernel, load, multiply, number
from tlcheck.execute.compare.both_levels import execute
from tlcheck.snapshot import codec
from tlcheck.snapshot.ir import Evaluate, Expr, Stmt, Store

RULES = Path(__file__).parents[4] / "fixtures" / "rules"


def test_a_vector_that_ends_outside() -> None:
    """B has 510 elements, and the last thread adds to elements 508 to 511."""
    (output,) = execute(codec.loads((RULES / "TLA007-bad.snapshot.json").read_text())).outputs
    assert output.verdict == "undecided"
    assert "access of B out of bounds" in output.reason


def test_vectors_that_end_inside() -> None:
    (output,) = execute(codec.loads((RULES / "TLA007-good.snapshot.json").read_text())).outputs
    assert output.verdict == "agreed"


@pytest.mark.parametrize(("size", "verdict"), [(63, "undecided"), (64, "agreed")])
def test_a_vector_by_pointer_that_is_read_outside(size: int, verdict: str) -> None:
    """The last of 16 threads adds A[60:64] to B: an A of 63 elements ends before."""
    kernel = Kernel(threads=16)
    tensors = kernel.tensor("B", "float32", (64,)), kernel.tensor("A", "float32", (size,))
    ends = [Expr("call", "handle", (load(tensor, multiply(kernel.tx, 4)),), "address_of") for tensor in tensors]
    added = Evaluate(Expr("call", "float4", tuple(ends), "atomic_addx4_elem_op"))
    found = execute(kernel.snapshot([added], [added]))
    (output,) = [out for out in found.outputs if out.name == "B"]
    assert output.verdict == verdict
    assert ["access of A out of bounds" in fault.what for fault in found.faults] == [True] * (size < 64)


def test_a_vector_that_nobody_takes_has_cuda_s_type() -> None:
    """T.atomic_addx4 up to 0.1.12 is a float4, as CUDA calls four floats, and not one of four bits."""
    kernel = Kernel(threads=16)
    a, b = (kernel.tensor(name, "float32", (64,)) for name in "AB")
    first = multiply(kernel.tx, 4)
    ends = [Expr("call", "handle", (load(tensor, first),), "address_of") for tensor in (b, a)]
    added = Evaluate(Expr("call", "float4", tuple(ends), "atomic_addx4_elem_op"))
    (output,) = [out for out in execute(kernel.snapshot([added], [added])).outputs if out.name == "B"]
    assert (output.verdict, output.reason) == ("agreed", "")


@pytest.mark.parametrize(
    ("operation", "combined"), [("or", "bitwise_or"), ("and", "bitwise_and"), ("xor", "bitwise_xor")]
)
@pytest.mark.parametrize("other", [False, True])
def test_bits_are_combined(operation: str, combined: str, other: bool) -> None:
    """The source combines by a store, the lowered kernel by an atomic: of the same operation, or of another one."""
    kernel = Kernel(threads=16)
    a, b = (kernel.tensor(name, "int32", (16,)) for name in "AB")
    mine, given = load(b, kernel.tx), load(a, kernel.tx)
    written = Store(b, (kernel.tx,), Expr("call", "int32", (mine, given), combined))
    name = f"atomic_{'xor' if other and operation != 'xor' else 'or' if other else operation}_elem_op"
    place = Expr("call", "handle", (mine,), "address_of")
    added = Evaluate(Expr("call", "int32", (place, given), name))
    (output,) = [out for out in execute(kernel.snapshot([written], [added])).outputs if out.name == "B"]
    assert output.verdict == ("refuted" if other else "agreed")


@pytest.mark.parametrize("lanes", [4, 2])
def test_equal_lanes_call_an_atomic_each_for_itself(lanes: int) -> None:
    """CUDA prints `make_int4(AtomicAddRet(..), AtomicAddRet(..), ..)`: as many additions as lanes."""
    kernel = Kernel(threads=8)
    count, before = kernel.tensor("N", "int32", (8,)), kernel.tensor("P", "int32", (32,))
    place = Expr("call", "handle", (load(count, kernel.tx),), "access_ptr")
    call = Expr("call", "int32", (place, number(1)), "atomic_add_ret_elem_op")
    first = multiply(kernel.tx, 4)
    written = [Store(before, (Expr("add", "int32", (first, number(lane))),), call) for lane in range(4)]
    steps = [Expr("add", "int32", (first, number(start))) for start in range(0, 4, lanes)]
    ramps = [Expr("ramp", f"int32x{lanes}", (step, number(1)), lanes) for step in steps]
    equal = Expr("broadcast", f"int32x{lanes}", (call,), lanes)
    lowered: list[Stmt] = [Store(before, (ramp,), equal) for ramp in ramps]
    assert [out.verdict for out in execute(kernel.snapshot(written, lowered)).outputs] == ["agreed", "agreed"]
    fewer = execute(kernel.snapshot(written, lowered[1:])).outputs
    assert "refuted" in [out.verdict for out in fewer]


@pytest.mark.parametrize(("dtype", "expected"), [("uint8", "agreed"), ("int32", "refuted")])
def test_a_difference_of_bytes_wraps_where_the_element_is_a_byte(dtype: str, expected: str) -> None:
    """C++ subtracts in int, and the device library casts the result to the element's type: -1 becomes 255."""
    kernel = Kernel(threads=16)
    a, b, most = kernel.tensor("A", "uint8", (16,)), kernel.tensor("B", "uint8", (16,)), kernel.tensor("M", dtype, (1,))
    lower = Expr("sub", "uint8", (load(a, kernel.tx), load(b, kernel.tx)))
    value = lower if dtype == "uint8" else Expr("cast", dtype, (lower,))
    place = Expr("call", "handle", (load(most, 0),), "address_of")
    combined = Evaluate(Expr("call", dtype, (place, value), "atomic_max_elem_op"))
    (output,) = [out for out in execute(kernel.snapshot([combined], [combined])).outputs if out.name == "M"]
    assert output.verdict == expected
