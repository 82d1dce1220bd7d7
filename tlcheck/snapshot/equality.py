"""Functions that are equal although they are not one object: a pass that changes nothing still makes its nodes anew."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from tlcheck.snapshot.ir import Buffer, Expr, Function, Layout, Stmt


def united(functions: Mapping[str, Function]) -> dict[str, Function]:
    """The functions by name, one that equals the one before it as that object."""
    found: dict[str, Function] = {}
    last: Function | None = None
    for name, function in functions.items():
        last = last if last is not None and same(last, function) else function
        found[name] = last
    return found


def key_of(e: Expr) -> tuple[object, ...]:
    """Return what is equal for expressions that are the same but for objects."""
    buffer = 0 if e.buffer is None else e.buffer.data.uid
    return e.op, e.dtype, e.value, e.uid, buffer, *map(key_of, e.args)


def same(one: Function, other: Function) -> bool:
    """Whether two functions are equal in everything that is known of them, source lines and variables included."""
    compared: set[tuple[Any, Any]] = set()
    names: dict[type, list[str]] = {}  # the fields of a class, looked up once
    stack: list[tuple[Any, Any]] = [(one, other)]
    while stack:
        a, b = stack.pop()
        if a is b:
            continue
        if type(a) is not type(b):
            return False
        if isinstance(a, tuple):
            if len(a) != len(b):
                return False
            stack.extend(zip(a, b, strict=True))
        elif isinstance(a, (Expr, Stmt, Buffer, Layout, Function)):
            if isinstance(a, Expr) and a.op == "var":
                return False  # a variable is one object in all that use it
            if (a, b) not in compared:
                compared.add((a, b))
                kind = type(a)
                if kind not in names:
                    names[kind] = [field.name for field in fields(kind)]
                stack += [(getattr(a, name), getattr(b, name)) for name in names[kind]]
        elif a != b or (isinstance(a, float) and repr(a) != repr(b)):  # 0.0 and -0.0
            return False
    return True
