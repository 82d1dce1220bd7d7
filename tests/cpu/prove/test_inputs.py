from __future__ import annotations

import pytest

from tests.fixtures.index import read
from tlcheck.program.walk import walk
from tlcheck.prove.assumptions import inputs
from tlcheck.prove.subject import _calls_on
from tlcheck.snapshot.ir import Buffer, Evaluate, Expr, Function, Seq

ZERO, USED = Expr("int", "int32", (), 0), (("A", 1), ("t", 2))
FIXTURES = {f.path: f for f in read().fixtures}


@pytest.mark.parametrize(
    ("path", "filled", "computed"),
    [
        ("mutations/scatter_guarded-0.1.15", {"A", "B", "f"}, set()),  # f is a copy of A
        ("mutations/scatter_guarded-0.1.7", {"A", "B", "f"}, set()),
        ("mutations/tile_x4-0.1.15", {"A", "B", "staged"}, set()),
        ("era/shared_parallel-0.1.15", {"A", "B", "f", "s"}, set()),
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
