"""What an atomic adds: the form of its value and the element that each load in it reads.

Casts do not count as form, and neither does the order of the operands of + and *: passes move them. A value staged in
registers by a pass (`C_local_cast`) is followed back to what was stored there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from tlcheck.algebra.algebra import Algebra, Content
from tlcheck.program.atomics import Pointer
from tlcheck.program.layouts import flatten, row_major
from tlcheck.program.walk import Placed, Program, Scope
from tlcheck.snapshot.dtypes import dtype_of
from tlcheck.snapshot.ir import Buffer, Expr, Store
from tlcheck.snapshot.walk import substitute

_COMMUTATIVE = frozenset("add mul min max and or eq ne".split())
_SHAPED = frozenset(
    "add sub mul div min max not and or eq ne lt le gt ge mod floordiv floormod truncdiv truncmod".split()
)
MAX_DEPTH = 8
_MATH = re.compile(
    r"^(?:__|h)?(exp2|exp10|exp|log2|log10|log1p|log|rsqrt|sqrt|tanh|sinh|cosh|sin|cos|tan|erf|fabs|pow)f?$"
)


class UnreadableError(Exception):
    """Why a value or an address cannot be read; the message is the verdict's reason."""


@dataclass(frozen=True, slots=True, eq=False)
class Load:
    """A leaf of a value: one element of memory, or (without a root) an integer expression."""

    root: str
    buffer: Buffer | None
    indices: tuple[Expr, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Value:
    """`form`: the expression with its leaves left out; `leaves` in the order of the form; `conditions` under which it
    is this.
    """

    form: str
    leaves: tuple[Load, ...]
    conditions: tuple[Expr, ...] = ()


def at_lane(expr: Expr, lane: Expr | None) -> Expr:
    """One lane of a vector expression: a ramp becomes base + stride * lane."""
    if dtype_of(expr.dtype).lanes == 1 and not any(dtype_of(a.dtype).lanes > 1 for a in expr.args):
        return expr
    if expr.op == "ramp":
        base, stride = expr.args
        assert lane is not None
        return Expr("add", base.dtype, (base, Expr("mul", base.dtype, (stride, lane))))
    if expr.op == "broadcast":
        return at_lane(expr.args[0], lane)
    args = tuple(at_lane(a, lane) for a in expr.args)
    dtype = dtype_of(expr.dtype).name
    return Expr(expr.op, dtype, args, expr.value, expr.uid, expr.buffer, expr.annotations)


class Reader:
    """Reads values in one function. `known`: roots that the kernel itself declares, where a value's way back ends."""

    def __init__(self, program: Program, known: frozenset[str]) -> None:
        self.program = program
        self.known = known
        self._stores: dict[str, list[Placed]] | None = None

    def read(
        self, value: Expr | Pointer, lane: Expr | None, placed: Placed, scope: Scope, unguarded: bool = False
    ) -> Value:
        """The value of one lane. `unguarded`: `if_then_else(c, x, 0)` is read as x under the condition c. Raises
        UnreadableError.
        """
        if isinstance(value, Pointer):
            assert lane is not None
            last = value.indices[-1]
            indices = (*value.indices[:-1], Expr("add", last.dtype, (last, lane)))
            expr = Expr("load", value.dtype, indices, buffer=value.buffer)
        else:
            expr = at_lane(value, lane)
        reading = _Reading(self, dict(scope.bindings), unguarded)
        form, leaves = reading.form(expr, placed, 0)
        return Value(form, leaves, tuple(reading.conditions))

    def staged(self, root: str, load: Expr, placed: Placed) -> tuple[Expr, Placed]:
        """What was last stored, before `placed`, where `load` reads: registers that a pass invented have one store in
        reach.
        """
        candidates = [s for s in self._stores_to(root) if s.order < placed.order]
        if not candidates:
            raise UnreadableError(f"its value comes from {root}, which nothing stores to before")
        store = candidates[-1]
        stmt = store.stmt
        assert isinstance(stmt, Store)
        shared = {id(a.var) for a in placed.scope.axes}
        own = [a.var for a in store.scope.axes if id(a.var) not in shared]
        guards = {id(g.condition) for g in placed.scope.guards}
        if stmt.predicate is not None or any(id(g.condition) not in guards for g in store.scope.guards):
            raise UnreadableError(f"its value comes from {root}, which is stored to under another condition")
        return _solve(stmt, own, load, root, self.program), store

    def _stores_to(self, root: str) -> list[Placed]:
        if self._stores is None:
            self._stores = {}
            for placed in self.program.statements:
                if isinstance(placed.stmt, Store):
                    key = self.program.roots.of(placed.stmt.buffer.data)
                    self._stores.setdefault(key, []).append(placed)
        return self._stores.get(root, [])


Part = tuple[str, tuple[Load, ...]]


class _Reading:
    """One value being read."""

    def __init__(self, reader: Reader, bound: Mapping[int, Expr], unguarded: bool) -> None:
        self.reader = reader
        self.bound = bound
        self.unguarded = unguarded
        self.conditions: list[Expr] = []

    def form(self, e: Expr, placed: Placed, depth: int) -> Part:
        if depth > MAX_DEPTH:
            raise UnreadableError("its value is staged through too many registers")
        if e.op == "cast":
            return self.form(e.args[0], placed, depth)
        if e.op == "var" and e.uid in self.bound:
            return self.form(self.bound[e.uid], placed, depth + 1)
        if e.op in ("float", "int"):
            return repr(float(e.value or 0)), ()
        if e.op == "load" and e.buffer is not None:
            return self._load(e, placed, depth)
        if dtype_of(e.dtype).is_integral and not _loads(e, self.bound):
            return "#", (Load("", None, (e,)),)
        if e.op == "call" and e.value == "if_then_else" and self.unguarded:
            self.conditions.append(e.args[0])
            return self.form(e.args[1], placed, depth)
        if e.op not in _SHAPED and e.op not in ("call", "select"):
            what = f"{e.op} {e.value or ''}".strip()
            raise UnreadableError(f"its value has a part that is not understood ({what})")
        return self._operator(e, placed, depth)

    def _operator(self, e: Expr, placed: Placed, depth: int) -> Part:
        name, args = _function(e) if e.op == "call" else (e.op, e.args)
        parts = [self.form(arg, placed, depth) for arg in args]
        if e.op in _COMMUTATIVE:
            parts.sort(key=lambda part: (part[0], [leaf.root for leaf in part[1]]))
        return f"{name}({','.join(form for form, _ in parts)})", tuple(leaf for _, own in parts for leaf in own)

    def _load(self, e: Expr, placed: Placed, depth: int) -> Part:
        assert e.buffer is not None
        root = self.reader.program.roots.of(e.buffer.data)
        if root not in self.reader.known and e.buffer.scope.startswith("local"):
            stored, at = self.reader.staged(root, e, placed)
            return self.form(stored, at, depth + 1)
        return "@", (Load(root, e.buffer, e.args),)


def _function(call: Expr) -> tuple[str, tuple[Expr, ...]]:
    """Name and arguments of a call; the device's name of a mathematical function (`__expf`) is the function's."""
    name, args = str(call.value), call.args
    if name in ("call_extern", "call_pure_extern") and args and args[0].op == "str":
        name, args = str(args[0].value), args[1:]
        match = _MATH.match(name)
        name = match[1] if match else name
    return f"call:{name}", args


def _solve(store: Store, own: list[Expr], load: Expr, root: str, program: Program) -> Expr:
    """The stored value for the index that `load` reads; the store's own loop variable (or lane) takes the value that
    hits it.
    """
    if len(store.indices) != 1 or len(load.args) != 1:
        raise UnreadableError(f"its value comes from {root}, which has several dimensions")
    width = dtype_of(store.indices[0].dtype).lanes
    lane = Expr("var", "int32", value="lane", uid=-1000)
    free = [*own, lane] if width > 1 else own
    index = at_lane(store.indices[0], lane)
    value = at_lane(store.value, lane)
    algebra = Algebra(lambda e: _content(algebra, program, e))
    poly = algebra.poly(index)
    hit = [v for v in free if algebra.variables(poly) & {v.uid}]
    if not hit:
        return value
    if len(hit) > 1:
        raise UnreadableError(f"its value comes from {root}, whose stores are not understood")
    var = hit[0]
    term = next(iter(algebra.variable(var.uid)))
    if poly.get(term) != 1 or sum(1 for m in poly if algebra.variables({m: 1}) & {var.uid}) != 1:
        raise UnreadableError(f"its value comes from {root}, whose stores are not understood")
    zero = Expr("int", var.dtype, value=0)
    rest = substitute([index], {var.uid: zero})[0]
    solution = Expr("sub", index.dtype, (load.args[0], rest))
    return substitute([value], {var.uid: solution})[0]


def _content(algebra: Algebra, program: Program, e: Expr) -> Content:
    assert e.buffer is not None
    indices = [algebra.poly(i) for i in e.args]
    shape = [algebra.poly(s) for s in e.buffer.shape]
    return Content(program.roots.of(e.buffer.data), flatten(indices, row_major(shape, algebra), algebra))


def _loads(e: Expr, bound: Mapping[int, Expr]) -> bool:
    if e.op == "load" or (e.op == "call" and e.value not in ("if_then_else",)):
        return True
    if e.op == "var" and e.uid in bound:
        return _loads(bound[e.uid], bound)
    return any(_loads(a, bound) for a in e.args)
