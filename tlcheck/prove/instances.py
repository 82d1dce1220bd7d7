"""Refuting: concrete instances of a comparison, looked at one by one for a wrong lane."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice

import numpy as np

from tlcheck.algebra.algebra import BITWISE, Algebra, Atom, unread
from tlcheck.algebra.evaluate import Evaluator, Mask, chunks
from tlcheck.algebra.polynomial import Poly, add, as_constant, constant, key
from tlcheck.program.atomics import is_atomic
from tlcheck.program.layouts import flatten, row_major
from tlcheck.program.walk import Program
from tlcheck.prove.assumptions import assume, hold, inputs, nearest, promises_more, related, symbols
from tlcheck.prove.builder import Builder
from tlcheck.prove.choices import taken
from tlcheck.prove.contents import contents, holding, keeps_bounds
from tlcheck.prove.difference import FootprintDifference, difference, evaluate_at, first_addition
from tlcheck.prove.fingerprints import UndecidedError, shape_of
from tlcheck.prove.footprints import TAGS, Footprint
from tlcheck.prove.plans import Comparison, Plan, content_range, forms_of, loops_of, require_one_form, shared_loops
from tlcheck.prove.stores import UnreadableError
from tlcheck.prove.sum_comparison import floating
from tlcheck.reasons import SIZES as NO_SIZES
from tlcheck.reasons import SOURCE_STOPS
from tlcheck.snapshot.ir import Buffer
from tlcheck.witness import Addition

SIZES = (1000, 37, 130, 256, 17, 4096, 96)  # tried for sizes that are known only when the kernel runs
MAX_INSTANCES = 15


def refute(c: Comparison) -> FootprintDifference | None:
    """The first instance in which a lane is wrong; None if none of those tried shows one. Raises UndecidedError where
    no size that was tried keeps the author's promises, and where the author's index leaves a tile.
    """
    outer, aliases = shared_loops(c)
    leaves = False
    for plan in (Plan(c, outer, aliases, {}), Plan(c, frozenset(), {}, {})):
        try:
            algebra, intended, actual = plan.build(multiples=False)
            if forms_of(intended) != forms_of(actual):
                algebra, intended, actual = plan.build(unguarded=True, multiples=False)
            require_one_form(intended, actual)
        except (UndecidedError, UnreadableError):
            continue
        # where the sites' loops differ, what one adds in an iteration may be meant in another
        loops = [{uid: [*map(key, ends)] for uid, ends in f.outer.items()} for f in actual]
        if any(each != loops[0] for each in loops):
            continue
        intended, actual = taken(intended, actual)
        if any(floating(f, c.memory) for f in actual) or not _trustworthy(algebra, c, intended, actual):
            return None
        if any(_is_never_inside(algebra, f) for f in intended):
            raise UndecidedError("an index of it leaves its axis wherever the atomic runs", SOURCE_STOPS)
        choices = _instances(algebra, c.intent.program, intended, actual, _launch(algebra, c))
        points = list(islice(_kept(algebra, c.intent.program, choices), MAX_INSTANCES))
        for point in points:
            if not _feasible(algebra, (*intended, *actual), point):
                continue
            if _leaves_tile(algebra, c, intended, point):
                leaves = True
                continue
            defined = _reads_in_bounds(algebra, intended, point)
            for differs in (_differs, _differs_by_content) if defined else (_own_misaligned,):
                found = differs(algebra, c, intended, actual, point)
                if found and any(_is_always_negative(algebra, f, points) for f in intended):
                    raise UndecidedError("an index of it is negative wherever the atomic runs", SOURCE_STOPS)
                if found and not _is_authors(algebra, c, actual, found):
                    return found
    if leaves:
        raise UndecidedError(f"as written, it leaves the bounds of {c.match.source[0].target.root}", SOURCE_STOPS)
    return None


def _leaves_tile(algebra: Algebra, c: Comparison, intended: Sequence[Footprint], point: Mapping[int, int]) -> bool:
    """Whether an intended lane that runs is out of bounds of memory of the block: TileLang guards tensors alone, the
    author answers for the rest. Of an index that is read from memory other contents are tried.
    """
    target = c.match.source[0].target
    declared = c.memory.declared.get(target.root)
    scope = target.buffer.scope or (declared.scope if declared is not None else "")
    if scope in ("", "global") or _reads_indices(algebra, intended):
        return False
    for footprint in intended:
        for env in chunks(footprint.space) if footprint.inside else ():
            evaluate = Evaluator(algebra, {**env, **point})
            runs = _running(evaluate, replace(footprint, inside=()))
            if any(np.any(np.logical_and(runs, np.less(evaluate(p), 0))) for p in footprint.inside):
                return True
    return False


def _is_never_inside(algebra: Algebra, f: Footprint) -> bool:
    """Whether an element's index is out of bounds in any case, as -1 is: TileLang counts such ones from the end."""
    most = [algebra.bounds(poly)[1] for poly in f.inside]
    return not f.site.tile and any(bound is not None and bound < 0 for bound in most)


