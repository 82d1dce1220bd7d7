"""Kernels of sm_100 and sm_120 without tensor memory: executed to the end, and with one thing changed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.cpu.mutations.tools import binary, called, integer, with_argument, with_statement
from tests.fixtures.index import FOLDER
from tlcheck.execute.compare.both_levels import execute
from tlcheck.execute.compare.execution import Execution
from tlcheck.execute.request import Request
from tlcheck.snapshot import codec
from tlcheck.snapshot.ir import Expr, Snapshot
from tlcheck.snapshot.walk import statements

Change = Callable[[Expr], Expr]


def fixture(name: str) -> Snapshot:
    return codec.loads((FOLDER / "blackwell" / f"{name}-0.1.15.snapshot.json").read_text(encoding="utf-8"))


def changed(kernel: str, name: str, at: int, change: Change) -> Execution:
    """The kernel with an argument of the first call of a name changed, executed."""
    snapshot = fixture(kernel)
    lowered = snapshot.checkpoints["device-tir"]
    first = next(stmt for stmt in statements(lowered.body) if called(stmt) == name)
    now = with_statement(lowered, first, lambda stmt: with_argument(stmt, at, change))
    return execute(replace(snapshot, checkpoints={**snapshot.checkpoints, "device-tir": now}), Request())


def more(by: int) -> Change:
    return lambda e: binary("add", e, integer(by))


@pytest.mark.parametrize(("kernel", "output"), [("rows", "B"), ("narrow", "C")])
def test_a_kernel_is_executed_to_the_end(kernel: str, output: str) -> None:
    found = execute(fixture(kernel), Request())
    assert {outcome.name: outcome.verdict for outcome in found.outputs} == {output: "agreed"}
    assert not found.races


@pytest.mark.parametrize(
    ("kernel", "name", "at", "change"),
    [
        ("rows", "tma_load_gather4", 3, more(-32)),  # the column
        ("rows", "tma_load_gather4", 5, more(1)),  # a row
        ("rows", "tma_store_scatter4", 4, more(-1)),
        ("narrow", "ptx_mma_block_scale", 18, lambda e: integer(0)),  # which threads have the factors of A
        ("narrow", "ptx_mma_block_scale", 20, lambda e: integer(0)),
        ("narrow", "ptx_mma_block_scale", 15, lambda e: _second(e)),
    ],
)
def test_another_argument_is_noticed(kernel: str, name: str, at: int, change: Change) -> None:
    found = changed(kernel, name, at, change)
    assert "refuted" in {outcome.verdict for outcome in found.outputs} or found.illegal is not None


def _second(address: Expr) -> Expr:
    """The address of the second element of a buffer."""
    (element,) = address.args
    return replace(address, args=(replace(element, args=(integer(1),)),))
