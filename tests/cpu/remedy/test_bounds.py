"""Indices and regions that leave a buffer are found in a kernel's source."""

from __future__ import annotations

import ast

import pytest

from tlcheck.remedy.python_bounds import leaving
from tlcheck.remedy.python_buffers import ambiguous, without_output

KERNEL = """
def main(A: T.Tensor((4, 8), "float32"), B: T.Tensor((8,), "float32")):
    with T.Kernel(2, threads=8) as bx:
        s = T.alloc_shared((2, 8), "float32")
        for k in T.Pipelined(2, num_stages=2):
            {}
"""


@pytest.mark.parametrize(
    ("statement", "left"),
    [
        ("T.copy(A[k * 2, 0], s)", set()),
        ("T.copy(A[k * 3, 0], s)", {"A"}),  # rows 3 and 4
        ("T.copy(A[0:2, k:9], s)", {"A"}),
        ("T.copy(A[k:4, 0:8], s)", set()),
        ("T.copy(s, B)", set()),  # a row of it
        ("T.copy(A, s)", {"s"}),
        ("T.copy(A[bx : bx + 1, 0:8], s)", set()),
        ("T.copy(A[bx:bx, 0:8], s)", {"A"}),  # no row
        ("T.copy(A[k + 2 : 2, 0:8], s)", {"A"}),  # no row
        ("T.copy(A[row, 0], s)", set()),  # nobody knows
        ("f = T.alloc_local((1,), 'int32'); f[0] = k * 2; row = f[0]; T.copy(A[row, 0], s)", set()),
        ("f = T.alloc_local((1,), 'int32'); f[0] = k * 3; row = f[0]; T.copy(A[row, 0], s)", {"A"}),
        ("f = T.alloc_local((1,), 'int32'); f[0] = k * 3; T.copy(B[0], f); T.copy(A[f[0], 0], s)", set()),
        ("B[bx + 7] = s[0, 0]", {"B"}),
        ("B[bx * 4 + k] = s[k, 7 - k]", set()),
        ("B[k - 1] = s[k // 2, (k + 9) % 8]", {"B"}),
        ("s[2, 0] = B[0]", {"s"}),
        ("for i in T.serial(1, 9): s[0, i] = B[i // 2]", {"s"}),
        ("for i, j in T.Parallel(2, 8): s[i, j] = B[j]", set()),
        ("tx = T.get_thread_binding(); s[0, tx] = B[tx]", set()),
        ("tx = T.get_thread_binding(); s[0, tx] = B[tx + 1]", {"B"}),
    ],
)
def test_what_leaves_a_buffer(statement: str, left: set[str]) -> None:
    assert leaving(ast.parse(KERNEL.format(statement))) == left


@pytest.mark.parametrize(
    ("statement", "found"),
    [
        ("for i, j in T.Parallel(2, 8): B[i] = s[i, j]", {"B"}),
        ("for i, j in T.Parallel(2, 8): s[i, j] = B[j]", set()),
        ("for i, j in T.Parallel(2, 8): B[i] = s[i, 0]", set()),
        ("for i, j in T.Parallel(2, 8): B[i * 2 + j // 4] = s[i, j]", set()),
        ("for j in T.serial(8): B[0] = s[0, j]", set()),
    ],
)
def test_an_element_that_a_parallel_loop_sets_to_several_values(statement: str, found: set[str]) -> None:
    assert ambiguous(ast.parse(KERNEL.format(statement))) == found


@pytest.mark.parametrize(
    ("statement", "missing"),
    [("T.copy(s, A[0, 0])", False), ("s[0, 0] = B[0]", True), ("T.atomic_add(B[0], 1.0)", False), ("f(B)", False)],
)
def test_a_kernel_has_an_output(statement: str, missing: bool) -> None:
    assert bool(without_output(ast.parse(KERNEL.format(statement)))) == missing
