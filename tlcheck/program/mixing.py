"""Buffers that atomics of several operations change: a sum and a minimum in another order have another value."""

from __future__ import annotations

from functools import lru_cache

from tlcheck.program.roles import WRITE, accesses
from tlcheck.signatures.atomics import ATOMICS
from tlcheck.signatures.calls import name_of_call
from tlcheck.snapshot.ir import Expr, Function, Stmt
from tlcheck.snapshot.walk import expressions, postorder, statements


def operation_of(stmt: Stmt | None) -> str:
    """Return the operation of a statement's atomics, such as `add`; empty if it has none, or several."""
    found = set() if stmt is None else {_operation(e) for e in postorder(expressions(stmt))} - {""}
    return found.pop() if len(found) == 1 else ""


@lru_cache(maxsize=16)
def mixed(function: Function) -> frozenset[str]:
    """The buffers, tensors by the names of their pointers, that atomics of several operations change."""
    operations: dict[str, set[str]] = {}
    for stmt in statements(function.body):
        for e in postorder(expressions(stmt)):
            if operation := _operation(e):
                for data, mode in accesses(e):
                    if mode & WRITE:
                        operations.setdefault(str(data.value), set()).add(operation)
    return frozenset(name for name, found in operations.items() if len(found) > 1)


def _operation(e: Expr) -> str:
    """The operation of a call that is an atomic read-modify-write of elements, else empty."""
    atomic = ATOMICS.get(name_of_call(e)) if e.op == "call" else None
    return atomic.operation if atomic is not None and atomic.combines else ""
