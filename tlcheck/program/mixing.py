"""Atomics by their operations: a sum and a minimum of one element in another order have another value."""

from __future__ import annotations

from functools import lru_cache

from tlcheck.program.roles import WRITE, accesses
from tlcheck.signatures.atomics import ATOMICS
from tlcheck.signatures.calls import arguments_of_call, name_of_call
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
                for name in _changed(e):
                    operations.setdefault(name, set()).add(operation)
    return frozenset(name for name, found in operations.items() if len(found) > 1)


def _changed(e: Expr) -> list[str]:
    return [str(data.value) for data, mode in accesses(e) if mode & WRITE]


def _operation(e: Expr) -> str:
    """The operation of a call that is an atomic read-modify-write of elements, else empty."""
    atomic = ATOMICS.get(name_of_call(e)) if e.op == "call" else None
    return atomic.operation if atomic is not None and atomic.combines else ""


def changed_by(stmt: Stmt) -> frozenset[str]:
    """The buffers that a statement's atomics change, tensors by the names of their pointers."""
    calls = [e for e in postorder(expressions(stmt)) if _operation(e)]
    return frozenset(name for e in calls for name in _changed(e))


def is_unharmed(stmt: Stmt, tensor: str) -> bool:
    """Whether a statement only adds an element of a tensor: one out of bounds is 0, which changes nothing.

    One that says where to add is 0 as well, which does.
    """
    calls = [e for e in postorder(expressions(stmt)) if _operation(e)]
    values = [arguments_of_call(e)[1] for e in calls if len(arguments_of_call(e)) > 1]
    elements = [e for call in calls for e in postorder(arguments_of_call(call)[:1]) if e.op == "load"]
    indices = postorder(index for element in elements for index in element.args)
    says_where = any(e.op == "load" and e.buffer is not None and e.buffer.name == tensor for e in indices)
    only_adds = bool(values) and all(_operation(e) == "add" for e in calls) and all(_is_element(e) for e in values)
    return only_adds and not says_where


def _is_element(e: Expr) -> bool:
    while e.op == "cast":
        (e,) = e.args
    return e.op == "load"
