"""Mutants as compilers make them: out of the loop, another stage, a swizzle half done, too wide, overlapping."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

from tests.cpu.mutations.tools import SYNCHRONIZATION, Mutation, binary, called, integer, rewrite, with_argument
from tlcheck.snapshot.ir import Bind, Evaluate, Expr, For, If, Seq, Stmt, Store
from tlcheck.snapshot.walk import children, expressions, postorder, rebuild, statements, substitute, with_expressions

_LANES = re.compile(r"^(u?int|float|bfloat)(\d+)x(\d+)$")
_NARROWER = {"int64": "int32", "int32": "int8", "uint32": "uint8", "float32": "float16", "float16": "float8_e4m3"}
_CP_ASYNC = "ptx_cp_async"


def hoisted(stmt: Stmt) -> Iterator[Mutation]:
    """Have what synchronizes in each iteration do so once, before the loop."""
    if not isinstance(stmt, For) or not isinstance(stmt.body, Seq):
        return
    for part in stmt.body.body:
        if called(part) in SYNCHRONIZATION:
            first = _with_variables(part, {stmt.var.uid: stmt.start})
            yield called(part), partial(_before, part, first)


def _before(part: Stmt, first: Stmt, loop: Stmt) -> Stmt:
    """A loop without a part of it, and what stands before the loop instead."""
    return Seq((first, _at(part, lambda now: Seq(()))(loop)))


def _with_variables(stmt: Stmt, values: dict[int, Expr]) -> Stmt:
    return with_expressions(stmt, substitute(list(expressions(stmt)), values))


def delayed(stmt: Stmt) -> Iterator[Mutation]:
    """A wait for the phase of an iteration waits for that of the iteration before."""
    if not isinstance(stmt, For):
        return
    for part in _inner(stmt.body):
        if called(part) == "mbarrier_wait_parity" and _uses(part, stmt.var):
            before = _with_variables(part, {stmt.var.uid: binary("sub", stmt.var, integer(1), stmt.var.dtype)})
            later = If(Expr("lt", "bool", (stmt.start, stmt.var)), before)
            yield "mbarrier_wait_parity", _at(part, partial(_instead, later))


def _instead(new: Stmt, old: Stmt) -> Stmt:
    return new


def _inner(stmt: Stmt) -> Iterator[Stmt]:
    """The statement and what it encloses, without loops in it."""
    yield stmt
    if not isinstance(stmt, For):
        for part in children(stmt):
            yield from _inner(part)


def _uses(stmt: Stmt, variable: Expr) -> bool:
    return any(e.op == "var" and e.uid == variable.uid for e in postorder(expressions(stmt)))


def staged(stmt: Stmt) -> Iterator[Mutation]:
    """An access in a loop takes the next stage: `(k + 1) % 2` for `k % 2`."""
    if not isinstance(stmt, For) or stmt.kind == "unrolled":
        return
    for part in statements(stmt.body):
        if not isinstance(part, (Evaluate, Store)):
            continue
        for e in postorder(expressions(part)):
            if e.op in ("floormod", "truncmod") and e.args[1].value in (2, 3, 4) and _is_step(e.args[0], stmt.var):
                next_one = _replacing(e, replace(e, args=(binary("add", e.args[0], integer(1)), e.args[1])))
                yield called(part) or "store", _at(part, next_one)


def _is_step(e: Expr, variable: Expr) -> bool:
    """Whether an expression is the variable, or a constant more."""
    base = e.args[0] if e.op == "add" and e.args[1].op == "int" else e
    return base.op == "var" and base.uid == variable.uid


def _at(part: Stmt, change: Callable[[Stmt], Stmt]) -> Callable[[Stmt], Stmt]:
    """The change of a statement as one of what encloses it."""
    return lambda now: rebuild(now, lambda old, new: change(new) if old is part else new)


def _replacing(old: Expr, new: Expr) -> Callable[[Stmt], Stmt]:
    return lambda now: with_expressions(now, [rewrite(e, {id(old): new}) for e in expressions(now)])


def unswizzled(stmt: Stmt) -> Iterator[Mutation]:
    """A term of a swizzle is lost: `x % 2` for `(x + y) % 2`."""
    if not isinstance(stmt, (Evaluate, Store)):
        return
    for e in postorder(expressions(stmt)):
        if e.op == "floormod" and e.args[1].value == 2 and e.args[0].op == "add" and e.args[0].args[1].op != "int":
            yield called(stmt) or "store", _replacing(e, replace(e, args=(e.args[0].args[0], e.args[1])))


def widened(stmt: Stmt) -> Iterator[Mutation]:
    """A vector has twice as many lanes; a copy twice as many elements, or half where it has 16 bytes already."""
    if isinstance(stmt, Store) and any(i.op == "ramp" for i in stmt.indices):
        yield "vector", lambda now: with_expressions(now, [_doubled(e) for e in expressions(now)])
    if called(stmt) == _CP_ASYNC and isinstance(stmt, Evaluate):
        size = next(a for a in stmt.value.args[2:] if a.op == "int")
        count = int(size.value or 0)
        yield "fewer", _replacing(size, replace(size, value=count // 2))


def _doubled(root: Expr) -> Expr:
    made: dict[int, Expr] = {}
    for e in postorder([root]):
        args = tuple(made[id(a)] for a in e.args)
        lanes = _LANES.match(e.dtype)
        if lanes is None:
            made[id(e)] = replace(e, args=args)
            continue
        kind, bits, count = lanes.groups()
        value = int(e.value or 0) * 2 if e.op in ("ramp", "broadcast") else e.value
        made[id(e)] = replace(e, args=args, dtype=f"{kind}{bits}x{int(count) * 2}", value=value)
    return made[id(root)]


def unpredicated(stmt: Stmt) -> Iterator[Mutation]:
    """A copy loses its predicate."""
    if called(stmt) == _CP_ASYNC and isinstance(stmt, Evaluate) and len(stmt.value.args) in (4, 6):
        yield _CP_ASYNC, lambda now: with_argument(now, len(stmt.value.args) - 1, lambda e: integer(1))


def narrowed(stmt: Stmt) -> Iterator[Mutation]:
    """A value is cast to a narrower type on its way."""
    if not isinstance(stmt, Store):
        return
    for e in postorder([stmt.value]):
        dtype, *lanes = e.dtype.split("x")
        if e.op == "cast" and dtype in _NARROWER:
            narrow = "x".join([_NARROWER[dtype], *lanes])
            yield dtype, _replacing(e, replace(e, args=(Expr("cast", narrow, e.args),)))


def overlapping(stmt: Stmt) -> Iterator[Mutation]:
    """A buffer in merged shared memory begins 128 bytes too early."""
    if isinstance(stmt, Bind) and stmt.value.value == "handle_add_byte_offset":
        offset = int(stmt.value.args[1].value or 0)
        if offset:
            moved = replace(stmt.value, args=(stmt.value.args[0], integer(offset - 128)))
            yield "buffer", lambda now: with_expressions(now, [moved])


KINDS: dict[str, Callable[[Stmt], Iterator[Mutation]]] = {
    "hoist": hoisted,
    "delay": delayed,
    "stage": staged,
    "unswizzle": unswizzled,
    "widen": widened,
    "unpredicate": unpredicated,
    "narrow": narrowed,
    "overlap": overlapping,
}
