"""Polynomials with integer coefficients: numbers of atoms, which `algebra` gives, and how they are added and scaled."""

from __future__ import annotations

Monomial = tuple[int, ...]  # sorted atom numbers; () is the constant term
Poly = dict[Monomial, int]  # with integer coefficients


def constant(value: int) -> Poly:
    """A polynomial without variables."""
    return {(): value} if value else {}


def as_constant(p: Poly) -> int | None:
    """The value of a polynomial without variables, else None."""
    if not p:
        return 0
    return p.get(()) if len(p) == 1 else None


def add(a: Poly, b: Poly, factor: int = 1) -> Poly:
    """a + factor * b."""
    out = dict(a)
    for m, c in b.items():
        total = out.get(m, 0) + factor * c
        if total:
            out[m] = total
        else:
            out.pop(m, None)
    return out


def key(p: Poly) -> tuple[tuple[Monomial, int], ...]:
    """Equal for equal polynomials, and hashable."""
    return tuple(sorted(p.items()))


def scale(p: Poly, factor: int) -> Poly:
    """factor * p."""
    return {m: c * factor for m, c in p.items()} if factor else {}


def split_multiples(p: Poly, c: int) -> tuple[Poly, Poly]:
    """(q, r) with p = c*q + r, the constant of r in [0, c)."""
    whole: Poly = {}
    rest: Poly = {}
    for m, v in p.items():
        q, r = divmod(v, c) if not m or v % c == 0 else (0, v)
        if q:
            whole[m] = q
        if r:
            rest[m] = r
    return whole, rest
