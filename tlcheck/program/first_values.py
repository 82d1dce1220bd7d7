"""The first values of variables in releases that do not say where these are made.

Up to 0.1.9 `v = T.alloc_var("int32", init=0)` in a loop and before it are the same IR: the value is a note of the block
around the loop (`tl.local_var_init`), and the worker has stored it there. If nothing outside of the loop uses the
variable, the author may have meant either: once, or in each iteration. The generated CUDA has it once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise

from tlcheck.program.roles import accesses
from tlcheck.snapshot.ir import Alloc, Block, For, Function, Seq, Stmt, Store, While
from tlcheck.snapshot.walk import children, expressions, rebuild, statements

_NOTE, _SCOPE = "tl.local_var_init", "local.var"


@lru_cache(maxsize=16)
def in_each_iteration(function: Function) -> Function | None:
    """The function with such values stored in each iteration of the innermost loop; None where none is unclear."""
    stores: dict[Stmt, list[Store]] = {}
    for stmt in statements(function.body):
        if isinstance(stmt, Block) and any(key == _NOTE for key, _ in stmt.annotations):
            for store, loop in _unclear(stmt):
                stores.setdefault(loop, []).append(store)
    if not stores:
        return None

    def change(old: Stmt, new: Stmt) -> Stmt:
        if not isinstance(new, (For, While)) or old not in stores:
            return new
        return replace(new, body=Seq((*stores[old], new.body)))

    return replace(function, body=rebuild(function.body, change))


def _unclear(block: Block) -> Iterator[tuple[Store, For | While]]:
    """The first values that a block notes of variables (`T.alloc_var`), each with the innermost loop that all uses of
    the variable are in.
    """
    body = block.body.body if isinstance(block.body, Seq) else ()
    for place, (alloc, store) in enumerate(pairwise(body)):
        if not isinstance(alloc, Alloc) or not isinstance(store, Store):
            continue
        if store.buffer is alloc.buffer and alloc.buffer.scope == _SCOPE:
            loop = _around(Seq(body[place + 2 :]), store.buffer.data.uid)
            if loop is not None:
                yield store, loop


def _around(stmt: Stmt, uid: int) -> For | While | None:
    """The innermost loop in a statement that all uses of a pointer are in."""
    found: For | While | None = None
    while True:
        using = [part for part in children(stmt) if any(_uses(inner, uid) for inner in statements(part))]
        if len(using) != 1 or _uses(stmt, uid):
            return found
        (stmt,) = using
        if isinstance(stmt, (For, While)) and not _uses(stmt, uid):
            found = stmt


def _uses(stmt: Stmt, uid: int) -> bool:
    """Whether a statement itself accesses what a pointer points to."""
    stored = isinstance(stmt, Store) and stmt.buffer.data.uid == uid
    return stored or any(data.uid == uid for e in expressions(stmt) for data, _ in accesses(e))
