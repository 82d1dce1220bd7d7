"""Test what kernels do with their parameters: read from snapshots of every release, and atomics in all spellings."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cpu.execute.compile.test_elementwise import A, B
from tlcheck.program.roles import independent, roles, source_roles
from tlcheck.snapshot import codec
from tlcheck.snapshot.ir import Buffer, Evaluate, Expr, Function, If, Store

FIXTURES = Path(__file__).parents[2] / "fixtures"
ERA = FIXTURES / "era"
KINDS = {  # written, updated, returning, whether floats are added
    "annotated_gemm": ((), ("B",), False, True),
    "cast_bf16": ((), ("B",), False, True),
    "explicit_x2": ((), ("B",), False, True),
    "previous_value": (("B",), ("N",), True, False),
    "shared_parallel": ((), ("B",), False, True),
}
ZERO = Expr("int", "int32", (), 0)


def cases() -> list[tuple[str, str]]:
    files = sorted(file.name for file in ERA.glob("*.json"))
    return [(name, file) for name in KINDS for file in files if file.startswith(f"{name}-")]


def _found(file: Path) -> tuple[object, ...]:
    found = source_roles(codec.loads(file.read_text()))
    names = [tuple(b.name for b in buffers) for buffers in (found.unread, found.updated)]
    return (*names, found.returning, found.float_atomics)


@pytest.mark.parametrize(("name", "file"), cases())
def test_roles_are_the_same_in_all_releases(name: str, file: str) -> None:
    assert _found(ERA / file) == KINDS[name]


@pytest.mark.parametrize("release", ["0.1.7", "0.1.15"])
def test_a_source_that_stands_first_is_not_the_destination(release: str) -> None:
    """A tile operator's: its first operand is an element that is read, its second a region that is written."""
    assert _found(FIXTURES / "edges" / f"one_element-{release}.snapshot.json") == ((), ("B",), False, True)


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
    assert found.outputs == found.updated == (B,)
    assert not found.unread


def test_an_atomic_load_writes_nothing() -> None:
    call = Expr("call", "float32", (_element(A),), "atomic_load_elem_op")
    assert roles(Function("main", (A.data,), (A,), (), Evaluate(call))).outputs == ()


@pytest.mark.parametrize(
    ("call", "read", "written"),
    [
        (Expr("call", "handle", (_address(B), _address(A), Expr("int", "int32", (), 4)), "ptx_cp_async"), A, B),
        (Expr("call", "uint32", (_address(A),), "ldg32"), A, None),
        (Expr("call", "handle", (_address(B), ZERO), "stg32"), None, B),
        (_extern("decode_i4u_to_f16", _address(A), _address(B)), A, B),
    ],
)
def test_an_instruction_says_how_it_accesses(call: Expr, read: Buffer | None, written: Buffer | None) -> None:
    """The address itself says nothing."""
    function = Function("main", (A.data, B.data), (A, B), (), Evaluate(call))
    found = roles(function)
    assert found.outputs == found.unread == (() if written is None else (written,))
    assert independent(function) == {b.data.uid for b in (A, B) if b is not read}


NEVER, ALWAYS, SOMETIMES = (Expr("int", "bool", (), 0), Expr("int", "bool", (), 1), Expr("lt", "bool", (ZERO, ZERO)))


@pytest.mark.parametrize(
    ("condition", "written"),
    [
        (SOMETIMES, (A, B)),
        (NEVER, (B,)),
        (Expr("and", "bool", (SOMETIMES, NEVER)), (B,)),
        (Expr("or", "bool", (SOMETIMES, NEVER)), (A, B)),
        (Expr("not", "bool", (Expr("or", "bool", (ALWAYS, SOMETIMES)),)), (B,)),
        (Expr("and", "bool", (ALWAYS, ALWAYS)), (A,)),
    ],
)
def test_a_branch_that_never_runs_writes_nothing(condition: Expr, written: tuple[Buffer, ...]) -> None:
    """A flag of the builder may leave out an output: `if k == last and with_state:`."""
    one = Expr("float", "float32", (), 1.0)
    branches = If(condition, Store(A, (ZERO, ZERO), one), Store(B, (ZERO, ZERO), one))
    assert roles(Function("main", (A.data, B.data), (A, B), (), branches)).outputs == written
