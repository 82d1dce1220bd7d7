"""Outputs that depend on the values that atomics return: another order of the threads gives other ones.

Followed are values, indices, conditions and memory, in any order of the statements: what is not found here has the same
elements whichever thread comes first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache

from tlcheck.program.roles import WRITE, accesses, returns
from tlcheck.signatures.atomics import ATOMICS
from tlcheck.signatures.calls import name_of_call
from tlcheck.signatures.table import signature_of
from tlcheck.snapshot.ir import Bind, Expr, For, Function, If, Stmt, Store, While
from tlcheck.snapshot.walk import children, expressions, postorder, statements


@lru_cache(maxsize=16)
def ticketed(function: Function) -> frozenset[str]:
    """The tensors whose elements may hang on what an atomic returns: all, where threads may leave a loop early."""
    names = {b.data.uid: str(b.data.value) for b in function.buffers}
    signatures = (signature_of(e) for s in statements(function.body) for e in postorder(expressions(s)))
    if any(signature is not None and signature.leaves is not None for signature in signatures):
        return frozenset(names.values())
    found: set[int] = set()
    while len(found) < len(found := found | set(_reached(function.body, found))):
        pass
    return frozenset(name for uid, name in names.items() if uid in found)


def _reached(body: Stmt, known: set[int]) -> Iterator[int]:
    """The variables and buffers that get something from a statement that has a known one, or is run for it."""
    left = [(body, False)]
    while left:
        stmt, decided = left.pop()
        hangs = decided or _hangs(expressions(stmt), known)
        if hangs and isinstance(stmt, Bind):
            yield stmt.var.uid
        if hangs and isinstance(stmt, Store):
            yield stmt.buffer.data.uid
        yield from _written(stmt, decided, known)
        steers = isinstance(stmt, (If, While, For)) and hangs
        left += [(child, decided or steers) for child in children(stmt)]


def _written(stmt: Stmt, decided: bool, known: set[int]) -> Iterator[int]:
    """The buffers that calls in a statement write for such a reason; an atomic leaves the same in any order."""
    for e in postorder(expressions(stmt)):
        if e.op == "call" and (decided or _hangs(e.args, known)):
            yield from (data.uid for data, mode in accesses(e) if mode & WRITE)


def _hangs(roots: Iterable[Expr], known: set[int]) -> bool:
    return any(
        e.uid in known if e.op == "var" else _returns(e) or (e.buffer is not None and e.buffer.data.uid in known)
        for e in postorder(list(roots))
    )


def _returns(e: Expr) -> bool:
    """Whether it is an atomic that returns what it found: also a load, which finds what others have left."""
    name = name_of_call(e) if e.op == "call" else ""
    return name in ATOMICS and (returns(e) or ATOMICS[name].returns)
