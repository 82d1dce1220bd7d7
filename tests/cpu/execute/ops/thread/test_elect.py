"""One thread of a group of warps, also where the block's last warp is not whole."""

from __future__ import annotations

import numpy as np
import pytest

from tests.cpu.execute.ops.tile.building import Kernel, number
from tlcheck.snapshot.ir import Expr, If, Store


@pytest.mark.parametrize(
    ("threads", "extent", "expected"), [(135, 0, [0]), (135, 32, [0, 32, 64, 96, 128]), (8, 0, [0]), (64, 64, [0])]
)
def test_one_thread_of_each_group_is_elected(threads: int, extent: int, expected: list[int]) -> None:
    kernel = Kernel(threads=threads)
    out = kernel.tensor("B", "int32", np.zeros(threads, np.int32))
    elected = Expr("call", "bool", (number(extent),), "tl_shuffle_elect")
    found = kernel.run(If(elected, Store(out, (kernel.tx,), number(1))))["B"]
    assert np.flatnonzero(found).tolist() == expected
