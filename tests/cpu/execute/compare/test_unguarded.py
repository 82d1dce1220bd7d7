"""Accesses beyond a tensor in a kernel whose author has turned TileLang's guards off."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.cpu.execute.ops.tile.building import Kernel, add, call, load, number, region
from tlcheck.execute.compare.both_levels import execute
from tlcheck.execute.compare.faults import BOUNDS
from tlcheck.execute.request import Request
from tlcheck.snapshot.ir import Expr, Snapshot, Store

NO_GUARDS = {"tl.disable_safe_memory_legalize": "True"}
OWN = {0: {"A": np.ones(12), "B": np.zeros(16)}}


def _snapshot(pass_configs: dict[str, str]) -> Snapshot:
    """16 threads copy 12 elements: in the source the others read 0, as lowered nothing keeps them out."""
    kernel = Kernel(threads=16)
    a, b = kernel.tensor("A", "float32", (12,)), kernel.tensor("B", "float32", (16,))
    copy = Store(b, (kernel.tx,), load(a, kernel.tx))
    return replace(kernel.snapshot((copy,), (copy,)), pass_configs=pass_configs)


@pytest.mark.parametrize("given", [OWN, None])
def test_an_exit_without_guards_is_the_authors(given: dict[int, dict[str, np.ndarray]] | None) -> None:
    found = execute(_snapshot(NO_GUARDS), Request(seeds=(0,), given=given))
    assert found.illegal is None
    (fault,) = found.faults
    assert (fault.problem, fault.buffer, fault.index, fault.open) == (BOUNDS, "A", (12,), "")


def test_with_guards_it_is_tilelangs() -> None:
    found = execute(_snapshot({}), Request(seeds=(0,), given=OWN))
    assert found.illegal is not None
    assert found.faults == ()


def _adding(tile: bool) -> Snapshot:
    """Atomics add to the rows of B from the second on; B has as many as there is to add."""
    kernel = Kernel(threads=32)
    a, b = kernel.tensor("A", "float32", (8, 4)), kernel.tensor("B", "float32", (8, 4))
    row, column = (Expr(op, "int32", (kernel.tx, number(4))) for op in ("floordiv", "floormod"))
    element = Expr("call", "handle", (load(b, add(row, 1), column),), "address_of")
    added = call("atomic_add_elem_op", element, load(a, row, column))
    written = call("atomicadd", region(a), region(b, [1, 0], [8, 4])) if tile else added
    return replace(kernel.snapshot((written,), (added,)), pass_configs=NO_GUARDS)


@pytest.mark.parametrize("tile", [False, True])
def test_an_atomic_that_leaves_a_tensor_without_guards_is_the_authors(tile: bool) -> None:
    found = execute(_adding(tile), Request(seeds=(0,)))
    assert found.illegal is None
    (fault,) = found.faults
    assert (fault.problem, fault.buffer, fault.index, fault.open) == (BOUNDS, "B", (8, 0), "")
    assert fault.what == "the index of B[8, 0] is out of bounds: B has the shape [8, 4]"
