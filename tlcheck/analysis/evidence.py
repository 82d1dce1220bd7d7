"""What is known of one atomic at one checkpoint: the same additions as intended, others (with a witness), or
undecided (and why).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np

from tlcheck.analysis.algebra import OPAQUE, Algebra, Atom, Poly, as_constant, constant, unread
from tlcheck.analysis.alignment import aligned
from tlcheck.analysis.anchoring import anchored, floating
from tlcheck.analysis.atomics import Site, is_atomic
from tlcheck.analysis.comparison import BUDGET, UndecidedError, assignments, same
from tlcheck.analysis.difference import Difference, Witness, difference, evaluate_at, first_addition
from tlcheck.analysis.evaluate import Dimension, Evaluator, chunks, size
from tlcheck.analysis.footprints import TAGS, Builder, Footprint, Memory
from tlcheck.analysis.matching import Match
from tlcheck.analysis.values import Reader, UnreadableError
from tlcheck.analysis.walk import Program
from tlcheck.snapshot.ir import Expr

MAX_POINTS = 4096
SIZES = (1000, 256, 4096, 130)  # tried for sizes that are known only when the kernel runs


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """status: `same`, `different` (then `difference` holds a witness) or `undecided` (then `reason` says why).

    calls, stored: where the atomic has no counterpart, what else newly reaches its destination.
    scopes: memory of each orphan of the match. first: the first addition as written, for rules about instructions.
    """

    checkpoint: str
    match: Match
    status: str
    difference: Difference | None = None
    reason: str = ""
    calls: tuple[str, ...] = ()
    stored: bool = False
    scopes: tuple[str, ...] = ()
    first: Witness | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Stage:
    """One function to compare: its program, and a reader of values in it."""

    checkpoint: str
    program: Program
    reader: Reader


@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """One match at one checkpoint. bounded: out-of-bounds lanes do not count yet. cut: the intended region ends at
    the bounds.
    """

    intent: Stage
    stage: Stage
    memory: Memory
    match: Match
    bounded: bool
    cut: bool


def evidence(comparison: Comparison) -> Evidence:
    """Compare the sites of one match with what was written, in the simplest way that decides."""
    found, program = comparison.match, comparison.stage.program
    if not found.sites:
        scopes = tuple(_scope(program, o.target.root) for o in found.orphans)
        reason = "it has no counterpart here"
        first = _first(comparison)
        return Evidence(comparison.stage.checkpoint, found, "undecided", None, reason, scopes=scopes, first=first)
    reasons: list[str] = []
    shown: Difference | None = None
    for plan in _plans(comparison):
        try:
            if plan.holds():
                return Evidence(comparison.stage.checkpoint, found, "same", first=_first(comparison))
            reasons.append("its additions have another form, and no instance was found that shows a wrong one")
            shown = _refute(comparison)
        except (UndecidedError, UnreadableError) as error:
            reasons.append(str(error))
        if shown is not None:
            return Evidence(comparison.stage.checkpoint, found, "different", shown)
    shown = _refute(comparison)
    status = "undecided" if shown is None else "different"
    return Evidence(comparison.stage.checkpoint, found, status, shown, "" if shown else reasons[0])


def _scope(program: Program, root: str) -> str:
    buffer = program.buffers.get(root)
    return buffer.scope if buffer is not None else ""


@dataclass(frozen=True, slots=True, eq=False)
class _Plan:
    """One way to compare. outer: loops kept symbolic. fixed: values of blocks and sizes."""

    comparison: Comparison
    outer: frozenset[int]
    aliases: Mapping[int, int]
    fixed: Mapping[int, int]

    def build(self, unguarded: bool = False) -> tuple[Algebra, list[Footprint], list[Footprint]]:
        """Both sides as footprints of one algebra. Raises UnreadableError."""
        c = self.comparison
        algebra = Algebra(unread)
        algebra.values.update({uid: constant(v) for uid, v in self.fixed.items()})
        _sizes(algebra, c.intent.program)
        names = {**self.aliases, **_scalars(c.stage.program, c.intent.program)}
        left = Builder(algebra, c.intent.program, c.memory, c.intent.reader, True, self.outer, {})
        right = Builder(algebra, c.stage.program, c.memory, c.stage.reader, False, self.outer, names)
        intended = [left.build(w) for w in c.match.written]
        actual = [right.build(s, unguarded) for s in c.match.sites]
        if not c.cut:
            intended = [replace(f, inside=()) for f in intended]
        algebra.opaque = _content_range(algebra, intended)
        return algebra, intended, [anchored(algebra, f, intended[0], c.memory) for f in actual]

    def holds(self) -> bool:
        """Whether both sides are the same, and vector instructions aligned. Raises UndecidedError and
        UnreadableError.
        """
        algebra, intended, actual = self.build()
        if _forms(intended) != _forms(actual):
            algebra, intended, actual = self.build(unguarded=True)
        _comparable(intended, actual)
        bounded = self.comparison.bounded and self.comparison.cut
        return same(algebra, intended, actual, bounded) and all(aligned(algebra, f) for f in actual)


def _forms(footprints: Sequence[Footprint]) -> set[tuple[object, ...]]:
    return {(f.form, tuple(leaf.root for leaf in f.leaves)) for f in footprints}


def _comparable(intended: Sequence[Footprint], actual: Sequence[Footprint]) -> None:
    """Raises UndecidedError where the values differ in more than the elements that they read."""
    if {f.form for f in intended} != {f.form for f in actual}:
        raise UndecidedError("its value has another form than in the kernel")
    if _forms(intended) != _forms(actual):
        raise UndecidedError("its value is read from other memory than in the kernel")


def _plans(c: Comparison) -> Iterator[_Plan]:
    """Loops that both sides have stay symbolic; else all loops are enumerated; else blocks one by one too."""
    outer, aliases = _shared_loops(c)
    yield _Plan(c, outer, aliases, {})
    names = {str(v.value) for w in c.match.written for v in _loops(w)}
    own = frozenset(v.uid for s in (*c.match.written, *c.match.sites) for v in _loops(s) if str(v.value) in names)
    if own != outer:
        yield _Plan(c, own, {}, {})
    if own:
        yield _Plan(c, frozenset(), {}, {})
    yield _Blocks(c, frozenset(), {}, {})


class _Blocks(_Plan):
    """Every block on its own: for addresses that do not separate."""

    def holds(self) -> bool:
        algebra, intended, _ = self.build()
        space = _blocks(algebra)
        points = size(space)
        lanes = sum(size(f.space) for f in intended)
        if points > MAX_POINTS or points * lanes > BUDGET:
            raise UndecidedError(f"too large to enumerate block by block ({points} blocks of {lanes} lanes)")
        return all(_Plan(self.comparison, frozenset(), {}, point).holds() for point in assignments(space))


def _blocks(algebra: Algebra) -> list[Dimension]:
    space: list[Dimension] = []
    for tag, uid in TAGS.items():
        low, high = algebra.ranges.get(uid, (0, 0))
        if tag.startswith("block"):
            if high is None:
                raise UndecidedError("the number of blocks is known only when the kernel runs")
            space.append(Dimension(uid, low or 0, high + 1 - (low or 0)))
    return space


def _loops(site: Site) -> list[Expr]:
    """Sequential loops around a site, outermost first, up to its first parallel one."""
    found: list[Expr] = []
    for axis in site.scope.axes:
        if axis.kind == "parallel":
            break
        if axis.kind in ("serial", "unrolled"):
            found.append(axis.var)
    return found


def _shared_loops(c: Comparison) -> tuple[frozenset[int], dict[int, int]]:
    """Loops around the written atomics that all sites have too: by variable, else by name in the same order."""
    written = _loops(c.match.written[0])
    if any([v.uid for v in _loops(w)] != [v.uid for v in written] for w in c.match.written):
        return frozenset(), {}
    aliases: dict[int, int] = {}
    for site in c.match.sites:
        there = _loops(site)
        for position, loop in enumerate(written):
            if any(v.uid == loop.uid for v in there):
                continue
            if position < len(there) and str(there[position].value) == str(loop.value):
                aliases[there[position].uid] = loop.uid
            else:
                return frozenset(), {}
    return frozenset(v.uid for v in written), aliases


def _content_range(algebra: Algebra, intended: Sequence[Footprint]) -> int:
    """How many distinct values memory may hold so that every index read from it is in bounds: the kernel's author
    sees to that.
    """
    reads = {n for n, a in enumerate(algebra.atoms) if a.kind == "load"}
    open_ = [(f, p) for f in intended for p in f.inside if any(n in reads for m in p for n in m)]
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
    env = next(iter(chunks(f.space)))
    return bool(np.all(np.greater_equal(Evaluator(algebra, {**fixed, **env})(p), 0)))


def _sizes(algebra: Algebra, program: Program) -> None:
    """Sizes of parameters are at least 1."""
    for buffer in program.function.buffers:
        for extent in buffer.shape:
            if extent.op == "var":
                algebra.ranges.setdefault(extent.uid, (1, None))


def _scalars(program: Program, intent: Program) -> dict[int, int]:
    """Sizes and scalar parameters of a function -> those of the intent, by name."""
    theirs = {str(v.value): v.uid for v in _symbols(intent)}
    return {v.uid: theirs[str(v.value)] for v in _symbols(program) if str(v.value) in theirs}


def _symbols(program: Program) -> list[Expr]:
    function = program.function
    shapes = [e for b in function.buffers for e in (*b.shape, *b.strides)]
    return [e for e in (*function.params, *shapes) if e.op == "var" and e.dtype != "handle"]


def _refute(c: Comparison) -> Difference | None:
    """The first instance in which a lane is wrong; None if none of those tried shows one."""
    outer, aliases = _shared_loops(c)
    for plan in (_Plan(c, outer, aliases, {}), _Plan(c, frozenset(), {}, {})):
        try:
            algebra, intended, actual = plan.build()
            if _forms(intended) != _forms(actual):
                algebra, intended, actual = plan.build(unguarded=True)
            _comparable(intended, actual)
        except (UndecidedError, UnreadableError):
            continue
        if any(floating(f, c.memory) for f in actual) or not _trustworthy(algebra, c, intended, actual):
            return None
        for point in islice(_instances(algebra, intended, actual), 12):
            if not _feasible(algebra, (*intended, *actual), point):
                continue
            found = _differs(algebra, c, intended, actual, point)
            if found:
                return found
    return None


def _feasible(algebra: Algebra, footprints: Sequence[Footprint], point: Mapping[int, int]) -> bool:
    """Whether every outer loop really takes the value that the point gives it."""
    for footprint in footprints:
        for uid, (start, extent) in footprint.outer.items():
            first, count = evaluate_at(algebra, start, point), evaluate_at(algebra, extent, point)
            if first is None or count is None or not first <= point[uid] < first + count:
                return False
    return True


def _differs(
    algebra: Algebra,
    c: Comparison,
    intended: Sequence[Footprint],
    actual: Sequence[Footprint],
    point: Mapping[int, int],
) -> Difference | None:
    names = _names(c)
    buffer = c.memory.declared.get(c.match.written[0].target.root)
    capacity: int | None = 1
    for extent in buffer.shape if buffer is not None else ():
        known = as_constant(algebra.poly(extent))
        capacity = None if known is None or capacity is None else capacity * known
    bounded = c.bounded and c.cut
    found = difference(algebra, intended, actual, point, names, capacity, bounded)
    if found and _reads_indices(algebra, (*intended, *actual)):
        # Out-of-bounds indices in memory must not be what makes the difference: try with all of them 0.
        kept, algebra.opaque = algebra.opaque, 1
        if not difference(algebra, intended, actual, point, names, capacity, bounded):
            found = None
        algebra.opaque = kept
    return found


def _reads_indices(algebra: Algebra, footprints: Sequence[Footprint]) -> bool:
    """Whether a destination's index is read from memory."""
    used = {n for f in footprints for p in (f.target, *f.inside) for m in p for n in m}
    return any(algebra.atoms[n].kind in ("load", "register") or algebra.atoms[n].args for n in used) and any(
        a.kind in ("load", "register") for a in algebra.atoms
    )