def _is_always_negative(algebra: Algebra, f: Footprint, points: Sequence[Mapping[int, int]]) -> bool:
    """Whether an index is below 0 in each lane that runs: TileLang counts one from the end if it can prove that."""
    negative = set() if _reads_indices(algebra, [f]) else set(range(len(f.indices)))
    ran = False
    for point in points if negative else ():
        for env in chunks(f.space) if _feasible(algebra, [f], point) else ():
            evaluate = Evaluator(algebra, {**env, **point})
            runs = _running(evaluate, replace(f, inside=()))
            ran = ran or bool(np.any(runs))
            for n in tuple(negative):
                if np.any(np.logical_and(runs, np.greater_equal(evaluate(f.indices[n]), 0))):
                    negative.remove(n)
    return ran and bool(negative)


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
) -> FootprintDifference | None:
    names = _names(c)
    capacity = _capacity(algebra, c.memory.declared.get(c.match.source[0].target.root))
    bounded = c.bounded and c.cut
    found = difference(algebra, intended, actual, point, names, capacity, bounded)
    if found and _reads_indices(algebra, (*intended, *actual)) and not _in_bounds(algebra, intended, point):
        # Out-of-bounds indices in memory must not be what makes the difference: try with all of them 0.
        kept, algebra.opaque = algebra.opaque, 1
        found = difference(algebra, intended, actual, point, names, capacity, bounded) and found
        algebra.opaque = kept
    return found


def _own_misaligned(
    algebra: Algebra,
    c: Comparison,
    intended: Sequence[Footprint],
    actual: Sequence[Footprint],
    point: Mapping[int, int],
) -> FootprintDifference | None:
    """Return how the kernel's own vectors are misaligned: a device stops there, also where TileLang guards other lanes
    that read out of bounds.
    """
    if not any(site.width > 1 for site in c.match.source):
        return None
    found = _differs(algebra, c, intended, actual, point)
    return FootprintDifference(misaligned=found.misaligned) if found and found.misaligned else None


def _is_authors(algebra: Algebra, c: Comparison, actual: Sequence[Footprint], found: FootprintDifference) -> bool:
    """Whether all that is wrong is the alignment of the kernel's own vectors, where memory says where they start: its
    author answers for what memory holds, as where an index is out of bounds.
    """
    own = any(site.width > 1 for site in c.match.source)
    return own and _reads_indices(algebra, actual) and not replace(found, misaligned=None)


def _differs_by_content(
    algebra: Algebra,
    c: Comparison,
    intended: Sequence[Footprint],
    actual: Sequence[Footprint],
    point: Mapping[int, int],
) -> FootprintDifference | None:
    """Return what is wrong in one instance with another content of memory, with which the source is in bounds."""
    capacity = _capacity(algebra, c.memory.declared.get(c.match.source[0].target.root))
    for salt, numbers in enumerate(contents(algebra, (*intended, *actual)), 1):
        with holding(algebra, salt, numbers):
            if _feasible(algebra, (*intended, *actual), point) and keeps_bounds(algebra, intended, point):
                found = difference(algebra, intended, actual, point, _names(c), capacity, c.bounded and c.cut)
                if found:
                    return found
    return None


def _capacity(algebra: Algebra, buffer: Buffer | None) -> int | None:
    """Elements from the first of a destination to its last, if they are known and it starts with its memory."""
    if buffer is None:
        return None
    if buffer.elem_offset is not None and as_constant(algebra.poly(buffer.elem_offset)) != 0:
        return None
    shape = [algebra.poly(e) for e in buffer.shape]
    strides = [algebra.poly(s) for s in buffer.strides] or row_major(shape, algebra)
    last = flatten([add(extent, constant(1), -1) for extent in shape], strides, algebra)
    return as_constant(add(last, constant(1)))


