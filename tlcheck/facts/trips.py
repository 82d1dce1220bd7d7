"""Describe how often a statement runs in one block: extents of loops and threads, less what its guards keep away.

Extents and guards that depend on the block are taken for the block in the middle of the grid, those that depend on a
size for `SIZE`. A guard on the content of memory counts as if it always held.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

import numpy as np

from tlcheck.algebra.algebra import Algebra, Content
from tlcheck.algebra.evaluate import Evaluator, Values
from tlcheck.algebra.polynomial import Poly, as_constant
from tlcheck.facts.kernel_facts import Count
from tlcheck.program.walk import Axis, Guard, Program, Scope
from tlcheck.signatures.exchanges import ELECTIONS
from tlcheck.signatures.table import family_of
from tlcheck.snapshot.expression_text import render_expression
from tlcheck.snapshot.ir import Bind, Expr

SIZE = 4096  # stands for every size that only the caller knows
ROW = 64
_MAX_POINTS = 1 << 20  # beyond this many points guards are left out


class Trips:
    """Counts for the statements of one function."""

    def __init__(self, program: Program) -> None:
        self._algebra = Algebra(self._content)
        self._algebra.bindings = {p.stmt.var.uid: p.stmt.value for p in program.statements if isinstance(p.stmt, Bind)}
        self._known: dict[object, Count] = {}

    def count(self, scope: Scope, *, threads: bool = True) -> Count:
        """Return how often a statement in `scope` runs; with threads=False by each thread that gets there."""
        guards = tuple((id(guard.condition), guard.holds) for guard in scope.guards)
        key = (tuple(map(id, scope.axes)), guards, threads)
        if key not in self._known:
            self._known[key] = self._count(scope, threads)
        return self._known[key]

    def number(self, expr: Expr) -> int:
        """The value of an expression of sizes."""
        return self._scalar(expr, {})

    def text(self, expr: Expr) -> str:
        """A number, or the expression as text."""
        value = as_constant(self._algebra.poly(expr))
        return str(value) if value is not None else render_expression(expr, _name, _view)

    def _count(self, scope: Scope, threads: bool) -> Count:
        middle: dict[int, Values] = {}
        extents: dict[int, int] = {}
        starts: dict[int, int] = {}
        texts = []
        for axis in scope.axes:
            start, extent = self._scalar(axis.start, middle), max(0, self._scalar(axis.extent, middle))
            middle[axis.var.uid] = start + extent // 2
            if axis.kind == "block" or (axis.kind == "thread" and not threads):
                continue
            extents[axis.var.uid], starts[axis.var.uid] = extent, start
            if as_constant(self._algebra.poly(axis.extent)) is None:
                texts.append(f"({self.text(axis.extent)})")
        guards = [g for guard in scope.guards for g in _split(guard)]
        if not threads:
            own = {axis.var.uid for axis in scope.axes if axis.kind == "thread"}
            guards = [g for g in guards if not own & self._algebra.variables(self._algebra.poly(g.condition))]
        number, used = self._points(guards, extents, starts, middle)
        number *= prod(extent for uid, extent in extents.items() if uid not in used)
        if threads:
            number = _elected(guards, number, prod(extents[a.var.uid] for a in scope.axes if a.kind == "thread"))
        return Count(number, self._text(number, texts, scope.axes, middle))

    def _text(self, number: int, texts: Sequence[str], axes: Sequence[Axis], middle: dict[int, Values]) -> str:
        if not texts:
            return ""
        varying = prod(
            self._scalar(a.extent, middle) for a in axes if as_constant(self._algebra.poly(a.extent)) is None
        )
        rest = number // varying if varying else 0
        return " * ".join([*([str(rest)] if rest != 1 else []), *texts])

    def _points(
        self, guards: Sequence[Guard], extents: dict[int, int], starts: dict[int, int], middle: dict[int, Values]
    ) -> tuple[int, set[int]]:
        """Number of points of the axes that the guards depend on at which all of them hold, and those axes."""
        polys = [(self._algebra.poly(g.condition), g.holds) for g in guards if not _is_elect(g)]
        polys = [(poly, holds) for poly, holds in polys if not self._reads(poly)]
        used = [u for u in extents if any(u in self._algebra.variables(poly) for poly, _ in polys)]
        points = prod(extents[u] for u in used)
        if points > _MAX_POINTS or points == 0:
            return (0 if points == 0 else 1), (set(used) if points == 0 else set())
        env = dict(middle)
        for place, u in enumerate(used):
            shape = [extents[u] if n == place else 1 for n in range(len(used))]
            env[u] = np.arange(starts[u], starts[u] + extents[u], dtype=np.int64).reshape(shape)
        inside = np.ones([extents[u] for u in used], dtype=np.bool_)
        for poly, holds in polys:
            inside &= np.not_equal(self._value(poly, env), 0) == holds
        return int(inside.sum()), set(used)

    def _reads(self, poly: Poly) -> bool:
        """Whether a polynomial has anything that is not a variable or arithmetic."""
        atoms = [self._algebra.atoms[n] for monomial in poly for n in monomial]
        return any(a.kind in ("load", "call", "unknown") or any(self._reads(q) for q in a.args) for a in atoms)

    def _scalar(self, expr: Expr, env: dict[int, Values]) -> int:
        return int(np.asarray(self._value(self._algebra.poly(expr), env)).reshape(-1)[0])

    def _value(self, poly: Poly, env: dict[int, Values]) -> Values:
        sizes = {uid: SIZE for uid in self._algebra.variables(poly) if uid not in env}
        return Evaluator(self._algebra, {**env, **sizes}, _row_start)(poly)

    def _content(self, load: Expr) -> Content:
        return Content(load.buffer.name if load.buffer else "", self._algebra.poly(load.args[-1]))


def _row_start(element: Values) -> Values:
    """Memory in an extent holds where rows of `ROW` elements begin: the usual form of a ragged loop's bounds."""
    return element * ROW


def _split(guard: Guard) -> Iterator[Guard]:
    """A conjunction as its parts."""
    if guard.holds and guard.condition.op == "and":
        for part in guard.condition.args:
            yield from _split(Guard(part))
    else:
        yield guard


def _is_elect(guard: Guard) -> bool:
    return family_of(guard.condition) is ELECTIONS


def _elected(guards: Sequence[Guard], number: int, threads: int) -> int:
    """`tl_shuffle_elect(n)` lets one of n threads through; of all threads if n is 0."""
    for guard in guards:
        if _is_elect(guard) and guard.holds:
            group = guard.condition.args[0].value if guard.condition.args else 0
            group = int(group) if isinstance(group, int) and group else threads
            return max(1, number // max(group, 1)) if number else 0
    return number


def _name(var: Expr) -> str:
    return str(var.value)


def _view(load: Expr) -> str:
    return load.buffer.name if load.buffer else "?"
