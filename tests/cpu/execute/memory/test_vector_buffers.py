"""Buffers whose elements are vectors, as packed reductions of 0.1.15 have them."""

from __future__ import annotations

import numpy as np
import pytest

from tests.cpu.execute.ops.tile.building import Kernel, load, number
from tlcheck.execute.compare.both_levels import execute
from tlcheck.execute.stops import Illegal
from tlcheck.snapshot.ir import Buffer, Expr, Store


def kernel() -> tuple[Kernel, Buffer, Buffer]:
    made = Kernel(threads=4)
    source = made.tensor("A", "float16", np.arange(16, dtype=np.float16))
    packed = made.tile("packed", "float16x2", [2], "local")
    return made, source, packed


def pair(source: Buffer, first: Expr) -> Expr:
    """Two neighbours of a tensor."""
    ramp = Expr("ramp", "int32x2", (first, number(1)), 2)
    return Expr("load", "float16x2", (ramp,), None, 0, source)


def lane(packed: Buffer, index: int, number_of_lane: int) -> Expr:
    return Expr("shuffle", "float16", (load(packed, index), number(number_of_lane)), 1)


def test_an_index_is_that_of_a_vector() -> None:
    made, source, packed = kernel()
    target = made.tensor("B", "float16", [4])
    at = Expr("mul", "int32", (made.tx, number(4)))
    stores = [Store(packed, (number(i),), pair(source, Expr("add", "int32", (at, number(2 * i))))) for i in (0, 1)]
    mixed = Expr("sub", "float16", (lane(packed, 1, 1), lane(packed, 0, 0)))
    left = made.run(*stores, Store(target, (made.tx,), mixed))
    assert left["B"].tolist() == [3.0] * 4


def test_its_end_is_that_of_its_vectors() -> None:
    made, source, packed = kernel()
    with pytest.raises(Illegal, match="packed out of bounds"):
        made.run(Store(packed, (number(2),), pair(source, number(0))))


def test_a_tensor_of_vectors_has_all_their_lanes() -> None:
    """B[tx] = A[tx] of pairs: all eight numbers are there."""
    made = Kernel(threads=4)
    source, target = made.tensor("A", "float16x2", [4]), made.tensor("B", "float16x2", [4])
    copied = Store(target, (made.tx,), load(source, made.tx))
    assert execute(made.snapshot([copied], [copied])).is_clean
    others = Store(target, (made.tx,), load(source, Expr("sub", "int32", (number(3), made.tx))))
    (output,) = execute(made.snapshot([copied], [others])).outputs
    assert output.verdict == "refuted"