def _first(c: Comparison) -> Witness | None:
    """The first addition as written, in the first instance; None if it cannot be read."""
    algebra = Algebra(unread)
    _sizes(algebra, c.intent.program)
    outer = frozenset(v.uid for w in c.match.written for v in _loops(w))
    try:
        footprint = Builder(algebra, c.intent.program, c.memory, c.intent.reader, True, outer, {}).build(
            c.match.written[0]
        )
    except UnreadableError:
        return None
    instances = _instances(algebra, [footprint], [])
    point = next((p for p in instances if _feasible(algebra, [footprint], p)), None)
    return None if point is None else first_addition(algebra, footprint, point, _names(c))


def _names(c: Comparison) -> dict[int, str]:
    names = {uid: tag for tag, uid in TAGS.items() if tag.startswith("block")}
    for site in c.match.written:
        names.update({v.uid: str(v.value) for v in _loops(site)})
    names.update({v.uid: str(v.value) for v in _symbols(c.intent.program)})
    return names


def _trustworthy(algebra: Algebra, c: Comparison, intended: Sequence[Footprint], actual: Sequence[Footprint]) -> bool:
    """Whether a difference would be one for certain: unknown functions and memory that the kernel writes prove
    nothing.
    """
    used: set[int] = set()
    stack: list[Poly] = [p for f in (*intended, *actual) for p in _polynomials(f)]
    while stack:
        for number in {n for m in stack.pop() for n in m} - used:
            used.add(number)
            if algebra.atoms[number].kind != "call":
                stack.extend(algebra.atoms[number].args)
    parameters = {c.intent.program.roots.of(b.data) for b in c.intent.program.function.buffers}
    return all(_certain(algebra.atoms[n], parameters) for n in used)


