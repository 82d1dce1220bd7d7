"""Do two sets of footprints add the same elements? For all blocks and outer iterations, or not proved.

Each polynomial separates into a part of the blocks and outer loops and a part of the threads, lanes and inner loops.
The outer parts have to be equal as polynomials; the inner parts are enumerated once and compared as multisets of
(destination, elements read). Conditions that mix both (tails) split the outer points into classes, one enumeration
each. Atomics that lowering leaves as they are, whose indices may be read from memory, are `identical` as expressions.

Shared buffers that a late pass has placed in one allocation lie at offsets that only the pass knows. Their addresses
are compared up to a constant (`anchored`): the lowest element is taken to be the lowest intended one. This can show
that two footprints are the same; that they differ it cannot, so nothing is refuted by it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, product

import numpy as np
import numpy.typing as npt

from tlcheck.algebra.algebra import Algebra
from tlcheck.algebra.evaluate import Dimension, Evaluator, Words, chunks, mix, size
from tlcheck.algebra.polynomial import Poly, add, constant, key
from tlcheck.prove.contents import reads, reads_in_steps
from tlcheck.prove.fingerprints import Factors, Part, Sum, UndecidedError, shape_of, weigh
from tlcheck.prove.footprints import BLOCKS, THREADS, Footprint, Leaf, Memory
from tlcheck.prove.gates import MAX_OUTER, Gates, known_space, runs
from tlcheck.prove.known_fingerprints import KnownSums
from tlcheck.reasons import ENUMERATION

BUDGET = 250_000_000  # lanes that one comparison may enumerate


def same(
    algebra: Algebra,
    intended: Sequence[Footprint],
    actual: Sequence[Footprint],
    bounded: bool,
    known: KnownSums | None = None,
) -> bool:
    """Whether both sides add the same elements, once each, in every instance. `bounded`: only lanes in bounds count
    on the
    actual side too (guards are added later). Raises UndecidedError where the addresses do not separate."""
    known = KnownSums() if known is None else known
    outer = _Outer(algebra, known, all(f.site.is_idempotent for f in (*intended, *actual)))
    left = [outer.part(f, bounded=True) for f in intended]
    right = [outer.part(f, bounded=bounded) for f in actual]
    if not outer.alike([*left, *right]):
        # Sites that differ by block or iteration (a peeled or shifted loop): the bases of all of these are compared as
        # multisets. Contents that are tried tell sums of what memory holds apart, but not its quotients.
        if any(reads_in_steps(outer.algebra, base) for part in (*left, *right) for base in part.outside):
            raise UndecidedError("the addresses of its sites differ, and are quotients of what memory holds")
        if any(reads(outer.algebra, gate) for gate in outer.gates.outside):
            raise UndecidedError("the addresses of its sites differ, and memory says which of them run")
        return outer.bases_of(left) == outer.bases_of(right)
    lanes = sum(size(p.space) for p in (*left, *right))
    classes = outer.gates.classes([p.gates for p in (*left, *right)], left[0].footprint.outer)
    if len(classes) * lanes > BUDGET:
        raise UndecidedError(f"too large to enumerate ({len(classes)} classes of {lanes} lanes)", ENUMERATION)
    return known.of(algebra, left, classes) == known.of(algebra, right, classes)


class _Outer:
    """The outer halves of all footprints: their bases must be one, their conditions are numbered."""

    def __init__(self, algebra: Algebra, known: KnownSums, once: bool) -> None:
        self.algebra = algebra
        self.known = known
        self.once = once
        self.gates = Gates(algebra)

    def part(self, footprint: Footprint, bounded: bool) -> Part:
        inner = _inner(footprint)
        base, target = self._factor(footprint.target, inner, "destination")
        bases = [base]
        leaves: list[tuple[Poly, Factors]] = []
        for leaf in footprint.leaves:
            outside, element = self._factor(leaf.element, inner, "source")
            if leaf.table is not None and (outside or len(element) > 1):
                raise UndecidedError("the register that its value is read from depends on the block or iteration")
            bases.append(outside)
            leaves.append((leaf.thread, element))
        loops = tuple(sorted((uid, key(s), key(e)) for uid, (s, e) in footprint.outer.items()))
        conditions = [*footprint.conditions, *(footprint.inside if bounded else ())]
        gates = tuple(self.gates.add(c, inner) for c in conditions)
        for flag in (*footprint.flags, *footprint.needed):
            if not self.algebra.variables(flag) <= inner:
                raise UndecidedError("a condition on blocks or iterations is not understood")
        keys = tuple(key(b) for b in bases)
        return Part(
            footprint,
            target,
            tuple(leaves),
            gates,
            footprint.flags,
            footprint.space,
            tuple(bases),
            keys,
            loops,
            self.once,
        )

    def _factor(self, poly: Poly, inner: frozenset[int], what: str) -> tuple[Poly, Factors]:
        halves = self.algebra.factor(poly, inner)
        if halves is None:
            raise UndecidedError(f"the {what}'s address does not separate into block and thread parts")
        return halves

    def alike(self, parts: Sequence[Part]) -> bool:
        """Whether all parts have the same outer halves and loops; the prover is asked where sizes are unknown."""
        first = parts[0]
        if any(p.loops != first.loops for p in parts):
            return False
        others = [p for p in parts if p.bases != first.bases]
        if not others:
            return True
        known = known_space(self.algebra, self.algebra.variables(*(b for p in parts for b in p.outside))) is not None
        return not known and all(self._proved(first, p) for p in others)

    def _proved(self, one: Part, other: Part) -> bool:
        from tlcheck.prove import proofs

        pairs = zip(one.outside, other.outside, strict=True)
        return len(one.outside) == len(other.outside) and all(proofs.equal(self.algebra, a, b) for a, b in pairs)

    def bases_of(self, parts: Sequence[Part]) -> Sum:
        """The multiset of (bases, inner half) over all blocks and iterations."""
        count = total = 0
        for part in (self._leveled(p) for p in parts):
            known: dict[tuple[int, ...], Sum] = {}
            if self.algebra.variables(*chain.from_iterable(part.footprint.outer.values())) & _inner(part.footprint):
                raise UndecidedError("how often a loop runs depends on the thread")
            space = self._outer_space(part)
            if self.algebra.variables(*part.outside) - {d.uid for d in space}:
                raise UndecidedError("the addresses of its sites differ, and depend on a size")
            for env in chunks(space):
                evaluate = Evaluator(self.algebra, env)
                shape = shape_of(env)
                active = np.broadcast_to(
                    np.asarray(runs(self.algebra, evaluate, part.footprint.outer), dtype=np.bool_), shape
                )
                inner = self._inner(evaluate, part, shape, active, known)
                bases = [np.broadcast_to(weigh(evaluate(b), n), shape)[active] for n, b in enumerate(part.outside)]
                with np.errstate(over="ignore"):
                    keys = sum(bases, start=inner[1] * np.uint64(31))
                count += int(inner[0].sum())
                total += int(mix(keys)[inner[0] > 0].sum(dtype=np.uint64))
        return Sum(count, total % (1 << 64))

    def _leveled(self, part: Part) -> Part:
        """The part with its lowest offset in the outer half: a peeled iteration is a constant there, a loop's
        variable elsewhere.
        """
        inner = part.target[()]
        low = min((int(np.min(Evaluator(self.algebra, env)(inner))) for env in chunks(part.space)), default=0)
        target = {**part.target, (): add(inner, constant(low), -1)}
        return replace(part, target=target, outside=(add(part.outside[0], constant(low)), *part.outside[1:]))

    def _inner(
        self,
        evaluate: Evaluator,
        part: Part,
        shape: tuple[int, ...],
        active: npt.NDArray[np.bool_],
        known: dict[tuple[int, ...], Sum],
    ) -> tuple[Words, Words]:
        """Count and sum of the inner half in each outer point that runs; enumerated once for points whose conditions
        fall alike.
        """
        gates = sorted({n for n, _ in part.gates})
        columns = [np.broadcast_to(np.asarray(evaluate(self.gates.outside[n])), shape)[active] for n in gates]
        columns = [np.clip(c, *self.gates.span(part.gates, n)) for n, c in zip(gates, columns, strict=True)]
        table = np.stack(columns, axis=1) if columns else np.zeros((int(active.sum()), 0), dtype=np.int64)
        rows, which = np.unique(table, axis=0, return_inverse=True)
        if len(rows) * size(part.space) > BUDGET:
            raise UndecidedError(
                f"too large to enumerate ({len(rows)} classes of {size(part.space)} lanes)", ENUMERATION
            )
        classes = [tuple(int(x) for x in row) for row in rows]
        unseen = [point for point in classes if point not in known]
        values = [dict(zip(gates, point, strict=True)) for point in unseen]
        known.update(zip(unseen, self.known.of(self.algebra, [part], values), strict=True))
        sums = [known[point] for point in classes]
        which = which.ravel()
        return (
            np.array([s.count for s in sums], dtype=np.uint64)[which],
            np.array([s.total for s in sums], dtype=np.uint64)[which],
        )

    def _outer_space(self, part: Part) -> list[Dimension]:
        ranges = {uid: self.algebra.ranges[uid] for uid in BLOCKS if uid in self.algebra.ranges}
        for uid, (start, extent) in part.footprint.outer.items():
            ranges[uid] = (self.algebra.bounds(start)[0], self.algebra.bounds(add(add(start, extent), {(): -1}))[1])
        space: list[Dimension] = []
        for uid in sorted(ranges):
            low, high = ranges[uid]
            if low is None or high is None:
                raise UndecidedError(
                    "the addresses of its sites differ by block or iteration, and their number is not known"
                )
            space.append(Dimension(uid, low, high - low + 1))
        if size(space) > MAX_OUTER:
            raise UndecidedError(
                "the addresses of its sites differ by block or iteration, of which there are too many", ENUMERATION
            )
        return space


def assignments(space: Sequence[Dimension]) -> Iterator[dict[int, int]]:
    """Every point of a small space."""
    for values in product(*(range(d.start, d.start + d.extent) for d in space)):
        yield {d.uid: v for d, v in zip(space, values, strict=True)}


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
    required = meant | (set() if bounded else _keys(p for p in intended.inside if not reads(algebra, p)))
    return required <= have <= meant | inside | _keys(intended.reads)


def _what(f: Footprint) -> Key:
    leaves = tuple((leaf.root, key(leaf.element), key(leaf.thread)) for leaf in f.leaves)
    loops = tuple(sorted((uid, key(start), key(extent)) for uid, (start, extent) in f.outer.items()))
    return f.form, key(f.target), leaves, loops, frozenset(key(p) for p in (*f.flags, *f.needed))


def _keys(polys: Iterable[Poly]) -> set[Key]:
    return {key(p) for p in polys}


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
    halves = algebra.separate(poly, _inner(footprint))
    if halves is None:
        return None
    return min((int(np.min(Evaluator(algebra, env)(halves[1]))) for env in chunks(footprint.space)), default=None)


def _inner(footprint: Footprint) -> frozenset[int]:
    """The variables that tell the lanes of one instance apart."""
    return frozenset(d.uid for d in footprint.space) | THREADS
