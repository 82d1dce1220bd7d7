"""Find what memory may hold: numbers that a comparison is tried with, beside the small ones that it begins with.

A condition on data that is left out or changed shows only where both of its outcomes occur. So memory holds negative
numbers too, and those that conditions compare with, each with its neighbours. Where numbers are cut to a type, it holds
larger ones that this makes the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import numpy as np

from tlcheck.algebra.algebra import Algebra, Atom
from tlcheck.algebra.evaluate import Evaluator, Mask, chunks
from tlcheck.algebra.polynomial import Poly, add
from tlcheck.prove.footprints import Footprint
from tlcheck.snapshot.dtypes import dtype_of
from tlcheck.snapshot.operators import named

Numbers = tuple[int, ...]
_SMALL = tuple(range(-30, 31))
_MOST = 15  # of contents that are one number everywhere
_DATA = frozenset(("load", "register", "call"))
_COMPARED = named("comparison")


def contents(algebra: Algebra, footprints: Sequence[Footprint]) -> list[Numbers]:
    """The numbers that memory is to hold, one content after the other; none where nothing depends on memory."""
    polys = [p for f in footprints for p in _polynomials(f) if reads(algebra, p)]
    if not polys:
        return []
    # all polynomials and atoms that these are made of, as far as they depend on memory
    parts, atoms = list(polys), list[Atom]()
    seen: set[int] = set()
    for poly in parts:  # which grows
        for number in {n for m in poly for n in m} - seen:
            seen.add(number)
            atom = algebra.atoms[number]
            if _is_data(algebra, number):
                atoms.append(atom)
                parts += [add(atom.args[0], atom.args[1], -1)] if atom.kind in _COMPARED else atom.args
    decisive = sorted({n + step for n in _decisive(algebra, parts) for step in (-1, 0, 1)})
    rare = [n for n in decisive if n not in _SMALL]
    mixed = (*_SMALL, *rare * max(1, len(_SMALL) // max(1, len(rare))))
    several = [mixed, mixed[::-1], tuple(abs(n) for n in mixed), tuple(range(algebra.opaque))]
    several += [(n,) for n in decisive[:_MOST]]
    lost = sorted({1 << dtype_of(str(a.detail)).bits for a in atoms if a.kind == "wrap"})  # of a number that is cut
    return [tuple(n + more for n in numbers) for more in (0, *lost) for numbers in several]


@contextmanager
def holding(algebra: Algebra, salt: int, numbers: Numbers) -> Iterator[None]:
    """Let memory hold these numbers. salt: tells apart contents of equal numbers."""
    algebra.salt, algebra.numbers = salt, numbers
    try:
        yield
    finally:
        algebra.salt, algebra.numbers = 0, ()


def reads(algebra: Algebra, p: Poly) -> bool:
    """Whether a polynomial depends on the content of memory."""
    return any(_is_data(algebra, n) for m in p for n in m)


def _is_data(algebra: Algebra, number: int) -> bool:
    atom = algebra.atoms[number]
    return atom.kind in _DATA or any(reads(algebra, q) for q in atom.args)


def reads_in_steps(algebra: Algebra, p: Poly) -> bool:
    """Whether a polynomial has a quotient or another function of what memory holds: few contents tell such apart."""
    return any(
        any(reads_in_steps(algebra, q) for q in atom.args) if atom.kind in _DATA else _is_data(algebra, n)
        for n, atom in ((n, algebra.atoms[n]) for m in p for n in m)
    )


def keeps_bounds(algebra: Algebra, intended: Sequence[Footprint], point: Mapping[int, int]) -> bool:
    """Whether every lane in the source that runs is in bounds: with another content the kernel's author is at fault.

    point: values of variables that are not enumerated; the others are taken as they may be lowest.
    """
    return all(_is_inside(algebra, f, point) for f in intended)


def _is_inside(algebra: Algebra, f: Footprint, point: Mapping[int, int]) -> bool:
    known = frozenset((*(d.uid for d in f.space), *point))
    checks = [p for p in (*f.inside, *f.reads, *f.perhaps) if reads(algebra, p)]
    for env in chunks(f.space) if checks else ():
        evaluate = Evaluator(algebra, {**env, **point})
        runs = _runs(algebra, evaluate, f, known)
        for check in checks:
            halves = algebra.separate(check, known)
            if halves is None:
                return False
            lowest = algebra.bounds(halves[0])[0] or 0
            if np.any(np.logical_and(runs, np.less(evaluate(halves[1]), -lowest))):
                return False
    return True


def _runs(algebra: Algebra, evaluate: Evaluator, f: Footprint, known: frozenset[int]) -> Mask:
    """Return which lanes run, as far as that is known."""
    runs: Mask = np.ones((), dtype=np.bool_)
    for poly in f.conditions:
        if algebra.variables(poly) <= known:
            runs = np.logical_and(runs, np.greater_equal(evaluate(poly), 0))
    for flag in f.flags:
        if algebra.variables(flag) <= known:
            runs = np.logical_and(runs, np.not_equal(evaluate(flag), 0))
    return runs


def _polynomials(f: Footprint) -> list[Poly]:
    loops = [p for bounds in f.outer.values() for p in bounds]
    elements = [p for leaf in f.leaves for p in (leaf.element, *leaf.when)]
    return [f.target, *f.conditions, *f.inside, *f.reads, *f.flags, *f.needed, *elements, *loops]


def _decisive(algebra: Algebra, polys: Sequence[Poly]) -> set[int]:
    """The numbers at which conditions on one element of memory turn."""
    found: set[int] = set()
    for poly in polys:
        read = [(m, c) for m, c in poly.items() if reads(algebra, {m: 1})]
        if len(read) == 1:
            found.add(-poly.get((), 0) // read[0][1])
    return found
