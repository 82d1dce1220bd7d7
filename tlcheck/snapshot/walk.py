"""Going through expressions and statements without recursion: lowered kernels nest deeper than Python's stack."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from tlcheck.snapshot.ir import Attr, Block, Expr, For, If, Seq, Stmt, Thread, Unknown, While


def postorder(roots: Iterable[Expr]) -> Iterator[Expr]:
    """Every expression under `roots` once, arguments before the expression that has them. Buffers are not entered."""
    seen: set[int] = set()
    for root in roots:
        stack: list[tuple[Expr, bool]] = [(root, False)]
        while stack:
            e, ready = stack.pop()
            if ready:
                yield e
            elif id(e) not in seen:
                seen.add(id(e))
                stack.append((e, True))
                stack.extend((a, False) for a in reversed(e.args))


def substitute(
    roots: Sequence[Expr], values: Mapping[int, Expr], remake: Callable[[Expr, tuple[Expr, ...]], Expr]
) -> list[Expr]:
    """`roots` with variables replaced by `values` (uid -> expression). What does not change stays the same object.

    remake: makes an expression like the given one with other arguments.
    """
    new: dict[int, Expr] = {}
    for e in postorder(roots):
        args = tuple([new[id(a)] for a in e.args])
        if e.op == "var":
            new[id(e)] = values.get(e.uid, e)
        elif all(a is b for a, b in zip(args, e.args, strict=True)):
            new[id(e)] = e
        else:
            new[id(e)] = remake(e, args)
    return [new[id(r)] for r in roots]


def children(stmt: Stmt) -> tuple[Stmt, ...]:
    """The statements that a statement encloses, in order."""
    if isinstance(stmt, (Seq, Unknown)):
        return stmt.body
    if isinstance(stmt, If):
        return (stmt.then,) if stmt.orelse is None else (stmt.then, stmt.orelse)
    if isinstance(stmt, (For, While, Thread, Attr, Block)):
        return (stmt.body,)
    return ()


def statements(root: Stmt) -> Iterator[Stmt]:
    """`root` and every statement in it, in program order, one that encloses others before these."""
    stack = [root]
    while stack:
        stmt = stack.pop()
        yield stmt
        stack.extend(reversed(children(stmt)))
