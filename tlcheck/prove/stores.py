"""Find what a load finds: the stores to memory in one function, and when it is written again."""

from __future__ import annotations

from tlcheck.algebra.algebra import Algebra, Content
from tlcheck.algebra.polynomial import add, as_constant, constant
from tlcheck.program.atomics import pointer
from tlcheck.program.layouts import flatten, row_major
from tlcheck.program.roles import WRITE, accesses
from tlcheck.program.walk import Axis, Placed, Program, expressions, subexpressions
from tlcheck.prove.vectors import at_lane
from tlcheck.reasons import VALUE_UNREAD, Reason
from tlcheck.snapshot.dtypes import dtype_of
from tlcheck.snapshot.ir import Expr, Store
from tlcheck.snapshot.walk import substitute


class UnreadableError(Exception):
    """The reason why a value or an address cannot be read; the message is the verdict's reason."""

    @property
    def reason(self) -> Reason:
        """The message with its code."""
        return Reason(VALUE_UNREAD, str(self))


class Stores:
    """The statements of one function that write memory."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._stores: dict[str, list[Placed]] | None = None
        self._writes: dict[str, list[Placed]] | None = None

    def last(self, root: str, load: Expr, placed: Placed) -> tuple[Expr, Placed, tuple[Expr, ...]]:
        """Return what was last stored, before `placed`, where `load` reads, and the conditions under which that is so:
        registers that a pass invented have one store in reach.
        """
        for store in reversed([s for s in self._stores_to(root) if s.order < placed.order]):
            found = self._by(store, root, load, placed)
            if found is not None:
                return found[0], store, found[1]
        raise UnreadableError(f"its value comes from {root}, which nothing stores to before")

    def _by(self, store: Placed, root: str, load: Expr, placed: Placed) -> tuple[Expr, tuple[Expr, ...]] | None:
        """Return what a store puts where `load` reads, and under which conditions; None if it is to another element."""
        stmt = store.stmt
        assert isinstance(stmt, Store)
        shared = {id(a.var) for a in placed.scope.axes}
        own = [a for a in store.scope.axes if id(a.var) not in shared]
        guards = {id(g.condition) for g in placed.scope.guards}
        if stmt.predicate is not None or any(id(g.condition) not in guards for g in store.scope.guards):
            raise UnreadableError(f"its value comes from {root}, which is stored to under another condition")
        return _solve(store, own, load, root, self.program)

    def require_unchanged(self, load: Expr, read: Placed, used: Placed) -> None:
        """Raises UnreadableError where what was read before its use may have been written again in between."""
        if read is used:
            return
        around = {id(a.var) for a in read.scope.axes}
        again = {id(a.var) for a in used.scope.axes} - around  # loops that run between the two
        for root in {self.program.roots.of(e.buffer.data) for e in subexpressions(load) if e.buffer is not None}:
            for write in self.writes_to(root):
                repeated = any(id(a.var) in again for a in write.scope.axes)
                if read.order < write.order and (write.order < used.order or repeated):
                    raise UnreadableError(f"its value was read from {root} before that was written again")

    def writes_to(self, root: str) -> list[Placed]:
        """The statements that may write a root, in program order."""
        if self._writes is None:
            self._writes = {}
            for placed in self.program.statements:
                for written in writes(self.program, placed):
                    self._writes.setdefault(written, []).append(placed)
        return self._writes.get(root, [])

    def _stores_to(self, root: str) -> list[Placed]:
        if self._stores is None:
            self._stores = {}
            for placed in self.program.statements:
                if isinstance(placed.stmt, Store):
                    key = self.program.roots.of(placed.stmt.buffer.data)
                    self._stores.setdefault(key, []).append(placed)
        return self._stores.get(root, [])


def writes(program: Program, placed: Placed) -> set[str]:
    """The roots that a statement may write."""
    stored = {program.roots.of(placed.stmt.buffer.data)} if isinstance(placed.stmt, Store) else set()
    found = (access for value in expressions(placed.stmt) for access in accesses(value))
    return stored | {program.roots.of(data) for data, mode in found if mode & WRITE}


def _solve(
    placed: Placed, own: list[Axis], load: Expr, root: str, program: Program
) -> tuple[Expr, tuple[Expr, ...]] | None:
    """The stored value for the index that `load` reads; the store's own loop variable (or lane) takes the value that
    hits it, which has to be one that it takes at all. None where another element is stored to.
    """
    store = placed.stmt
    assert isinstance(store, Store)
    if len(store.indices) != 1 or len(load.args) != 1:
        raise UnreadableError(f"its value comes from {root}, which has several dimensions")
    width = dtype_of(store.indices[0].dtype).lanes
    lane = Expr("var", "int32", value="lane", uid=-1000)
    ranges = {a.var.uid: (a.start, a.extent) for a in own}
    ranges[lane.uid] = (Expr("int", "int32", value=0), Expr("int", "int32", value=width))
    free = [*(a.var for a in own), lane]
    index = at_lane(store.indices[0], lane, placed.scope)
    value = at_lane(store.value, lane, placed.scope)
    algebra = Algebra(lambda e: _content(algebra, program, e))
    poly = algebra.poly(index)
    hit = [v for v in free if algebra.variables(poly) & {v.uid}]
    if not hit:
        apart = add(poly, algebra.poly(load.args[0]), -1)
        if not apart:
            return value, ()
        return None if as_constant(apart) else (value, (Expr("eq", "bool", (index, load.args[0])),))
    if len(hit) > 1:
        raise UnreadableError(f"its value comes from {root}, whose stores are not understood")
    var = hit[0]
    term = next(iter(algebra.variable(var.uid)))
    if poly.get(term) != 1 or sum(1 for m in poly if algebra.variables({m: 1}) & {var.uid}) != 1:
        raise UnreadableError(f"its value comes from {root}, whose stores are not understood")
    zero = Expr("int", var.dtype, value=0)
    rest = substitute([index], {var.uid: zero})[0]
    solution = Expr("sub", index.dtype, (load.args[0], rest))
    start, extent = ranges[var.uid]
    last = Expr("add", index.dtype, (start, extent))
    taken = (Expr("ge", "bool", (solution, start)), Expr("lt", "bool", (solution, last)))
    return substitute([value], {var.uid: solution})[0], taken


def _content(algebra: Algebra, program: Program, e: Expr) -> Content:
    found = pointer(program, e)
    if found is None:
        raise UnreadableError(f"an address is not understood ({e.value})")
    indices = [algebra.poly(i) for i in found.indices]
    shape = [algebra.poly(s) for s in found.buffer.shape]
    return Content(found.root, flatten(indices, row_major(shape, algebra) if shape else [constant(1)], algebra))