def _in_bounds(algebra: Algebra, intended: Sequence[Footprint], point: Mapping[int, int]) -> bool:
    """Whether every intended lane is in bounds in one instance."""
    for footprint in intended:
        for env in chunks(footprint.space):
            evaluate = Evaluator(algebra, {**env, **point})
            if not all(np.all(np.greater_equal(evaluate(p), 0)) for p in footprint.inside):
                return False
    return True


def _reads_in_bounds(algebra: Algebra, intended: Sequence[Footprint], point: Mapping[int, int]) -> bool:
    """Whether every intended lane that runs reads in bounds in one instance: the kernel's author answers for it."""
    for footprint in intended:
        checks = (*footprint.reads, *footprint.perhaps)
        for env in chunks(footprint.space) if checks else ():
            evaluate = Evaluator(algebra, {**env, **point})
            runs = _running(evaluate, footprint)
            if any(np.any(np.logical_and(runs, np.less(evaluate(p), 0))) for p in checks):
                return False
    return True


def _running(evaluate: Evaluator, footprint: Footprint) -> Mask:
    """Return which lanes run, and write within their destination."""
    runs: Mask = np.ones((), dtype=np.bool_)
    for poly in (*footprint.conditions, *footprint.inside):
        runs = np.logical_and(runs, np.greater_equal(evaluate(poly), 0))
    for flag in footprint.flags:
        runs = np.logical_and(runs, np.not_equal(evaluate(flag), 0))
    return runs


def _first_lane(algebra: Algebra, footprint: Footprint, point: Mapping[int, int]) -> dict[int, int] | None:
    """The first lane that runs in one instance, and reads in bounds; None where none does."""
    made = replace(footprint, conditions=(*footprint.conditions, *footprint.reads))
    for env in chunks(footprint.space):
        runs = np.broadcast_to(_running(Evaluator(algebra, {**env, **point}), made), shape_of(env))
        if runs.any():
            at = np.unravel_index(int(runs.argmax()), runs.shape)
            return {uid: int(np.broadcast_to(values, runs.shape)[at]) for uid, values in env.items()}
    return None


def _reads_indices(algebra: Algebra, footprints: Sequence[Footprint]) -> bool:
    """Whether a destination's index is read from memory."""
    used = {n for f in footprints for p in (f.target, *f.inside) for m in p for n in m}
    return any(algebra.atoms[n].kind in ("load", "register") or algebra.atoms[n].args for n in used) and any(
        a.kind in ("load", "register") for a in algebra.atoms
    )


def first_of(c: Comparison) -> Addition | None:
    """The first addition in the source that is made, in the first instance with one; None if it cannot be read, and
    where its operands are out of bounds wherever it runs: TileLang leaves such an addition out.
    """
    algebra = Algebra(unread)
    assume(algebra, c.intent.program, multiples=False)
    outer = frozenset(v.uid for w in c.match.source for v in loops_of(w))
    try:
        footprint = Builder(algebra, c.intent.program, c.memory, c.intent.reader, True, outer, {}).build(
            c.match.source[0]
        )
    except UnreadableError:
        return None
    program = c.intent.program
    algebra.opaque = content_range(algebra, [footprint])
    instances = _instances(algebra, program, [footprint], [], {})
    for point in instances:
        if hold(algebra, program, point) and _feasible(algebra, [footprint], point):
            lane = _first_lane(algebra, footprint, point)
            if lane is not None:
                return first_addition(algebra, footprint, point, _names(c), lane)
    return None


def _names(c: Comparison) -> dict[int, str]:
    names = {uid: tag for tag, uid in TAGS.items() if tag.startswith("block")}
    for site in c.match.source:
        names.update({v.uid: str(v.value) for v in loops_of(site)})
    names.update({v.uid: str(v.value) for v in symbols(c.intent.program)})
    return names


def _trustworthy(algebra: Algebra, c: Comparison, intended: Sequence[Footprint], actual: Sequence[Footprint]) -> bool:
    """Whether a difference would be one for certain: unknown functions and memory that the kernel writes prove
    nothing, and what else the author promises is not looked at.
    """
    if promises_more(c.intent.program):
        return False
    used: set[int] = set()
    stack: list[Poly] = [p for f in (*intended, *actual) for p in _polynomials(f)]
    while stack:
        for number in {n for m in stack.pop() for n in m} - used:
            used.add(number)
            if algebra.atoms[number].kind != "call":
                stack.extend(algebra.atoms[number].args)
    given = inputs(c.intent.program)
    return all(_certain(algebra.atoms[n], given) for n in used)


