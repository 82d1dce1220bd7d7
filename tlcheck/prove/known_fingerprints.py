"""Fingerprints that are known already: most of what an atomic adds is at one checkpoint what it is at the next.

A sum depends on nothing but what is in its key, and keys are compared as they are, not by a hash. Atoms are named in
them by what they are made of, for each comparison numbers its own anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tlcheck.algebra.algebra import Algebra, Atom, FragmentTable
from tlcheck.algebra.polynomial import Poly
from tlcheck.prove.fingerprints import Factors, Part, Sum, fingerprints

Classes = Sequence[Mapping[int, int]]
Key = tuple[object, ...]


class KnownSums:
    """The fingerprints of one snapshot's parts."""

    def __init__(self) -> None:
        self._sums: dict[Key, dict[tuple[int, ...], Sum]] = {}  # of each part, by its gates' outer halves
        self._atoms: dict[Key, int] = {}
        self._tables: dict[int, FragmentTable] = {}  # kept, so that an id means one of them

    def of(self, algebra: Algebra, parts: Sequence[Part], classes: Classes) -> list[Sum]:
        """Return what `fingerprints` says. Raises UndecidedError as it does."""
        keys = _Keys(algebra, self._atoms, self._tables)
        each = [self._of_part(algebra, part, classes, keys) for part in parts]
        return [_all(sums) for sums in zip(*each, strict=True)] if each else fingerprints(algebra, parts, classes)

    def _of_part(self, algebra: Algebra, part: Part, classes: Classes, keys: _Keys) -> list[Sum]:
        own = self._sums.setdefault(keys.part(part), {})
        numbers = [number for number, _ in part.gates]
        asked = [tuple([values[n] for n in numbers]) for values in classes]
        unknown = {key: values for key, values in zip(asked, classes, strict=True) if key not in own}
        if unknown:
            own.update(zip(unknown, fingerprints(algebra, [part], list(unknown.values())), strict=True))
        return [own[key] for key in asked]


def _all(sums: Iterable[Sum]) -> Sum:
    count = total = 0
    for each in sums:
        count, total = count + each.count, total + each.total
    return Sum(count, total % (1 << 64))


class _Keys:
    """Keys of the parts of one comparison: equal for parts that have equal sums, whichever algebra they are of."""

    def __init__(self, algebra: Algebra, atoms: dict[Key, int], tables: dict[int, FragmentTable]) -> None:
        self.algebra = algebra
        self.atoms = atoms
        self.tables = tables
        self._numbers: dict[int, int] = {}

    def part(self, part: Part) -> Key:
        """All that the sum of a part depends on but the values of its gates' outer halves."""
        a, footprint = self.algebra, part.footprint
        leaves = tuple(
            [
                (
                    self.poly(thread),
                    self.factors(element),
                    self.poly(leaf.thread),
                    self.table(leaf.table),
                    tuple(map(self.poly, leaf.when)),
                )
                for leaf, (thread, element) in zip(footprint.leaves, part.leaves, strict=True)
            ]
        )
        conditions = [self.poly(inside) for _, inside in part.gates]
        flags = [self.poly(p) for p in part.flags]
        needed = [self.poly(p) for p in footprint.needed]
        memory = (a.salt, a.numbers, a.opaque)
        target = self.factors(part.target)
        return part.space, target, leaves, tuple(conditions), tuple(flags), tuple(needed), memory, part.once

    def factors(self, factors: Factors) -> Key:
        """Outer monomials by their numbers in this algebra: these go into the sum, for their values are unknown."""
        return tuple(sorted((outer, self.poly(inner)) for outer, inner in factors.items()))

    def poly(self, poly: Poly) -> Key:
        return tuple(sorted((tuple(sorted([self.atom(n) for n in monomial])), c) for monomial, c in poly.items()))

    def atom(self, number: int) -> int:
        known = self._numbers.get(number)
        if known is None:
            known = self._numbers[number] = self._named(self.algebra.atoms[number])
        return known

    def _named(self, atom: Atom) -> int:
        table = self.table(self.algebra.tables[str(atom.detail)]) if atom.kind == "register" else 0
        key = (atom.kind, atom.detail, tuple([self.poly(p) for p in atom.args]), atom.range, atom.holds, table)
        return self.atoms.setdefault(key, len(self.atoms))

    def table(self, table: FragmentTable | None) -> int:
        if table is None:
            return 0
        self.tables[id(table)] = table
        return id(table)
