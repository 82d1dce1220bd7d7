"""The variables and conditions around one atomic: what is enumerated, what stays symbolic, where it runs."""

from __future__ import annotations

from collections.abc import Mapping, Set

from tlcheck.algebra.algebra import Algebra
from tlcheck.algebra.evaluate import Dimension
from tlcheck.algebra.polynomial import Poly, add, as_constant, constant
from tlcheck.program.atomics import Site
from tlcheck.program.threads import narrowed
from tlcheck.program.tma import LANE
from tlcheck.program.walk import Axis, subexpressions
from tlcheck.prove.footprints import TAGS, THREADS
from tlcheck.prove.stores import UnreadableError
from tlcheck.signatures.exchanges import ELECTIONS
from tlcheck.signatures.table import family_of
from tlcheck.snapshot.dtypes import dtype_of
from tlcheck.snapshot.ir import Expr
from tlcheck.snapshot.operators import OPPOSITE, ORDER


class Surroundings:
    """The space, loops, conditions and flags of a footprint (see there), as they are found.

    outer: see `Builder`. lane, tile: variables of the elements of a vector instruction and of a tile. facts: >= 0, what
    a launch or loop of symbolic extent says of its variable.
    """

    def __init__(self, algebra: Algebra, site: Site, outer: frozenset[int]) -> None:
        self.algebra = algebra
        self.site = site
        self.outer = outer
        self.space: list[Dimension] = []
        self.loops: dict[int, tuple[Poly, Poly]] = {}
        self.conditions: list[Poly] = []
        self.flags: list[Poly] = []
        self.lane: Expr | None = None
        self.tile: list[Expr] = []
        self.facts: list[Poly] = []
        self.launch: dict[int, Poly] = {}

    def enter(self, aliases: Mapping[int, int], fixed: Mapping[int, Poly]) -> None:
        """Make the site's variables those of the algebra. aliases, fixed: see `Builder`. Raises UnreadableError."""
        algebra = self.algebra
        algebra.bindings = dict(self.site.scope.bindings)
        algebra.names = dict(aliases)
        algebra.values = dict(fixed)
        for axis in self.site.scope.axes:
            if axis.tag in TAGS:
                algebra.names[axis.var.uid] = TAGS[axis.tag]
        algebra.forget()
        once = self._runs_once()
        for axis in self.site.scope.axes:
            self._axis(axis, once)
        if self.site.tile:
            # the elements of a tile, one variable for each dimension longer than 1
            for number, extent in enumerate(self.site.target.extents):
                size = as_constant(self.algebra.poly(extent))
                if size is None:
                    raise UnreadableError("its tile's extent is not a constant")
                uid = -200 - number
                self.algebra.ranges[uid] = (0, size - 1)
                self.tile.append(Expr("var", "int32", value=f"e{number}", uid=uid))
                if size == 1:
                    self.algebra.values[uid] = {}
                else:
                    self.space.append(Dimension(uid, 0, size))
        if self.site.width > 1:
            self.algebra.ranges[LANE] = (0, self.site.width - 1)
            self.lane = Expr("var", "int32", value="lane", uid=LANE)
            self.space.append(Dimension(LANE, 0, self.site.width))
        for guard in self.site.scope.guards:
            if not (once and self._on_threads(guard.condition)):
                self._guard(guard.condition, guard.holds)

    def _runs_once(self) -> bool:
        """Whether the block runs it as one: a tile operator or T.Parallel. A tile of one element to which each thread
        adds a value of its own is run by every thread. Raises UnreadableError.
        """
        site = self.site
        parallel = any(a.kind == "parallel" for a in site.scope.axes)
        threads = {a.var.uid for a in site.scope.axes if a.kind == "thread"}
        if not (site.tile or parallel) or not _uses(site.call, threads, self.algebra.bindings):
            return site.tile or parallel
        if parallel or any(as_constant(self.algebra.poly(e)) != 1 for e in site.target.extents):
            raise UnreadableError("the block runs it as one, but what it adds depends on the thread")
        return False

    def _on_threads(self, condition: Expr) -> bool:
        """Whether a condition only picks the threads that run a tile operator: it is still run once a block."""
        used = self.algebra.variables(self.algebra.poly(condition))
        if used & THREADS and not used <= THREADS:
            raise UnreadableError("a tile operator runs under a condition on threads and on something else")
        return bool(used) and used <= THREADS

    def _axis(self, axis: Axis, once: bool) -> None:
        """A loop or launch dimension: kept symbolic, enumerated, or (threads of what runs once a block) left out."""
        algebra = self.algebra
        uid = algebra.names.get(axis.var.uid, axis.var.uid)
        start, extent = algebra.poly(axis.start), algebra.poly(axis.extent)
        if axis.kind == "thread" and once:
            return
        if axis.kind == "thread" and axis.tag not in TAGS:
            raise UnreadableError("it runs in a thread binding that is not a launch dimension")
        fixed = algebra.values.get(uid)
        if fixed is not None:
            return
        low = algebra.bounds(start)[0]
        last = algebra.bounds(add(add(start, extent), constant(1), -1))[1]
        if axis.kind == "block":
            self.launch[uid] = extent
        if axis.kind == "block" or uid in self.outer:
            if axis.kind == "thread" and low is not None and last is not None:
                low, last = self._narrow(uid, low, last)
            algebra.ranges[uid] = (low, last)
            if as_constant(extent) is None:
                self.facts.append(add(add(add(start, extent), constant(1), -1), algebra.variable(uid), -1))
            if axis.kind != "block":
                self.loops[uid] = (start, extent)
            return
        self._enumerate(uid, start, extent)

    def _enumerate(self, uid: int, start: Poly, extent: Poly) -> None:
        algebra = self.algebra
        most = algebra.bounds(extent)[1]
        if most is None:
            raise UnreadableError("it runs in a loop whose extent is not known before the kernel runs")
        first = as_constant(start)
        if first is not None:
            low, high = self._narrow(uid, first, first + most - 1)
            algebra.ranges[uid] = (low, high)
            self.space.append(Dimension(uid, low, max(high - low + 1, 0)))
            position = add(algebra.variable(uid), constant(first), -1)
        else:  # count from 0, the variable is start + that
            counter = algebra.fresh()
            algebra.ranges[counter] = (0, most - 1)
            self.space.append(Dimension(counter, 0, most))
            position = algebra.variable(counter)
            algebra.values[uid] = add(start, position)
            algebra.forget()
        if as_constant(extent) is None:
            self.conditions.append(add(add(extent, constant(1), -1), position, -1))

    def _narrow(self, uid: int, low: int, high: int) -> tuple[int, int]:
        """The part of a variable's range that the guards leave."""
        names = self.algebra.names
        return narrowed(self.site.scope.guards, lambda e: names.get(e.uid, e.uid) == uid, low, high)

    def _guard(self, condition: Expr, holds: bool) -> None:
        """A condition as polynomials >= 0 where that is possible, else as a flag."""
        op = condition.op
        if family_of(condition) is ELECTIONS:
            # one thread of each group of as many, of the block for 0; which one does not matter
            zero = Expr("int", "int32", value=0)
            var = next((a.var for a in self.site.scope.axes if a.tag == "threadIdx.x"), zero)
            group = condition.args[0]
            chosen = var if group.value == 0 else Expr("floormod", "int32", (var, group))
            self._guard(Expr("eq", "bool", (chosen, zero)), holds)
        elif op == "var" and condition.uid in self.algebra.bindings:
            self._guard(self.algebra.bindings[condition.uid], holds)
        elif op == "not":
            self._guard(condition.args[0], not holds)
        elif (op == "and" and holds) or (op == "or" and not holds):
            for part in condition.args:
                self._guard(part, holds)
        elif op in ORDER and dtype_of(condition.args[0].dtype).is_integral:
            self.keep(self.conditions, self._difference(op if holds else OPPOSITE[op], condition))
        else:
            poly = self.algebra.poly(condition)
            if not holds:
                poly = self.algebra.poly(Expr("not", "bool", (condition,)))
            if as_constant(poly) != 1:
                self.flags.append(poly)

    def _difference(self, op: str, condition: Expr) -> Poly:
        sides = [self.algebra.poly(x) for x in condition.args]
        smaller, larger, gap = ORDER[op]
        apart = add(sides[larger], sides[smaller], -1)
        return add(apart, constant(gap), -1) if gap else apart

    def keep(self, where: list[Poly], poly: Poly) -> None:
        """Note that poly >= 0, unless that follows from the ranges or from the extent of a block or loop."""
        quotients = [
            m for m, c in poly.items() if len(m) == 1 and self.algebra.atoms[m[0]].kind == "//" and abs(c) == 1
        ]
        if any(map(self._follows, (poly, *(self.algebra.without_quotient(poly, m) for m in quotients)))):
            return
        low = self.algebra.bounds(poly)[0]
        if low is None or low < 0:
            where.append(poly)

    def _follows(self, poly: Poly) -> bool:
        """Whether poly >= 0 follows from the extent of a block or loop."""
        for fact in self.facts:
            for times in {poly.get(m, 0) // c for m, c in fact.items() if m}:
                rest = self.algebra.bounds(add(poly, fact, -times))[0] if times > 0 else None
                if rest is not None and rest >= 0:
                    return True
        return False


def _uses(expr: Expr, uids: Set[int], bindings: Mapping[int, Expr]) -> bool:
    """Whether an expression has any of some variables, also by way of what variables in it are bound to."""
    used = {e.uid for e in subexpressions(expr) if e.op == "var"}
    return bool(used & uids) or any(_uses(bindings[uid], uids, bindings) for uid in used & bindings.keys())
