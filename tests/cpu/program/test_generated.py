"""Calls of which the generated CUDA makes something else."""

from __future__ import annotations

import pytest

from tlcheck.program.generated import lost_values
from tlcheck.snapshot.ir import Buffer, Evaluate, Expr, Store


@pytest.mark.parametrize(
    ("name", "lost"),
    [("atomic_max_elem_op", True), ("atomic_addx2_elem_op", True), ("atomic_max_ret_elem_op", False)],
)
def test_values_of_atomics_that_return_none(name: str, lost: bool) -> None:
    call = Expr("call", "int32", (), name)
    more = Expr("add", "int32", (call, Expr("int", "int32", (), 1)))
    target = Buffer("O", "int32", (), "global", Expr("var", "handle", (), "O", 1))
    assert [bool(list(lost_values(s))) for s in (Store(target, (), more), Evaluate(more))] == [lost, lost]
    assert not list(lost_values(Evaluate(call)))
