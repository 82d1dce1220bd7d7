"""Going through expressions and statements without recursion: lowered kernels nest deeper than Python's stack."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from tlcheck.snapshot.ir import (
    Alloc,
    Assert,
    Attr,
    Bind,
    Block,
    Buffer,
    Evaluate,
    Expr,
    For,
    If,
    Launch,
    Seq,
    Stmt,
    Store,
    Thread,
    Unknown,
    While,
)

_AROUND_ONE = (For, While, Thread, Attr, Block, Launch)
_KEPT = 128  # roots whose statements are kept: dozens of questions are asked of the same body


def postorder(roots: Iterable[Expr], without: Collection[Expr] = ()) -> Iterator[Expr]:
    """Every expression under `roots` once, arguments before the expression that has them. Buffers are not entered.

    without: expressions to leave out, with all that is under them.
    """
    found: dict[Expr, None] = {}  # a list, and a set to look in
    for root in roots:
        stack: list[Expr | None] = [root]  # None: the one below has had its arguments
        while stack:
            e = stack.pop()
            if e is None:
                e = stack.pop()
                assert e is not None
                found[e] = None
            elif e in found or e in without:
                continue
            elif e.args:
                stack += (e, None, *e.args[::-1])
            else:
                found[e] = None
    return iter(found)


def substitute(
    roots: Sequence[Expr],
    values: Mapping[int, Expr],
    remake: Callable[[Expr, tuple[Expr, ...]], Expr] = lambda e, args: replace(e, args=args),
) -> list[Expr]:
    """`roots` with variables replaced by `values` (uid -> expression). What does not change stays the same object.

    remake: makes an expression like the given one with other arguments.
    """
    new: dict[Expr, Expr] = {}
    for e in postorder(roots):
        args = tuple([new[a] for a in e.args])
        if e.op == "var":
            new[e] = values.get(e.uid, e)
        elif all(a is b for a, b in zip(args, e.args, strict=True)):
            new[e] = e
        else:
            new[e] = remake(e, args)
    return [new[r] for r in roots]


def children(stmt: Stmt) -> tuple[Stmt, ...]:
    """The statements that a statement encloses, in order."""
    inner = _INNER.get(type(stmt))
    return inner(stmt) if inner is not None else ()


def statements(root: Stmt) -> Iterator[Stmt]:
    """`root` and every statement in it, in program order, one that encloses others before these."""
    return iter(_statements(root))


def allocated(root: Stmt) -> list[Buffer]:
    """Return the buffers that are allocated in a statement, in program order."""
    return [stmt.buffer for stmt in statements(root) if isinstance(stmt, Alloc)]


def shared_names(root: Stmt) -> frozenset[str]:
    """The names of the buffers in shared memory that a statement and those below it allocate."""
    return frozenset(buffer.name for buffer in allocated(root) if buffer.scope.startswith("shared"))


def with_surroundings(root: Stmt) -> Iterator[tuple[Stmt, tuple[Stmt, ...]]]:
    """Yield every statement with those around it, the outermost first, in program order."""
    left: list[tuple[Stmt, tuple[Stmt, ...]]] = [(root, ())]
    while left:
        stmt, around = left.pop()
        yield stmt, around
        left += [(child, (*around, stmt)) for child in reversed(children(stmt))]


@lru_cache(maxsize=_KEPT)
def _statements(root: Stmt) -> tuple[Stmt, ...]:
    found, stack = [], [root]
    while stack:
        stmt = stack.pop()
        found.append(stmt)
        inner = _INNER.get(type(stmt))
        if inner is not None:
            stack += inner(stmt)[::-1]
    return tuple(found)


def expressions(stmt: Stmt) -> tuple[Expr, ...]:
    """The expressions of a statement itself, in order of evaluation; not those of the statements in it."""
    own = _OWN.get(type(stmt))
    return own(stmt) if own is not None else ()


_INNER: Mapping[type[Stmt], Callable[[Any], tuple[Stmt, ...]]] = {
    **dict.fromkeys((Seq, Unknown), lambda stmt: stmt.body),
    **dict.fromkeys(_AROUND_ONE, lambda stmt: (stmt.body,)),
    If: lambda stmt: (stmt.then,) if stmt.orelse is None else (stmt.then, stmt.orelse),
}
_OWN: Mapping[type[Stmt], Callable[[Any], tuple[Expr, ...]]] = {
    **dict.fromkeys((Evaluate, Bind), lambda stmt: (stmt.value,)),
    **dict.fromkeys((If, While, Assert), lambda stmt: (stmt.condition,)),
    Store: lambda stmt: (*stmt.indices, stmt.value, *(() if stmt.predicate is None else (stmt.predicate,))),
    For: lambda stmt: (stmt.start, stmt.extent),
    Thread: lambda stmt: (stmt.extent,),
    Attr: lambda stmt: () if stmt.value is None else (stmt.value,),
}


def with_expressions(stmt: Stmt, new: Sequence[Expr]) -> Stmt:
    """`stmt` with other `expressions`, in their order."""
    if isinstance(stmt, Store):
        rank = len(stmt.indices)
        return replace(stmt, indices=tuple(new[:rank]), value=new[rank], predicate=next(iter(new[rank + 1 :]), None))
    if isinstance(stmt, (Evaluate, Bind, Attr)):
        return replace(stmt, value=new[0])
    if isinstance(stmt, (If, While, Assert)):
        return replace(stmt, condition=new[0])
    if isinstance(stmt, For):
        return replace(stmt, start=new[0], extent=new[1])
    assert isinstance(stmt, Thread)
    return replace(stmt, extent=new[0])


def first_line(stmt: Stmt) -> int:
    """The source line of a statement, else of the first one in it that has one; 0 if none has."""
    return next((s.line for s in statements(stmt) if s.line), 0)


def rebuild(root: Stmt, change: Callable[[Stmt, Stmt], Stmt]) -> Stmt:
    """`root` with every statement replaced, inner ones first. What does not change stays the same object.

    change: called with a statement as it was and with the inner ones replaced; returns what is to stand there.
    """
    new: dict[Stmt, Stmt] = {}
    for stmt in reversed(list(statements(root))):
        inner = tuple([new[s] for s in children(stmt)])
        same = all(a is b for a, b in zip(inner, children(stmt), strict=True))
        new[stmt] = change(stmt, stmt if same else _around(stmt, inner))
    return new[root]


def _around(stmt: Stmt, inner: tuple[Stmt, ...]) -> Stmt:
    """`stmt` around other statements."""
    if isinstance(stmt, (Seq, Unknown)):
        return replace(stmt, body=inner)
    if isinstance(stmt, If):
        return replace(stmt, then=inner[0], orelse=inner[1] if len(inner) > 1 else None)
    assert isinstance(stmt, _AROUND_ONE)
    return replace(stmt, body=inner[0])
