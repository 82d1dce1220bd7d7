"""Stores that update an element, `r[i] = r[i] + x`, as the older form of reducers has them and lowered reducers do."""

from __future__ import annotations

from functools import lru_cache

from tlcheck.snapshot.ir import Attr, Expr, For, Function, Store
from tlcheck.snapshot.walk import statements

MULTIPLICITY = "tl.parallel_multiplicity"  # of a statement that runs once for each iteration
_OPERATORS = {"add": "sum", "max": "max", "min": "min"}
_CALLED = {"bitwise_and": "bitand", "bitwise_or": "bitor", "bitwise_xor": "bitxor"}


@lru_cache(maxsize=16)
def parted_updates(function: Function) -> frozenset[Store]:
    """The updates of fragments of which several iterations of a T.Parallel may have the same element.

    Only TileLang makes these: each thread combines its own iterations, and has a part of the result. Where all threads
    have all of it, updates are in an attribute instead (MULTIPLICITY).
    """
    every = list(statements(function.body))
    marked = {stmt.body for stmt in every if isinstance(stmt, Attr) and stmt.key == MULTIPLICITY}
    around: dict[Store, set[int]] = {}
    for loop in every:
        if isinstance(loop, For) and loop.kind == "parallel":
            for stmt in statements(loop.body):
                if isinstance(stmt, Store) and stmt.buffer.scope == "local.fragment" and stmt not in marked:
                    around.setdefault(stmt, set()).add(loop.var.uid)
    return frozenset(
        stmt
        for stmt, variables in around.items()
        if update_of(stmt)[0] and not variables <= {index.uid for index in stmt.indices if index.op == "var"}
    )


def update_of(stmt: Store) -> tuple[str | None, Expr | None]:
    """The kind of a store `r[i] = r[i] + x`, and x."""
    value = stmt.value
    kind = _OPERATORS.get(value.op) or (_CALLED.get(str(value.value)) if value.op == "call" else None)
    if kind is None:
        return None, None
    for own, term in (value.args, value.args[::-1]):
        if own.op == "load" and own.buffer is stmt.buffer and _same(own.args, stmt.indices):
            return kind, term
    return None, None


def _same(a: tuple[Expr, ...], b: tuple[Expr, ...]) -> bool:
    """Whether two lists of expressions are written alike."""
    return len(a) == len(b) and all(
        x is y
        or (x.op == y.op and x.value == y.value and x.uid == y.uid and x.buffer is y.buffer and _same(x.args, y.args))
        for x, y in zip(a, b, strict=True)
    )
