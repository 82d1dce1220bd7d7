"""`-k EXPR`."""

from __future__ import annotations

import pytest

from tlcheck.errors import UsageError
from tlcheck.lower.keyword import parse_keyword

CASE = "sparse/kernels.py::attention_FP8[heads=64]"


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("fp8", True),
        ("attention and not sparse", True),  # a folder's name does not count
        ("kernels and heads", True),
        ("not fp8", False),
        ("gemm or (attention and bf16)", False),
        ("gemm or attention", True),
        ("64 and not 32", True),
        ("kernels.py::attention_FP8[", True),
        ("(64-fp8 or attention_fp8[)", True),
        ("fp8-64", False),
    ],
)
def test_an_expression_holds_of_a_name(text: str, holds: bool) -> None:
    assert parse_keyword(text).holds(CASE) == holds


@pytest.mark.parametrize("text", ["", "a b", "a or", "f(x)", "a + b", "'a'", "a = b", "a < b", "not"])
def test_what_is_no_expression(text: str) -> None:
    with pytest.raises(UsageError, match="words with `and`, `or`, `not` and parentheses"):
        parse_keyword(text)
