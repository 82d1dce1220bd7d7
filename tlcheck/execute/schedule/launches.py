"""The kernels of a function, and how many blocks and threads they have.

Of several kernels each starts when all blocks of the one before it have ended.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from math import prod

from tlcheck.execute.memory.plain import evaluated
from tlcheck.execute.stops import NotModelled
from tlcheck.program.launch import MOST_THREADS
from tlcheck.program.walk import declared_threads
from tlcheck.snapshot.ir import (
    Alloc,
    Assert,
    Attr,
    Bind,
    Block,
    Evaluate,
    Expr,
    For,
    Function,
    Launch,
    Seq,
    Stmt,
    Thread,
)
from tlcheck.snapshot.walk import children, statements

_MOST_LAUNCHES = 64  # by a loop around a kernel


@lru_cache(maxsize=16)
def kernels(function: Function) -> tuple[Function, ...]:
    """One function for each kernel, in order. Raises NotModelled where something else stands between them."""
    if sum(1 for _ in _launches(function.body)) < 2:
        return (function,)
    return tuple(replace(function, body=body) for body in _separated(function.body))


def _launches(stmt: Stmt) -> Iterator[Stmt]:
    """The outermost launch statements; that of a loop twice, since it launches more than one kernel."""
    if isinstance(stmt, (Launch, Thread)):
        yield stmt
        return
    for part in children(stmt):
        for launch in _launches(part):
            yield from (launch,) * (1 + isinstance(stmt, For))


def _separated(stmt: Stmt) -> list[Stmt]:
    """Each kernel of a statement, with what is around it."""
    if isinstance(stmt, Launch):
        return [stmt.body]
    if isinstance(stmt, Thread):
        return [stmt]
    if isinstance(stmt, (Block, Attr)):
        return [replace(stmt, body=body) for body in _separated(stmt.body)]
    if isinstance(stmt, Seq):
        return list(_in_sequence(stmt.body))
    if isinstance(stmt, For):
        first, count = _constant(stmt.start), _constant(stmt.extent)
        if count > _MOST_LAUNCHES:
            raise NotModelled(f"{count} launches by one loop")
        steps = [Bind(stmt.var, replace(stmt.start, value=first + step)) for step in range(count)]
        return [Seq((step, body)) for step in steps for body in _separated(stmt.body)]
    raise NotModelled("several kernels of which some depend on a condition")


def _in_sequence(parts: Sequence[Stmt]) -> Iterator[Stmt]:
    before: list[Stmt] = []
    for part in parts:
        if any(isinstance(s, (Launch, Thread)) for s in statements(part)):
            for body in _separated(part):
                yield Seq((*before, body))
        elif isinstance(part, (Bind, Assert, Evaluate)) or (isinstance(part, Alloc) and part.buffer.scope == "global"):
            before.append(part)
        else:
            raise NotModelled(f"{type(part).__name__} between kernels")


@lru_cache(maxsize=16)
def threads_of(function: Function) -> tuple[int, int, int]:
    """Threads of a block of the last kernel, x first: of its thread statements, else of the annotation of its block.

    The annotation is left as it was when a pass adds threads, so the statements win.
    """
    found = [1, 1, 1]
    kernel = kernels(function)[-1].body
    launched = [s for s in statements(kernel) if isinstance(s, Thread) and s.tag.startswith("threadIdx.")]
    for stmt in launched:
        found["xyz".index(stmt.tag[-1])] = _constant(stmt.extent)
    if not launched:
        found = [*map(_constant, declared_threads(kernel)), 1, 1, 1][:3]
    if not 0 < prod(found) <= MOST_THREADS:
        raise NotModelled(f"{prod(found)} threads in a block")
    return found[0], found[1], found[2]


def grid(function: Function, sizes: Mapping[str, int | float]) -> tuple[int, int, int]:
    """Return how many blocks there are in each dimension, of the last kernel."""
    found = [1, 1, 1]
    for stmt in statements(kernels(function)[-1].body):
        if isinstance(stmt, Thread) and stmt.tag.startswith("blockIdx."):
            found["xyz".index(stmt.tag[-1])] = int(evaluated(stmt.extent, sizes))
    if not all(0 <= extent < 1 << 31 for extent in found):  # of gridDim.x; the others end sooner
        raise NotModelled(f"a grid of {' x '.join(map(str, found))} blocks")
    return found[0], found[1], found[2]


def _constant(e: Expr) -> int:
    if e.op != "int" or not isinstance(e.value, int):
        raise NotModelled("launch with a varying number of threads or of kernels")
    return e.value
