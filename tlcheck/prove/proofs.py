"""Describe what the own algebra cannot show, asked of upstream TVM's analyzer: never of the TVM that comes with the
compiler under test.

Its "no" means "not proved", never "refuted". The import costs a second or more, so it happens with the first question.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import prod
from typing import Any

from tlcheck.algebra.algebra import Algebra
from tlcheck.algebra.polynomial import Poly, add
from tlcheck.snapshot.operators import INTEGER_DIVISIONS, named

_BINARY = named("extremum") | INTEGER_DIVISIONS  # TVM's functions have these names


def equal(algebra: Algebra, a: Poly, b: Poly) -> bool:
    """Whether two polynomials are proved to be equal for all values of their variables."""
    # atoms that have one value only are that value: the block's number where there is one block
    poly = add(a, b, -1)
    difference: Poly = {}
    for monomial, coefficient in poly.items():
        values = {number: algebra.atoms[number].range for number in monomial}
        known = {number: low for number, (low, high) in values.items() if low is not None and low == high}
        rest = tuple(number for number in monomial if number not in known)
        difference = add(
            difference, {rest: coefficient * prod(known[number] for number in monomial if number in known)}
        )
    return not difference or _Question(algebra).holds(difference, lambda analyzer, e: analyzer.can_prove(e == 0))


def divisible(algebra: Algebra, p: Poly, divisor: int) -> bool:
    """Whether a polynomial is proved to be a multiple of a positive constant."""
    tir = _tvm()[0]
    return _Question(algebra).holds(p, lambda analyzer, e: analyzer.can_prove(tir.floormod(e, divisor) == 0))


@cache
def _tvm() -> tuple[Any, Any, Any]:
    """(tir, analyzer module, ir) of apache-tvm; 0.26 and 0.27 renamed the first two."""
    import tvm.ir

    try:
        from tvm import sym as analysis
        from tvm import tirx as tir
    except ImportError:
        from tvm import arith as analysis
        from tvm import tir
    return tir, analysis, tvm.ir


class _Question:
    """One query: the polynomial as a TVM expression, its variables bound to their ranges, unknown memory as free
    variables.
    """

    def __init__(self, algebra: Algebra) -> None:
        self.algebra = algebra
        self.tir, analysis, self.ir = _tvm()
        self.analyzer = analysis.Analyzer()
        self.variables: dict[int, Any] = {}

    def holds(self, poly: Poly, ask: Callable[[Any, Any], Any]) -> bool:
        """The answer for the polynomial."""
        return bool(ask(self.analyzer, self.expression(poly)))

    def expression(self, poly: Poly) -> Any:
        """The polynomial as a TVM expression."""
        total = self.tir.const(0, "int64")
        for monomial, coefficient in poly.items():
            term = self.tir.const(coefficient, "int64")
            for number in monomial:
                term = term * self._atom(number)
            total = total + term
        return total

    def _atom(self, number: int) -> Any:
        atom = self.algebra.atoms[number]
        args = [self.expression(p) for p in atom.args]
        if atom.kind == "//":
            return self.tir.floordiv(args[0], int(atom.detail))
        if atom.kind == "%":
            return self.tir.floormod(args[0], int(atom.detail))
        if atom.kind in _BINARY and len(args) == 2:
            return getattr(self.tir, atom.kind)(*args)
        if number not in self.variables:
            variable = self.tir.Var(f"v{number}", "int64")
            low, high = atom.range
            if low is not None and high is not None:
                self.analyzer.bind(variable, self.ir.Range(low, high + 1))
            elif low is not None:
                # the bound of a size that is known only when the kernel runs
                bound = _tvm()[1].ConstIntBound
                self.analyzer.update(variable, bound(low, bound.POS_INF))
            self.variables[number] = variable
        return self.variables[number]
