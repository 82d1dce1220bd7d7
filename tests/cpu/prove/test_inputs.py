from __future__ import annotations

import pytest

from tests.fixtures.index import read
from tlcheck.program.walk import walk
from tlcheck.prove.assumptions import inputs

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
