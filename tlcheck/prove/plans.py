"""The ways to compare one match: what stays symbolic, what is enumerated, what is fixed; the simplest first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from tlcheck.algebra.algebra import OPAQUE, Algebra, unread
from tlcheck.algebra.evaluate import Dimension, Evaluator, chunks, size
from tlcheck.algebra.polynomial import Poly, add, as_constant, constant, key
from tlcheck.program.atomics import Site
from tlcheck.program.matching import Match
from tlcheck.program.walk import Program
from tlcheck.prove.added_values import Reader
from tlcheck.prove.alignment import aligned
from tlcheck.prove.assumptions import assume, symbols
from tlcheck.prove.builder import Builder
from tlcheck.prove.choices import taken
from tlcheck.prove.contents import contents, holding, keeps_bounds, reads
from tlcheck.prove.fingerprints import UndecidedError
from tlcheck.prove.footprints import TAGS, THREADS, Footprint, Memory
from tlcheck.prove.known_fingerprints import KnownSums
from tlcheck.prove.sum_comparison import BUDGET, anchored, assignments, identical, same
from tlcheck.reasons import ENUMERATION, UNSAID, Reason
from tlcheck.snapshot.dtypes import dtype_of
from tlcheck.snapshot.ir import Expr

MAX_POINTS = 4096
MAX_PEELED = 16  # iterations of a loop that a pipeline leaves behind it
NOT_PEELED = "its sites are not a loop and the last iterations of it"
CHANGED = "it is not the same expression as in the kernel"


@dataclass(frozen=True, slots=True, eq=False)
class Stage:
    """One function to compare: its program, and a reader of values in it.

    doubt: why the generated CUDA may compute something else; empty where nothing says so.
    """

    checkpoint: str
    program: Program
    reader: Reader
    doubt: Reason = UNSAID


@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """One match at one checkpoint. bounded: out-of-bounds lanes do not count yet. cut: the intended region ends at
    the bounds. known: sums of the same snapshot.
    """

    intent: Stage
    stage: Stage
    memory: Memory
    match: Match
    bounded: bool
    cut: bool
    known: KnownSums = field(default_factory=KnownSums)


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """One way to compare. outer: loops kept symbolic. fixed: values of blocks and sizes.

    is_shortcut: only its yes counts, for another plan asks the same in general.
    """

    comparison: Comparison
    outer: frozenset[int]
    aliases: Mapping[int, int]
    fixed: Mapping[int, int]
    is_shortcut: ClassVar[bool] = False

    def build(
        self, unguarded: bool = False, multiples: bool = True
    ) -> tuple[Algebra, list[Footprint], list[Footprint]]:
        """Both sides as footprints of one algebra. multiples: see `assume`. Raises UnreadableError."""
        algebra = Algebra(unread)
        algebra.values.update({uid: constant(v) for uid, v in self.fixed.items()})
        assume(algebra, self.comparison.intent.program, multiples)
        return algebra, *self.sides(algebra, unguarded)

    def sides(
        self, algebra: Algebra, unguarded: bool = False, iteration: Mapping[int, Poly] | None = None
    ) -> tuple[list[Footprint], list[Footprint]]:
        """Both sides as footprints of an algebra, in which variables may have values. iteration: values of loops of the
        source kernel alone. Raises UnreadableError.
        """
        c = self.comparison
        # sizes and scalar parameters of a function -> those of the intent, by name
        theirs = {str(v.value): v.uid for v in symbols(c.intent.program)}
        names = {
            **self.aliases,
            **{v.uid: theirs[str(v.value)] for v in symbols(c.stage.program) if str(v.value) in theirs},
        }
        private = not any(w.tile or any(a.kind == "parallel" for a in w.scope.axes) for w in c.match.source)
        right = Builder(algebra, c.stage.program, c.memory, c.stage.reader, False, self.outer, names, private)
        algebra.values = {**algebra.values, **(iteration or {})}
        left = Builder(algebra, c.intent.program, c.memory, c.intent.reader, True, self.outer, {}, private)
        intended = [left.build(w) for w in c.match.source]
        actual = [right.build(s, unguarded) for s in c.match.sites]
        if not c.cut:
            intended = [replace(f, inside=()) for f in intended]
        algebra.opaque = content_range(algebra, intended)
        return intended, [anchored(algebra, f, intended[0], c.memory) for f in actual]

    def holds(self) -> bool:
        """Whether both sides are the same, and vector instructions aligned. Raises UndecidedError and
        UnreadableError.
        """
        algebra, intended, actual = self.build()
        if forms_of(intended) != forms_of(actual):
            algebra, intended, actual = self.build(unguarded=True)
        return self.agree(algebra, intended, actual)

    def agree(self, algebra: Algebra, intended: Sequence[Footprint], actual: Sequence[Footprint]) -> bool:
        """Whether footprints are the same, and vector instructions aligned. Raises UndecidedError."""
        require_one_form(intended, actual)
        require_one_type(intended, actual)
        require_one_launch(algebra, intended, actual)
        intended, actual = taken(intended, actual, lambda f, condition: _is_steady(algebra, f, condition))
        if not (self._same(algebra, intended, actual) and all(aligned(algebra, f) for f in actual)):
            return False
        # they have to be the same with each content of memory that keeps the source in bounds
        for salt, numbers in enumerate(contents(algebra, (*intended, *actual)), 1):
            with holding(algebra, salt, numbers):
                if keeps_bounds(algebra, intended, {}) and not self._same(algebra, intended, actual):
                    return False
        return True

    def _same(self, algebra: Algebra, intended: Sequence[Footprint], actual: Sequence[Footprint]) -> bool:
        """Whether both sides are the same; what would be read out of bounds may be left out, newer releases guard
        it.
        """
        bounded, known = self.comparison.bounded and self.comparison.cut, self.comparison.known
        if not any(f.reads for f in intended):
            return same(algebra, intended, actual, bounded, known)
        guarded = [replace(f, conditions=(*f.conditions, *f.reads)) for f in intended]
        try:
            if same(algebra, intended, actual, bounded, known):
                return True
        except UndecidedError:
            pass
        return same(algebra, guarded, actual, bounded, known)


def _is_steady(algebra: Algebra, f: Footprint, condition: Poly) -> bool:
    """Whether a condition depends on nothing but what is enumerated."""
    return not reads(algebra, condition) and algebra.variables(condition) <= {d.uid for d in f.space}


def forms_of(footprints: Sequence[Footprint]) -> set[tuple[object, ...]]:
    return {(f.form, tuple(leaf.root for leaf in f.leaves)) for f in footprints}


def require_one_type(intended: Sequence[Footprint], actual: Sequence[Footprint]) -> None:
    """Raises UndecidedError where the destination is added to as elements of another type."""
    types = {dtype_of(f.site.target.dtype).name for f in intended}
    if types != {dtype_of(f.site.target.dtype).name for f in actual}:
        raise UndecidedError("its destination is added to as another type than in the kernel")


def require_one_launch(algebra: Algebra, intended: Sequence[Footprint], actual: Sequence[Footprint]) -> None:
    """Raises UndecidedError where it is not known to run in as many blocks as in the kernel."""
    for uid in {u for f in (*intended, *actual) for u in f.launch}:
        counts = {key(p): p for p in (f.launch.get(uid, constant(1)) for f in (*intended, *actual))}
        first, *others = counts.values()
        if others and not (algebra.variables(*others) and all(_proved_equal(algebra, first, p) for p in others)):
            raise UndecidedError("it is launched with other blocks than in the kernel")


def _proved_equal(algebra: Algebra, a: Poly, b: Poly) -> bool:
    from tlcheck.prove import proofs  # which imports TVM: with the first question

    return proofs.equal(algebra, a, b)


def require_one_form(intended: Sequence[Footprint], actual: Sequence[Footprint]) -> None:
    """Raises UndecidedError where the values differ in more than the elements that they read."""
    if {f.form for f in intended} != {f.form for f in actual}:
        raise UndecidedError("its value has another form than in the kernel")
    if forms_of(intended) != forms_of(actual):
        raise UndecidedError("its value is read from other memory than in the kernel")


def plans(c: Comparison) -> Iterator[Plan]:
    """Loops that both sides have stay symbolic; else all loops are enumerated; else blocks one by one too."""
    outer, aliases = shared_loops(c)
    if len(c.match.source) == len(c.match.sites) == 1 and not c.match.source[0].tile:
        yield Unchanged(c, outer | THREADS, aliases, {})
    if len(c.match.source) == 1 < len(c.match.sites):
        yield _Peeled(c, frozenset(), {}, {})
    yield Plan(c, outer, aliases, {})
    names = {str(v.value) for w in c.match.source for v in loops_of(w)}
    own = frozenset(v.uid for s in (*c.match.source, *c.match.sites) for v in loops_of(s) if str(v.value) in names)
    if own != outer:
        yield Plan(c, own, {}, {})
    if own:
        yield Plan(c, frozenset(), {}, {})
    yield _Blocks(c, frozenset(), {}, {})


class Unchanged(Plan):
    """Everything symbolic: for atomics that lowering does not touch."""

    def holds(self) -> bool:
        algebra, intended, actual = self.build()
        require_one_type(intended, actual)
        require_one_launch(algebra, intended, actual)
        bounded = self.comparison.bounded or not self.comparison.cut
        if not identical(algebra, intended[0], actual[0], bounded):
            raise UndecidedError(CHANGED)
        return aligned(algebra, actual[0])


class _Peeled(Plan):
    """The last iterations of a loop behind it, each by itself or all in a loop of their own, as a pipeline leaves them:
    for loops of unknown extent.

    The loop runs as often as the one of the source but for those, and each of them is one of the source, where there
    is one. It comes before what knows nothing of loops, which would enumerate the bases of all blocks and iterations.
    """

    is_shortcut = True

    def holds(self) -> bool:
        looped, *behind = self.comparison.match.sites
        plan = self._of(looped, {})
        algebra, intended, actual = plan.build()
        uid, left, by = _shortened(intended[0], actual[0])
        if len(behind) not in (1, by) or by > MAX_PEELED:
            raise UndecidedError(NOT_PEELED)
        if not plan.agree(algebra, [replace(intended[0], outer=actual[0].outer)], actual):
            return False
        start, count = intended[0].outer[uid][0], by // len(behind)
        for number, site in enumerate(behind):
            plan = self._of(site, plan.aliases, plan.outer - {uid})
            iterations: list[Footprint] = []
            for last in range(number * count, (number + 1) * count):
                exists = add(left, constant(last))  # >= 0 where the loop has that iteration
                algebra.values = {}
                (iteration,), alone = plan.sides(algebra, iteration={uid: add(start, exists)})
                iterations.append(replace(iteration, conditions=(*iteration.conditions, exists)))
            if not plan.agree(algebra, *([_by_quotients(algebra, f) for f in side] for side in (iterations, alone))):
                return False
        return True

    def _of(self, site: Site, aliases: Mapping[int, int], outer: frozenset[int] | None = None) -> Plan:
        """The plan for one of the sites."""
        c = replace(self.comparison, match=replace(self.comparison.match, sites=(site,)))
        if outer is None:
            outer, aliases = shared_loops(c)
        return Plan(c, outer, aliases, {})


def _shortened(source: Footprint, loop: Footprint) -> tuple[int, Poly, int]:
    """The loop that ends some iterations earlier, how often it runs, and how many those are. Raises UndecidedError."""
    shorter = [uid for uid, ends in source.outer.items() if [*map(key, ends)] != [*map(key, loop.outer.get(uid, ()))]]
    if len(shorter) == 1 and shorter[0] in loop.outer:
        (start, extent), (first, left) = source.outer[shorter[0]], loop.outer[shorter[0]]
        by = as_constant(add(extent, left, -1))
        if key(start) == key(first) and by is not None and by > 0:
            return shorter[0], left, by
    raise UndecidedError(NOT_PEELED)


def _by_quotients(algebra: Algebra, f: Footprint) -> Footprint:
    """The footprint with conditions such as x <= 79 as x // 16 <= 4, which TVM makes of these."""
    quotients = [n for n, a in enumerate(algebra.atoms) if a.kind == "//"]
    return replace(f, conditions=tuple(_by_quotient(algebra, p, quotients) for p in f.conditions))


