"""An access that the lowered kernel does not guard, and who leads it out of its tensor."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tests.cpu.execute.ops.tile.building import Kernel, add, load, variable
from tlcheck.execute.compare.both_levels import execute
from tlcheck.execute.compare.execution import Execution
from tlcheck.execute.request import Request
from tlcheck.snapshot.ir import Expr, For, Store


def executed(kernel: Kernel, length: Expr, index: int) -> Execution:
    """B[0] = A[p + index] for p below a length, in both; TileLang guards what stands in the source."""
    a, b = kernel.tensor("A", "int32", np.arange(64)), kernel.tensor("B", "int32", [64])
    p = variable("p")
    store = replace(Store(b, (p,), load(a, add(p, index))), line=7)
    body = For(p, Expr("int", "int32", (), 0), length, "serial", store)
    return execute(kernel.snapshot([body], [body]), Request(seeds=(0,)))


def test_drawn_inputs_that_lead_out_of_a_tensor_accuse_nobody() -> None:
    """A length that goes beyond the table that it counts, as tlcheck drew it."""
    kernel = Kernel()
    found = executed(kernel, add(load(kernel.tensor("L", "int32", np.ones(1)), 0), 8), 60)
    assert found.illegal is None
    (fault,) = found.faults
    assert (fault.problem, fault.buffer, fault.index) == ("source-bounds", "A", (64,))
    assert "declare `inputs`" in fault.open
    assert "out of bounds: A has the shape [64]" in found.outputs[0].reason


def test_an_index_that_is_out_of_bounds_on_all_inputs_needs_its_guard() -> None:
    found = executed(Kernel(), Expr("int", "int32", (), 8), 60)
    assert found.illegal is not None
    assert found.illegal.buffer == "A"
