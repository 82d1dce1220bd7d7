"""Indices of tensors that may be negative, and a kernel in which some of them count from the end of their axis.

TileLang counts an index from the end if it can prove that it is negative (LegalizeNegativeIndex, since 0.1.7).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from tlcheck.snapshot.ir import Buffer, Expr, Function, Stmt, Store
from tlcheck.snapshot.walk import expressions, postorder, rebuild, with_expressions

Axes = Collection[tuple[str, int]]  # of tensors, by name


def may_be_negative(index: Expr) -> bool:
    """Whether something is subtracted in an index, or a negative number added."""
    return any(e.op == "sub" or (e.op == "int" and int(e.value or 0) < 0) for e in postorder([index]))


def is_constant(index: Expr) -> bool:
    """Whether an index is the same number everywhere."""
    return all(e.op not in ("var", "load", "call") for e in postorder([index]))


def counted_from_end(function: Function, where: Mapping[Stmt, Axes]) -> Function:
    """The function with indices that may be negative counted from the end, along these axes in these statements."""

    def change(old: Stmt, new: Stmt) -> Stmt:
        return new if old not in where else _changed(new, where[old])

    return replace(function, body=rebuild(function.body, change))


def _changed(stmt: Stmt, axes: Axes) -> Stmt:
    changed: dict[Expr, Expr] = {}
    roots = expressions(stmt)
    for e in postorder(roots):
        args = tuple([changed[a] for a in e.args])
        if e.op == "load" and e.buffer is not None:
            args = _moved(args, e.buffer, axes)
        same = all(a is b for a, b in zip(args, e.args, strict=True))
        changed[e] = e if same else replace(e, args=args)
    made = with_expressions(stmt, [changed[root] for root in roots])
    return replace(made, indices=_moved(made.indices, made.buffer, axes)) if isinstance(made, Store) else made


def _moved(indices: tuple[Expr, ...], buffer: Buffer, axes: Axes) -> tuple[Expr, ...]:
    """The indices of an access. A vector's lanes count from the end by themselves."""
    if buffer.scope != "global" or len(indices) != len(buffer.shape):
        return indices
    return tuple(
        Expr("add", index.dtype, (index, size))
        if (buffer.name, axis) in axes and index.op != "ramp" and may_be_negative(index)
        else index
        for axis, (index, size) in enumerate(zip(indices, buffer.shape, strict=True))
    )
