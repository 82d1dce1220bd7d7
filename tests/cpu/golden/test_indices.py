"""Simpler forms of indices: equal to what they stand for, at any values."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis.strategies import randoms

from tlcheck.golden.indices import simpler


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("a[k % 2 % 2 * 4096 + 0]", "a[k % 2 * 4096]"),
        ("a[(k * 4 + tx % 4) // 4, (k * 4 + tx % 4) % 4]", "a[k, tx % 4]"),
        ("T.copy(A[k % 4 % 2:k % 4 % 2 + 8], b[i // 1])", "T.copy(A[k % 2:k % 2 + 8], b[i])"),
        ("a[tx % 8 % 32 + i - i]", "a[tx % 8]"),
        ("a[b[k % 2 % 2] % 4]", "a[b[k % 2] % 4]"),
        ("a[(x + 6) % 4 + (3 * 5 - 1) // 4]", "a[(x + 2) % 4 + 3]"),
        ('if x % 2 % 2 == 0: "[" % 2', 'if x % 2 % 2 == 0: "[" % 2'),
        ("a[x % 8 % 6 % 2]", "a[x % 2]"),
        ("a[(x - y) * 5 % 4 % 2]", "a[(x + y) % 2]"),
        ("a[x * 2 + y]", "a[x * 2 + y]"),
        ("a[x % y % y // 2]", "a[x % y % y // 2]"),
    ],
)
def test_forms(line: str, expected: str) -> None:
    assert simpler(line) == expected


@given(randoms(use_true_random=False))
def test_a_simpler_form_has_the_same_values_and_none_simpler(rng: random.Random) -> None:
    text = f"[{_expression(rng, 4)}]"
    found = simpler(text)
    assert simpler(found) == found
    for _ in range(20):
        values = {name: rng.randint(-40, 40) for name in "xyz"}
        assert eval(found, values) == eval(text, values), (text, found, values)


def _expression(rng: random.Random, depth: int) -> str:
    if not depth or rng.random() < 0.1:
        return rng.choice(["x", "y", "z", str(rng.randint(0, 9))])
    left = f"({_expression(rng, depth - 1)})"
    operator = rng.choice(["+", "-", "*", "%", "//"])
    if operator in ("%", "//"):
        return f"{left} {operator} {rng.choice([1, 2, 3, 4, 6, 8])}"
    return f"{left} {operator} ({_expression(rng, depth - 1)})"