def _by_quotient(algebra: Algebra, condition: Poly, quotients: Sequence[int]) -> Poly:
    for number in quotients:
        atom = algebra.atoms[number]
        for sign in (1, -1):
            rest, divisor = as_constant(add(condition, atom.args[0], -sign)), int(atom.detail)
            if rest is not None and rest % divisor == (0 if sign > 0 else divisor - 1):
                return {(number,): sign, (): rest // divisor} if rest // divisor else {(number,): sign}
    return condition


class _Blocks(Plan):
    """Every block on its own: for addresses that do not separate."""

    def holds(self) -> bool:
        algebra, intended, actual = self.build()
        require_one_launch(algebra, intended, actual)
        space = _blocks(algebra)
        points = size(space)
        lanes = sum(size(f.space) for f in (*intended, *actual))
        if points > MAX_POINTS or points * lanes > BUDGET:
            raise UndecidedError(
                f"too large to enumerate block by block ({points} blocks of {lanes} lanes)", ENUMERATION
            )
        return all(Plan(self.comparison, frozenset(), {}, point).holds() for point in assignments(space))


def _blocks(algebra: Algebra) -> list[Dimension]:
    space: list[Dimension] = []
    for tag, uid in TAGS.items():
        low, high = algebra.ranges.get(uid, (0, 0))
        if tag.startswith("block"):
            if high is None:
                raise UndecidedError("the number of blocks is known only when the kernel runs")
            space.append(Dimension(uid, low or 0, high + 1 - (low or 0)))
    return space


def loops_of(site: Site) -> list[Expr]:
    """Sequential loops around a site, outermost first, up to its first parallel one."""
    found: list[Expr] = []
    for axis in site.scope.axes:
        if axis.kind == "parallel":
            break
        if axis.kind in ("serial", "unrolled"):
            found.append(axis.var)
    return found


def shared_loops(c: Comparison) -> tuple[frozenset[int], dict[int, int]]:
    """Loops around the written atomics that all sites have too: by variable, else by name in the same order.

    A name that two loops of the source have says nothing: the outer one may be gone, and the inner one be left.
    """
    source = loops_of(c.match.source[0])
    if any([v.uid for v in loops_of(w)] != [v.uid for v in source] for w in c.match.source):
        return frozenset(), {}
    named = Counter(str(a.var.value) for a in c.match.source[0].scope.axes)
    aliases: dict[int, int] = {}
    for site in c.match.sites:
        there = loops_of(site)
        for position, loop in enumerate(source):
            if any(v.uid == loop.uid for v in there):
                continue
            name = str(loop.value)
            if position < len(there) and str(there[position].value) == name and named[name] == 1:
                aliases[there[position].uid] = loop.uid
            else:
                return frozenset(), {}
    return frozenset(v.uid for v in source), aliases


def content_range(algebra: Algebra, intended: Sequence[Footprint]) -> int:
    """Return how many distinct values memory may hold so that every index read from it is in bounds: the kernel's
    author sees to that.
    """
    reads = {n for n, a in enumerate(algebra.atoms) if a.kind == "load"}
    open_ = [(f, p) for f in intended for p in (*f.inside, *f.reads) if any(n in reads for m in p for n in m)]
    if not open_:
        return OPAQUE
    for count in (4096, 1024, 509, 251, 127, OPAQUE, 31, 13, 7, 3, 2):
        algebra.opaque = count
        if all(_never_negative(algebra, f, p) for f, p in open_):
            return count
    return 1


def _never_negative(algebra: Algebra, f: Footprint, p: Poly) -> bool:
    """Whether p >= 0 in the first lanes of the first instance."""
    inner = {d.uid for d in f.space}
    fixed = {u: algebra.ranges.get(u, (0, 0))[0] or 0 for u in algebra.variables(p) - inner}
    env = next(iter(chunks(f.space)), None)
    if env is None:  # there are no lanes
        return True
    return bool(np.all(np.greater_equal(Evaluator(algebra, {**fixed, **env})(p), 0)))
