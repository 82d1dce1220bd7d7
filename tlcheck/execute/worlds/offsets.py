"""Tensors of places. Offsets: a kernel that reads L[i] and L[i + 1] takes what lies between them, as of packed
sequences. Lengths: an element says how many steps a loop has.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from functools import lru_cache

from tlcheck.execute.memory.plain import evaluated
from tlcheck.execute.stops import NotModelled
from tlcheck.snapshot.ir import Bind, Buffer, Expr, For, Function, Store
from tlcheck.snapshot.walk import expressions, postorder, statements, substitute

_TRIED = (3, 7, 12)  # values of the variables in two indices that are compared


def offsets(function: Function) -> Mapping[str, Expr | None]:
    """The offset tensors by pointer, with the extent that they count up to; None where that is not seen."""
    reads: dict[int, list[Expr]] = {}
    accesses = _accesses(function)
    for buffer, places in accesses:
        if len(places) == 1:
            reads.setdefault(buffer.data.uid, []).append(places[0])
    found = [b for b in function.buffers if b.dtype.startswith("int") and _neighbours(reads.get(b.data.uid, ()))]
    return {str(b.data.value): next(_extents(b, accesses), None) for b in found}


def lengths(function: Function) -> Mapping[str, Set[int]]:
    """The tensors of lengths by pointer, with elements by which a loop may have no step: the first, and those that the
    kernel names by number."""
    found: dict[str, set[int]] = {}
    tensors = {b.data.uid: str(b.data.value) for b in function.buffers if "int" in b.dtype}
    for _, extent in _loops(function):
        for e in postorder([extent]):
            if e.op == "load" and e.buffer is not None and e.buffer.data.uid in tensors:
                numbers = {int(e.args[0].value or 0)} if len(e.args) == 1 and e.args[0].op == "int" else set()
                found.setdefault(tensors[e.buffer.data.uid], {0}).update(numbers)
    return found


def _loops(function: Function) -> Iterator[tuple[For, Expr]]:
    """Every loop, with its length, variables as what they are bound to."""
    bound: dict[int, Expr] = {}
    for stmt in statements(function.body):
        if isinstance(stmt, Bind):
            (bound[stmt.var.uid],) = substitute([stmt.value], bound)
        if isinstance(stmt, For):
            yield stmt, substitute([stmt.extent], bound)[0]


@lru_cache(maxsize=16)
def _accesses(function: Function) -> Sequence[tuple[Buffer, Sequence[Expr]]]:
    """All buffers that are read or written, with the place, variables as what they are bound to."""
    found: list[tuple[Buffer, Sequence[Expr]]] = []
    bound: dict[int, Expr] = {}
    for stmt in statements(function.body):
        roots = substitute(list(expressions(stmt)), bound)
        if isinstance(stmt, Bind):
            bound[stmt.var.uid] = roots[-1]
        if isinstance(stmt, Store):
            found.append((stmt.buffer, substitute(list(stmt.indices), bound)))
        found += [(e.buffer, e.args) for e in postorder(roots) if e.op == "load" and e.buffer is not None]
    return found


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
