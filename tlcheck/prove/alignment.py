"""Whether every vector instruction of a footprint starts where the device can do it."""

from __future__ import annotations

import numpy as np

from tlcheck.algebra.algebra import Algebra
from tlcheck.algebra.evaluate import Dimension, Evaluator, chunks, size
from tlcheck.algebra.polynomial import Poly, add, as_constant
from tlcheck.program.atomics import Pointer
from tlcheck.program.tma import LANE
from tlcheck.prove.contents import reads
from tlcheck.prove.fingerprints import UndecidedError
from tlcheck.prove.footprints import THREADS, Footprint
from tlcheck.reasons import ALIGNMENT
from tlcheck.snapshot.dtypes import dtype_of

MAX_OUTER = 1 << 20


def aligned(algebra: Algebra, footprint: Footprint) -> bool:
    """Whether lane 0 of each instruction has the alignment that it needs. Raises UndecidedError."""
    if footprint.site.tma:
        # a box of TMA has to begin at one of the 16-byte units of a row
        unit = 16 * 8 // dtype_of(footprint.site.target.dtype).bits
        if _multiple(algebra, footprint, footprint.start, unit):
            return True
        raise UndecidedError(
            "the box of its bulk reduction does not begin at a multiple of 16 bytes, where an H100 stops", ALIGNMENT
        )
    if footprint.site.width == 1:
        return True
    destination, source = footprint.site.aligned
    heads = [(footprint.target, destination)]
    if loads_vector(footprint):
        heads.append((footprint.leaves[0].element, source))
    lane = algebra.variable(LANE)
    return all(_multiple(algebra, footprint, add(address, lane, -1), width) for address, width in heads)


def loads_vector(footprint: Footprint) -> bool:
    """whether the instruction is given a pointer to its values, which it reads as one vector: registers have no
    address.
    """
    leaves = footprint.leaves
    pointed = isinstance(footprint.site.value, Pointer) and footprint.site.width > 1 and len(leaves) == 1
    return pointed and leaves[0].table is None and not leaves[0].scope.startswith("local")


def _multiple(algebra: Algebra, footprint: Footprint, head: Poly, width: int) -> bool:
    """Whether where lane 0 is, is a multiple of `width` in all instances. Raises UndecidedError."""
    what = "the alignment of its " + ("bulk reduction" if footprint.site.tma else "vector instruction")
    rest = algebra.floormod(head, width)
    if as_constant(rest) is not None:
        return as_constant(rest) == 0
    inner = frozenset(d.uid for d in footprint.space) | THREADS
    halves = algebra.separate(rest, inner)
    if halves is None:
        halves = algebra.separate(head, inner)
    if halves is None:
        raise UndecidedError(f"{what} is not proved", ALIGNMENT)
    residues = _residues(algebra, halves[0], width, what)
    holds = all(_holds(algebra, footprint, halves[1], width, r) for r in residues)
    if not holds and reads(algebra, rest):
        raise UndecidedError(f"{what} depends on what memory holds", ALIGNMENT)
    return holds


def _residues(algebra: Algebra, outside: Poly, width: int, what: str) -> set[int]:
    rest = algebra.floormod(outside, width)
    known = as_constant(rest)
    if known is not None:
        return {known % width}
    space: list[Dimension] = []
    for uid in sorted(algebra.variables(rest)):
        low, high = algebra.ranges.get(uid, (None, None))
        if low is None or high is None:
            # the prover may show it of an outer half of unknown size
            from tlcheck.prove import proofs

            if proofs.divisible(algebra, rest, width):
                return {0}
            raise UndecidedError(f"{what} depends on a size known only when the kernel runs", ALIGNMENT)
        space.append(Dimension(uid, low, high - low + 1))
    if size(space) > MAX_OUTER:
        raise UndecidedError(f"{what} is not proved", ALIGNMENT)
    found: set[int] = set()
    for env in chunks(space):
        found.update(int(x) for x in np.unique(np.asarray(Evaluator(algebra, env)(rest)) % width))
    return found


def _holds(algebra: Algebra, footprint: Footprint, inside: Poly, width: int, residue: int) -> bool:
    """Whether (inside + residue) is a multiple of width for every lane; lanes that no condition rules out count."""
    for env in chunks(footprint.space):
        evaluate = Evaluator(algebra, env)
        if np.any(np.asarray(evaluate(inside) + residue) % width != 0):
            return False
    return True
