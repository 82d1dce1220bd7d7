"""What is up to the caller of a kernel: sizes, as far as its author promises nothing of them, and what memory holds.

Newer releases drop guards on the strength of the promises (`T.assume`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from math import lcm

from tlcheck.algebra.algebra import Algebra, Poly
from tlcheck.algebra.evaluate import Evaluator
from tlcheck.program.atomics import is_atomic, pointer
from tlcheck.program.walk import Program, expressions, subexpressions
from tlcheck.snapshot.ir import Expr, Store

_MIRRORED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq"}


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
    if condition.op not in _MIRRORED:
        return None
    left, right = condition.args
    op = condition.op
    if left.op == "int":
        left, right, op = right, left, _MIRRORED[op]
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
    """The roots whose content is up to the caller, in a kernel as written."""
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
    written: set[str] = set()
    for placed in program.statements:
        if isinstance(placed.stmt, Store):
            written.add(program.roots.of(placed.stmt.buffer.data))
        for value in expressions(placed.stmt):
            for call in subexpressions(value):
                if call.op == "call" and call.value == "copy":
                    source, target = (_root(program, a) for a in call.args[:2])
                    copies.setdefault(target, set()).add(source)
                elif call.op == "call" and not is_atomic(str(call.value)) and call.value not in _POINTERS:
                    written.update(_root(program, a) for a in call.args if a.op == "call" and a.value in _POINTERS)
    return copies, written


_POINTERS = frozenset(("region", "address_of", "access_ptr", "tvm_access_ptr"))


def _root(program: Program, e: Expr) -> str:
    found = pointer(program, e)
    return found.root if found is not None else ""
