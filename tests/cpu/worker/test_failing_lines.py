"""The line that a failing pass is about."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.cpu.checking import RIGHT
from tlcheck.snapshot.ir import Evaluate, Seq
from tlcheck.snapshot.walk import statements
from tlcheck.verdicts.results import read_snapshot
from tlcheck.worker.failing_lines import line_of_buffer, line_of_operator

SOURCE = read_snapshot(RIGHT).checkpoints["source"]
CALLS = [stmt for stmt in statements(SOURCE.body) if isinstance(stmt, Evaluate)]
(GEMM,) = [stmt for stmt in CALLS if stmt.value.value == "gemm"]

PYTHON = """
  File "/site-packages/tilelang/engine/lower.py", line 238, in lower
    return lower_with_context(
  File "/site-packages/tilelang/tileop/{name}/__init__.py", line 15, in infer_layout
    return impl_class(self).infer_layout(target, thread_nums)
  File "/site-packages/tilelang/cuda/op/{name}/{name}_mma.py", line 43, in infer_layout
    mma_emitter = self._make_mma_emitter(target, thread_nums)
InternalError: Check failed: must be divisible by 16, but got 24
"""
CXX = '  File "/project/src/op/copy.cc", line 9, in Lower\n  File "/project/src/op/{name}.cc", line 1, in Lower()'


@pytest.mark.parametrize("trace", [PYTHON, CXX])
def test_the_operator_in_whose_code_a_pass_failed(trace: str) -> None:
    assert GEMM.line > 0
    assert line_of_operator(trace.format(name="gemm"), SOURCE) == GEMM.line
    assert line_of_operator(PYTHON.format(name="reduce"), SOURCE) == 0
    assert line_of_operator("ValueError: gemm", SOURCE) == 0


def test_of_two_operators_of_a_kind_none_is_named() -> None:
    other = replace(GEMM, line=GEMM.line + 1)
    twice = replace(SOURCE, body=Seq((SOURCE.body, other)))
    assert line_of_operator(CXX.format(name="gemm"), twice) == 0


def test_the_first_access_of_a_buffer_that_is_named() -> None:
    first = line_of_buffer("layout of w is not consistent", SOURCE)
    assert 0 < first <= GEMM.line
    assert line_of_buffer("no layout", SOURCE) == 0
