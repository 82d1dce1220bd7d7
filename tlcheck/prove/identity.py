"""Atomics that lowering leaves as they are: the same address, value and conditions for every thread and iteration.

This decides what no enumeration can: indices read from memory, loops whose extent only the running kernel knows.
"""

from __future__ import annotations

from collections.abc import Iterable

from tlcheck.algebra.algebra import Algebra
from tlcheck.algebra.polynomials import Poly
from tlcheck.prove.footprints import Footprint

Key = tuple[object, ...]


def identical(algebra: Algebra, intended: Footprint, actual: Footprint, bounded: bool) -> bool:
    """Whether two footprints that enumerate nothing are one as expressions, up to checks of the destination's bounds.

    A check of an index that is read from memory may be left out or added; of any other index it has to be there, unless
    `bounded`: then lanes out of bounds do not count yet.
    """
    if intended.space or actual.space or _what(intended) != _what(actual):
        return False
    meant, inside = _keys(intended.conditions), _keys(intended.inside)
    have = _keys(actual.conditions)
    required = meant | (set() if bounded else _keys(p for p in intended.inside if not _reads(algebra, p)))
    return required <= have <= meant | inside


def _what(f: Footprint) -> Key:
    leaves = tuple((leaf.root, _key(leaf.element), _key(leaf.thread)) for leaf in f.leaves)
    loops = tuple(sorted((uid, _key(start), _key(extent)) for uid, (start, extent) in f.outer.items()))
    return f.form, _key(f.target), leaves, loops, frozenset(_key(p) for p in (*f.flags, *f.needed))


def _reads(algebra: Algebra, p: Poly) -> bool:
    """Whether a polynomial depends on the content of memory."""
    atoms = [algebra.atoms[n] for m in p for n in m]
    return any(a.kind in ("load", "register") or any(_reads(algebra, q) for q in a.args) for a in atoms)


def _keys(polys: Iterable[Poly]) -> set[Key]:
    return {_key(p) for p in polys}


def _key(p: Poly) -> Key:
    return tuple(sorted(p.items()))
