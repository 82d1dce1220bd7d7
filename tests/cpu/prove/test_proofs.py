"""The upstream prover, asked where the own algebra does not normalize: unknown sizes under min and //."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tlcheck.algebra.algebra import Algebra, unread
from tlcheck.algebra.polynomial import Poly, add, constant, scale
from tlcheck.prove import proofs

N, B = 1, 2


def _algebra() -> Algebra:
    algebra = Algebra(unread)
    algebra.ranges.update({N: (1, None), B: (0, 63)})
    return algebra


def _times(algebra: Algebra, a: Poly, b: Poly) -> Poly:
    return algebra.product(a, b)


def test_proves_what_the_algebra_leaves_apart() -> None:
    algebra = _algebra()
    n, b = algebra.variable(N), algebra.variable(B)
    whole = algebra.floordiv(add(scale(n, 64), b), 64)  # b < 64: this is n
    odd = algebra.floordiv(add(_times(algebra, n, add(n, constant(1))), _times(algebra, n, add(n, constant(1)))), 2)
    assert proofs.equal(algebra, whole, n)
    assert proofs.equal(algebra, odd, _times(algebra, n, add(n, constant(1))))
    assert not proofs.equal(algebra, whole, add(n, constant(1)))


def test_a_variable_of_one_value_needs_no_prover(monkeypatch: pytest.MonkeyPatch) -> None:
    """The number of the only block, times a size that nobody knows."""
    algebra, one, two = _algebra(), 3, 4
    algebra.ranges.update({one: (0, 0), two: (2, 2)})
    n, double = algebra.variable(N), _times(algebra, algebra.variable(two), algebra.variable(N))
    monkeypatch.setattr(proofs, "_tvm", lambda: pytest.fail("it is asked"))
    assert proofs.equal(algebra, _times(algebra, n, algebra.variable(one)), {})
    assert proofs.equal(algebra, double, add(n, n))
    monkeypatch.undo()
    assert not proofs.equal(algebra, double, n)


@pytest.mark.parametrize(("factor", "divisor", "expected"), [(4, 4, True), (4, 2, True), (2, 4, False), (3, 2, False)])
def test_divisibility_of_an_unknown_pitch(factor: int, divisor: int, expected: bool) -> None:
    algebra = _algebra()
    pitch = scale(algebra.variable(N), factor)
    assert proofs.divisible(algebra, _times(algebra, pitch, algebra.variable(B)), divisor) is expected


def test_a_check_without_questions_does_not_import_it() -> None:
    code = "import sys, tlcheck.verdicts.atomic_claims; print('tvm' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
