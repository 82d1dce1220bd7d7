"""What a kernel does with its parameters: atomics in the spellings of all releases."""

from __future__ import annotations

import pytest

from tests.cpu.execute.test_elementwise import A, B
from tlcheck.execute.roles import roles
from tlcheck.snapshot.ir import Buffer, Evaluate, Expr, Function

ZERO = Expr("int", "int32", (), 0)


def _element(buffer: Buffer) -> Expr:
    return Expr("load", "float32", (ZERO, ZERO), None, 0, buffer)


def _address(buffer: Buffer) -> Expr:
    return Expr("call", "handle", (_element(buffer),), "address_of")


def _extern(name: str, *args: Expr) -> Expr:
    return Expr("call", "handle", (Expr("str", "handle", (), name), *args), "call_extern")


@pytest.mark.parametrize(
    "call",
    [
        _extern("AtomicMax", _element(B), _element(A)),
        _extern("AtomicAdd", _address(B), _element(A)),
        _extern("AtomicAddx2", _address(B), _address(A)),
        Expr("call", "handle", (_address(B), _element(A)), "atomic_add_elem_op"),
        Expr("call", "float32", (_address(B), _element(A)), "atomic_add_ret_elem_op"),
    ],
    ids=["extern of an element", "extern of an address", "extern of vectors", "intrinsic", "returning"],
)
def test_an_atomic_adds_to_its_first_operand(call: Expr) -> None:
    """The destination is an output that is read too; the source is an input."""
    found = roles(Function("main", (A.data, B.data), (A, B), (), Evaluate(call)))
    assert found.outputs == ("B",)
    assert not found.written


def test_an_atomic_load_writes_nothing() -> None:
    call = Expr("call", "float32", (_element(A),), "atomic_load_elem_op")
    assert roles(Function("main", (A.data,), (A,), (), Evaluate(call))).outputs == ()
