from __future__ import annotations

import pytest

from tests.cpu.prove.handmade import ADDED, THREAD, add, address, chosen, load, number, status, tensor
from tests.fixtures.index import read
from tlcheck.program.walk import walk
from tlcheck.prove.assumptions import inputs
from tlcheck.prove.subject import _calls_on
from tlcheck.snapshot.ir import Alloc, Buffer, Evaluate, Expr, Function, Seq

ZERO, USED = Expr("int", "int32", (), 0), (("A", 1), ("t", 2))
FIXTURES = {f.path: f for f in read().fixtures}


@pytest.mark.parametrize(
    ("path", "filled", "computed"),
    [
        ("mutations/scatter_guarded-0.1.15", {"A", "B", "f"}, set()),  # f is a copy of A
        ("mutations/scatter_guarded-0.1.7", {"A", "B", "f"}, set()),
        ("mutations/tile_x4-0.1.15", {"A", "B", "staged"}, set()),
        ("era/shared_parallel-0.1.15", {"A", "B", "f"}, {"s"}),  # atomics add to s
        (
            "era/annotated_gemm-0.1.7",
            {"A", "W", "B"},
            {"a", "c"},
        ),  # c is a product; a is given to a call that could write it
        ("era/annotated_gemm-0.1.15", {"A", "W", "B"}, {"a", "c"}),
        ("era/loop_ragged_pipelined-0.1.15", {"A", "B", "L"}, {"s"}),  # each step loads s from another place
    ],
)
def test_what_the_caller_fills(path: str, filled: set[str], computed: set[str]) -> None:
    program = walk(FIXTURES[path].snapshot().checkpoints["intent"])
    assert inputs(program) == filled
    assert computed <= {program.roots.of(b.data) for b in program.buffers.values()} - filled


TENSOR, TILE = (Buffer(name, "float32", (ZERO,), "global", Expr("var", "handle", (), name, uid)) for name, uid in USED)


@pytest.mark.parametrize(
    ("name", "places", "found"),
    [
        ("ptx_cp_async", (TILE, TENSOR), set()),  # reads the tensor
        ("stg32", (TENSOR,), {"stg32"}),
        ("no_such_instruction", (TENSOR,), {"no_such_instruction"}),
    ],
)
def test_only_what_may_change_a_tensor_is_said_to_reach_it(
    name: str, places: tuple[Buffer, ...], found: set[str]
) -> None:
    addresses = [Expr("call", "handle", (Expr("load", "float32", (ZERO,), buffer=b),), "address_of") for b in places]
    call = Expr("call", "handle", (*addresses, ZERO), name)
    program = walk(Function("main", (TENSOR.data, TILE.data), (TENSOR, TILE), (), Evaluate(call)))
    assert _calls_on(program, "A") == found


def test_a_tile_that_an_instruction_reads_stays_what_was_copied() -> None:
    """One that it writes does not."""
    regions = [Expr("call", "handle", (Expr("load", "float32", (ZERO,), buffer=b),), "region") for b in (TENSOR, TILE)]
    address = Expr("call", "handle", (Expr("load", "float32", (ZERO,), buffer=TILE),), "address_of")
    for name, kept in (("ldg32", True), ("stg32", False)):
        used = Evaluate(Expr("call", "handle", (address, ZERO), name))
        body = Seq((Evaluate(Expr("call", "handle", tuple(regions), "copy")), used))
        assert ("t" in inputs(walk(Function("main", (TENSOR.data,), (TENSOR,), (), body)))) == kept


ONE, FIVE = (Expr("float", "float32", value=value) for value in (1.0, 5.0))
OF_A = tensor("A", "float32", 64, 91_020)
SHARED = Buffer("s", "float32", (number(64),), "shared", Expr("var", "handle", value="s", uid=91_021))
ELEMENT = load(SHARED, THREAD)
TO_AN_ADDRESS = Expr("call", "handle", (address(ELEMENT), FIVE), "atomic_max_elem_op")
NAME = Expr("str", "handle", value="AtomicMax")
TO_AN_ELEMENT = Expr("call", "handle", (NAME, ELEMENT, FIVE), "call_extern")
UNDER_A_CONDITION = Expr(
    "call", "handle", (NAME, chosen(Expr("le", "bool", (ONE, FIVE)), ELEMENT, ELEMENT), FIVE), "call_extern"
)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ((), "different"),
        ((TO_AN_ADDRESS,), "undecided"),
        ((TO_AN_ELEMENT,), "undecided"),
        ((UNDER_A_CONDITION,), "undecided"),
    ],
)
def test_a_tile_that_an_atomic_changes_does_not_stay_what_was_copied(changes: tuple[Expr, ...], expected: str) -> None:
    """After the maximum with 5 all elements are 5 and more: a kernel that does not ask whether they are is right."""
    regions = [Expr("call", "handle", (load(b, number(0)), number(1), number(64)), "region") for b in (OF_A, SHARED)]
    before = (Alloc(SHARED), *map(Evaluate, (Expr("call", "handle", tuple(regions), "copy"), *changes)))
    asked = Seq((*before, add(load(ADDED, THREAD), ONE, Expr("le", "bool", (FIVE, ELEMENT)))))
    unasked = Seq((*before, add(load(ADDED, THREAD), ONE)))
    assert status(asked, unasked, OF_A, root="B") == expected
