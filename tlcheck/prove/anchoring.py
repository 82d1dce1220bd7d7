"""Shared buffers that a late pass has placed in one allocation, at offsets that only the pass knows.

Their addresses are compared up to a constant: the lowest element read (or written) is taken to be the lowest intended
one. This can show that two footprints are the same; that they differ it cannot, so nothing is refuted by it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tlcheck.algebra.algebra import Algebra
from tlcheck.algebra.evaluate import Evaluator, chunks
from tlcheck.algebra.polynomials import Poly, add, constant
from tlcheck.prove.footprints import THREADS, Footprint, Leaf, Memory


def floating(footprint: Footprint, memory: Memory) -> bool:
    """Whether a footprint reads or writes shared memory that the kernel does not declare."""
    return (
        _undeclared(footprint, memory) or any(_floats(leaf, memory) for leaf in footprint.leaves) or footprint.anchored
    )


def anchored(algebra: Algebra, footprint: Footprint, intended: Footprint, memory: Memory) -> Footprint:
    """The footprint with its addresses in undeclared shared memory moved onto the intended ones."""
    if not floating(footprint, memory) or len(footprint.leaves) != len(intended.leaves):
        return footprint
    leaves = []
    for leaf, meant in zip(footprint.leaves, intended.leaves, strict=True):
        if _floats(leaf, memory) and meant.scope.startswith("shared"):
            element = _moved(algebra, leaf.element, footprint, meant.element, intended)
            leaf = replace(leaf, root=meant.root, element=element)
        leaves.append(leaf)
    target = footprint.target
    if _undeclared(footprint, memory):
        target = _moved(algebra, target, footprint, intended.target, intended)
    return replace(footprint, target=target, leaves=tuple(leaves), anchored=True)


def _undeclared(footprint: Footprint, memory: Memory) -> bool:
    target = footprint.site.target
    shared = target.buffer.scope.startswith("shared")
    return shared and target.root not in memory.declared


def _floats(leaf: Leaf, memory: Memory) -> bool:
    return leaf.scope.startswith("shared") and leaf.root not in memory.declared


def _moved(algebra: Algebra, poly: Poly, footprint: Footprint, meant: Poly, intended: Footprint) -> Poly:
    here, there = _lowest(algebra, poly, footprint), _lowest(algebra, meant, intended)
    return poly if here is None or there is None else add(poly, constant(there - here))


def _lowest(algebra: Algebra, poly: Poly, footprint: Footprint) -> int | None:
    halves = algebra.separate(poly, frozenset(d.uid for d in footprint.space) | THREADS)
    if halves is None:
        return None
    return min((int(np.min(Evaluator(algebra, env)(halves[1]))) for env in chunks(footprint.space)), default=None)