def _certain(atom: Atom, parameters: set[str]) -> bool:
    """Whether an atom may have any value: what a parameter holds, and what an atomic finds in memory, is up to the
    caller.
    """
    if atom.kind == "load":
        return atom.detail in parameters
    if atom.kind == "call":
        return is_atomic(str(atom.detail).partition(":")[0])
    return atom.kind in _KNOWN


_KNOWN = frozenset(
    "var // % min max mul floordiv floormod truncdiv truncmod lt le gt ge eq ne and or not select cast float".split()
)


def _polynomials(f: Footprint) -> list[Poly]:
    loops = [p for bounds in f.outer.values() for p in bounds]
    leaves = [p for leaf in f.leaves for p in (leaf.element, leaf.thread)]
    return [f.target, *f.conditions, *f.inside, *f.flags, *f.needed, *leaves, *loops]


def _instances(
    algebra: Algebra, intended: Sequence[Footprint], actual: Sequence[Footprint]
) -> Iterator[dict[int, int]]:
    """Corners of the outer space: blocks and outer loops at their first, last and middle value, sizes at some."""
    inner = {d.uid for f in (*intended, *actual) for d in f.space}
    free = algebra.variables(*(p for f in (*intended, *actual) for p in _polynomials(f))) - inner
    free |= {uid for uid in algebra.ranges if uid in TAGS.values()} - inner
    free |= {uid for f in (*intended, *actual) for uid in f.outer}
    sizes = [u for u in free if algebra.ranges.get(u, (None, None))[1] is None]
    for choice in SIZES if sizes else SIZES[:1]:
        for where in (0, 2, 1):
            point: dict[int, int] = {}
            for uid in sorted(free):
                low, high = algebra.ranges.get(uid, (None, None))
                if low is not None and high is not None:
                    point[uid] = (low, (low + high) // 2, high)[where]
                else:
                    point[uid] = choice if uid > 0 else 0
            yield point
