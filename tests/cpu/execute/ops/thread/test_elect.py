"""One thread of a group of warps, also where the block's last warp is not whole."""

from __future__ import annotations

import numpy as np
import pytest

from tests.cpu.execute.ops.tile.building import Kernel, number
from tlcheck.execute.machine_options import Options
from tlcheck.execute.stops import NotModelled
from tlcheck.program.release import Release
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


@pytest.mark.parametrize(
    ("release", "threads", "extent", "expected"),
    [
        ("0.1.12", 16, 16, [0]),
        ("0.1.12", 48, 48, [0]),
        ("0.1.11", 48, 48, [0, 32]),
        ("0.1.11", 64, 64, [0]),
        ("0.1.11", 16, 16, []),
    ],
)
def test_parts_of_warps(release: str, threads: int, extent: int, expected: list[int]) -> None:
    """The device library says `(n + 31) / 32` since 0.1.12, and `n / 32` before, by which it takes a remainder."""
    kernel = Kernel(threads=threads, lowered=Options(source=False, release=Release.of(release)))
    out = kernel.tensor("B", "int32", np.zeros(threads, np.int32))
    elected = Expr("call", "bool", (number(extent),), "tl_shuffle_elect")
    found = kernel.run(If(elected, Store(out, (kernel.tx,), number(1))))["B"]
    assert np.flatnonzero(found).tolist() == expected


def test_the_author_elects_of_whole_warps() -> None:
    kernel = Kernel(threads=32)
    out = kernel.tensor("B", "int32", np.zeros(32, np.int32))
    elected = Expr("call", "bool", (number(16),), "tl_shuffle_elect")
    with pytest.raises(NotModelled, match="whole warps"):
        kernel.run(If(elected, Store(out, (kernel.tx,), number(1))))