def _certain(atom: Atom, given: frozenset[str]) -> bool:
    """Whether an atom may have any value: what the caller gives, and what an atomic finds in memory."""
    if atom.kind == "load":
        return atom.detail in given
    if atom.kind == "register":
        return True
    if atom.kind == "call":
        return is_atomic(str(atom.detail).partition(":")[0])
    return atom.kind in _KNOWN or atom.kind in BITWISE


_KNOWN = frozenset(
    "var // % min max mul floordiv floormod truncdiv truncmod lt le gt ge eq ne and or not select cast wrap "
    "clip float".split()
)


def _polynomials(f: Footprint) -> list[Poly]:
    loops = [p for bounds in f.outer.values() for p in bounds]
    leaves = [p for leaf in f.leaves for p in (leaf.element, leaf.thread, *leaf.when)]
    return [f.target, *f.conditions, *f.inside, *f.reads, *f.perhaps, *f.flags, *f.needed, *leaves, *loops]


def _launch(algebra: Algebra, c: Comparison) -> dict[int, Poly]:
    """Launch dimensions of a number of blocks that is not known -> that number."""
    axes = c.match.source[0].scope.axes
    extents = {TAGS[a.tag]: algebra.poly(a.extent) for a in axes if a.kind == "block" and a.tag in TAGS}
    return {uid: extent for uid, extent in extents.items() if as_constant(extent) is None}


def _kept(algebra: Algebra, program: Program, choices: Iterable[dict[int, int]]) -> Iterator[dict[int, int]]:
    """The instances that keep what the kernel's author promises. Raises UndecidedError where none does."""
    none = True
    for point in choices:
        if hold(algebra, program, point):
            none = False
            yield point
    if none:
        raise UndecidedError("none of the sizes tried keeps what the kernel promises of them (T.assume)", NO_SIZES)


def _instances(
    algebra: Algebra,
    program: Program,
    intended: Sequence[Footprint],
    actual: Sequence[Footprint],
    launch: Mapping[int, Poly],
) -> Iterator[dict[int, int]]:
    """Corners of the outer space: blocks and outer loops at their first, last and middle value, sizes at some that keep
    what is promised of each.
    """
    promised = nearest(algebra, program)
    chosen = {s.uid for s in symbols(program)}
    inner = {d.uid for f in (*intended, *actual) for d in f.space}
    free = algebra.variables(*(p for f in (*intended, *actual) for p in _polynomials(f))) - inner
    free |= {uid for uid in algebra.ranges if uid in TAGS.values()} - inner
    free |= {uid for f in (*intended, *actual) for uid in f.outer}
    free |= algebra.variables(*launch.values())
    loops = {uid: ends for f in (*intended, *actual) for uid, ends in f.outer.items() if _open(algebra, uid)}
    sizes = [u for u in free if _open(algebra, u)]
    for choice in SIZES if sizes else SIZES[:1]:
        for where in (0, 2, 1) if len(sizes) < len(free) or launch else (0,):
            point: dict[int, int] = {}
            for uid in sorted(free):
                low, high = algebra.ranges.get(uid, (None, None))
                if low is not None and high is not None:
                    point[uid] = (low, (low + high) // 2, high)[where]
                else:
                    point[uid] = choice if uid > 0 else 0
                if uid in chosen:
                    point[uid] = promised(uid, point[uid])
            point = related(algebra, program, point)
            for uid, (start, extent) in loops.items():
                first, count = evaluate_at(algebra, start, point), evaluate_at(algebra, extent, point)
                if first is not None and count is not None:
                    point[uid] = first + (0, count // 2, max(count - 1, 0))[where]
            for uid, extent in launch.items():
                last = max((evaluate_at(algebra, extent, point) or 1) - 1, 0)
                point[uid] = (0, last // 2, last)[where]
            yield point


def _open(algebra: Algebra, uid: int) -> bool:
    """Whether a variable has no known upper end."""
    return algebra.ranges.get(uid, (None, None))[1] is None
