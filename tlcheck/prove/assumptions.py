"""Find what is up to the caller of a kernel: sizes, as far as its author promises nothing of them, and what memory
holds.

Newer releases drop guards on the strength of the promises (`T.assume`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from math import lcm

from tlcheck.algebra.algebra import Algebra
from tlcheck.algebra.evaluate import Evaluator
from tlcheck.algebra.polynomial import Poly, add, scale
from tlcheck.program.atomics import atomic_name, atomics, pointer
from tlcheck.program.walk import Program, expressions, subexpressions
from tlcheck.signatures.table import destinations
from tlcheck.snapshot.ir import Expr, Store
from tlcheck.snapshot.operators import MIRRORED, ORDER

_BOUNDING = frozenset((*ORDER, "eq"))


def symbols(program: Program) -> list[Expr]:
    """The sizes and scalar parameters of a function."""
    function = program.function
    shapes = [e for b in function.buffers for e in (*b.shape, *b.strides)]
    return [e for e in (*function.params, *shapes) if e.op == "var" and e.dtype != "handle"]


def assume(algebra: Algebra, program: Program, multiples: bool) -> None:
    """Give the algebra the ranges of sizes. multiples: `n % 4 == 0` makes n four times another variable.

    Sizes of parameters are at least 1.
    """
    for buffer in program.function.buffers:
        for extent in buffer.shape:
            if extent.op == "var":
                algebra.ranges.setdefault(extent.uid, (1, None))
    conditions = list(_of_symbols(program))
    for uid, op, bound in filter(None, map(_bound, conditions)):
        low, high = algebra.ranges.get(uid, (None, None))
        least = {"ge": bound, "gt": bound + 1, "eq": bound}.get(op)
        most = {"le": bound, "lt": bound - 1, "eq": bound}.get(op)
        low = low if least is None else max(least, low if low is not None else least)
        high = high if most is None else min(most, high if high is not None else most)
        algebra.ranges[uid] = (low, high)
    if multiples:
        for uid, factor in _factors(conditions).items():
            if uid not in algebra.values:
                algebra.values[uid] = _multiple(algebra, uid, factor)
        # put what a size is in terms of others in its place: `n == 2 * m`
        for condition in conditions:
            if condition.op == "eq":
                gap = add(algebra.poly(condition.args[0]), algebra.poly(condition.args[1]), -1)
                sizes = _linear(algebra, gap)
                chosen = next((u for u, c in sizes.items() if abs(c) == 1 and len(sizes) > 1 and u > 0), None)
                if chosen is not None:
                    factor = -sizes[chosen]
                    algebra.values[chosen] = scale(add(gap, algebra.variable(chosen), factor), factor)
                    algebra.forget()


def nearest(algebra: Algebra, program: Program) -> Callable[[int, int], int]:
    """A function of a size's uid and a wanted value: the value nearest to it that keeps what is promised of this size
    alone, a multiple and a range.
    """
    factors = _factors(_of_symbols(program))

    def value(uid: int, wanted: int) -> int:
        low, high = algebra.ranges.get(uid, (None, None))
        factor = factors.get(uid, 1)
        least = None if low is None else -(-low // factor) * factor
        most = None if high is None else high // factor * factor
        chosen = -(-wanted // factor) * factor
        chosen = chosen if most is None else min(chosen, most)
        return chosen if least is None else max(chosen, least)

    return value


def related(algebra: Algebra, program: Program, point: Mapping[int, int]) -> dict[int, int]:
    """The point with sizes changed, one after the other, so that it keeps what is promised of one by another
    (`n == 2 * m`, `m <= n`, `n % m == 0`); the same where that does not lead there.
    """
    changed = dict(point)
    promises = [c for c in _of_symbols(program) if len(algebra.variables(algebra.poly(c))) > 1]
    for _ in promises:
        for promise in promises:
            if algebra.variables(algebra.poly(promise)) <= changed.keys():
                _mend(algebra, promise, changed)
    return changed if promises and hold(algebra, program, changed) else dict(point)


def _mend(algebra: Algebra, promise: Expr, point: dict[int, int]) -> None:
    """Change one size so that one promise is kept, if one alone can do that and stays within its own range."""
    if Evaluator(algebra, point)(algebra.poly(promise)):
        return
    left, right = (algebra.poly(a) for a in promise.args[:2])
    divided = promise.args[0]
    if promise.op == "eq" and not right and divided.op in ("floormod", "truncmod") and divided.args[0].op == "var":
        size, divisor = divided.args[0].uid, int(Evaluator(algebra, point)(algebra.poly(divided.args[1])))
        if divisor > 0:
            point[size] = max(1, point[size] // divisor) * divisor
        return
    strict = {"lt": 1, "gt": 1}.get(promise.op, 0)
    gap = add(left, right, -1) if promise.op in ("lt", "le", "eq") else add(right, left, -1)
    if promise.op not in _BOUNDING:
        return
    excess = int(Evaluator(algebra, point)(gap)) + strict  # has to be 0, or at most 0
    for uid, factor in sorted(_linear(algebra, gap).items(), reverse=True):
        step = -(-abs(excess) // abs(factor))
        wanted = point[uid] - (step if (excess > 0) == (factor > 0) else -step)
        low, high = algebra.ranges.get(uid, (None, None))
        exact = excess % abs(factor) == 0 or promise.op != "eq"
        if exact and (low is None or low <= wanted) and (high is None or wanted <= high):
            point[uid] = wanted
            return


def _linear(algebra: Algebra, poly: Poly) -> dict[int, int]:
    """The variables that stand in one term of a polynomial, alone -> their factors."""
    alone = {m: algebra.atoms[m[0]] for m in poly if len(m) == 1}
    found = {int(atom.detail): poly[m] for m, atom in alone.items() if atom.kind == "var"}
    return {u: c for u, c in found.items() if sum(u in algebra.variables({m: 1}) for m in poly) == 1}


def hold(algebra: Algebra, program: Program, point: Mapping[int, int]) -> bool:
    """Whether one choice of sizes keeps the promises."""
    for condition in _of_symbols(program):
        poly = algebra.poly(condition)
        if algebra.variables(poly) <= point.keys() and not Evaluator(algebra, point)(poly):
            return False
    return True


def promises_more(program: Program) -> bool:
    """Whether something is promised of more than sizes: of blocks, loops or what memory holds."""
    return len(list(_of_symbols(program))) < len(list(_conditions(program.assumptions)))


def _of_symbols(program: Program) -> Iterator[Expr]:
    known = {s.uid for s in symbols(program)}
    for condition in _conditions(program.assumptions):
        inside = list(subexpressions(condition))
        if all(e.uid in known for e in inside if e.op == "var") and not any(e.op in ("load", "call") for e in inside):
            yield condition


def _conditions(assumptions: Iterable[Expr]) -> Iterator[Expr]:
    """Conjunctions taken apart."""
    for condition in assumptions:
        if condition.op == "and":
            yield from _conditions(condition.args)
        else:
            yield condition


def _bound(condition: Expr) -> tuple[int, str, int] | None:
    """`n >= 32` as (uid of n, ge, 32); None for others."""
    if condition.op not in _BOUNDING:
        return None
    left, right = condition.args
    op = condition.op
    if left.op == "int":
        left, right, op = right, left, MIRRORED[op]
    if left.op != "var" or right.op != "int":
        return None
    return left.uid, op, int(right.value or 0)


def _factors(conditions: Iterable[Expr]) -> dict[int, int]:
    """uid -> what it is a multiple of."""
    found: dict[int, int] = {}
    for condition in conditions:
        if condition.op != "eq":
            continue
        rest, zero = condition.args if condition.args[1].op == "int" else reversed(condition.args)
        if zero.op == "int" and not zero.value and rest.op in ("floormod", "truncmod"):
            size, factor = rest.args
            if size.op == "var" and factor.op == "int" and int(factor.value or 0) > 0:
                found[size.uid] = lcm(found.get(size.uid, 1), int(factor.value or 1))
    return found


def _multiple(algebra: Algebra, uid: int, factor: int) -> Poly:
    low, high = algebra.ranges.get(uid, (None, None))
    quotient = algebra.fresh()
    algebra.ranges[quotient] = (None if low is None else -(-low // factor), None if high is None else high // factor)
    ((monomial, _),) = algebra.variable(quotient).items()
    return {monomial: factor}


def inputs(program: Program) -> frozenset[str]:
    """The roots whose content is up to the caller, in a source kernel, and stays the same.

    A tile that each iteration of a loop loads from another place is none: its elements have other content each time,
    and a pipeline has several of it.
    """
    given = {program.roots.of(b.data) for b in program.function.buffers}
    copies, written = _writes(program)
    while True:
        more = {to for to, sources in copies.items() if to not in written and sources <= given} - given
        if not more:
            return frozenset(given)
        given |= more


def _writes(program: Program) -> tuple[dict[str, set[str]], set[str]]:
    """Roots that are copied to, with where from; and roots that anything else may write."""
    copies: dict[str, set[str]] = {}
    found = atomics(program)
    written = {site.target.root for site in found.sites}
    written |= {each.root for each in found.plain if each.operation == "store"}
    for placed in program.statements:
        loops = {axis.var.uid for axis in placed.scope.axes if axis.kind not in ("block", "thread")}
        if isinstance(placed.stmt, Store):
            written.add(program.roots.of(placed.stmt.buffer.data))
        for value in expressions(placed.stmt):
            for call in subexpressions(value):
                if call.op == "call" and call.value == "copy":
                    source, target = (_root(program, a) for a in call.args[:2])
                    copies.setdefault(target, set()).add(source)
                    if any(e.op == "var" and e.uid in loops for e in subexpressions(call.args[0])):
                        written.add(target)
                elif call in found.unread:
                    written.update(_root(program, a) for a in subexpressions(call) if a.op in ("load", "call"))
                elif call.op == "call" and not atomic_name(call) and call.value not in _POINTERS:
                    written.update(
                        _root(program, a) for a in destinations(call) if a.op == "call" and a.value in _POINTERS
                    )
    return copies, written


_POINTERS = frozenset(("region", "address_of", "access_ptr", "tvm_access_ptr"))


def _root(program: Program, e: Expr) -> str:
    found = pointer(program, e)
    return found.root if found is not None else ""
