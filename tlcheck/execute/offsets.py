"""Tensors of offsets: a kernel that reads L[i] and L[i + 1] takes what lies between them, as of packed sequences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tlcheck.execute.plain import evaluated
from tlcheck.execute.reasons import NotModelled
from tlcheck.snapshot.ir import Bind, Buffer, Expr, Function, Store
from tlcheck.snapshot.walk import expressions, postorder, statements, substitute

_TRIED = (3, 7, 12)  # values of the variables in two indices that are compared


def offsets(function: Function) -> Mapping[str, Expr | None]:
    """The offset tensors by pointer, with the extent that they count up to; None where that is not seen."""
    reads: dict[int, list[Expr]] = {}
    accesses: list[tuple[Buffer, Sequence[Expr]]] = []
    bound: dict[int, Expr] = {}
    for stmt in statements(function.body):
        roots = substitute(list(expressions(stmt)), bound)
        if isinstance(stmt, Bind):
            bound[stmt.var.uid] = roots[-1]
        if isinstance(stmt, Store):
            accesses.append((stmt.buffer, substitute(list(stmt.indices), bound)))
        accesses += [(e.buffer, e.args) for e in postorder(roots) if e.op == "load" and e.buffer is not None]
    for buffer, indices in accesses:
        if len(indices) == 1:
            reads.setdefault(buffer.data.uid, []).append(indices[0])
    found = [b for b in function.buffers if b.dtype.startswith("int") and _neighbours(reads.get(b.data.uid, ()))]
    return {str(b.data.value): next(_extents(b, accesses), None) for b in found}


def _neighbours(indices: Sequence[Expr]) -> bool:
    """Whether an element and the one after it are read."""
    values = {_values(index) for index in indices} - {None}
    return any(tuple(n + 1 for n in value) in values for value in values if value is not None)


def _values(index: Expr) -> tuple[int, ...] | None:
    names = {str(e.value): place for place, e in enumerate(postorder([index])) if e.op == "var"}
    try:
        return tuple(int(evaluated(index, {n: k * (p + 1) for n, p in names.items()})) for k in _TRIED)
    except NotModelled:
        return None


def _extents(offset: Buffer, accesses: Sequence[tuple[Buffer, Sequence[Expr]]]) -> Iterator[Expr]:
    """The extents of the axes whose indices are made from the offsets."""
    for buffer, indices in accesses:
        if buffer.scope == "global" and buffer.data.uid != offset.data.uid:
            for extent, index in zip(buffer.shape, indices, strict=False):
                if any(
                    e.op == "load" and e.buffer is not None and e.buffer.data is offset.data for e in postorder([index])
                ):
                    yield extent
