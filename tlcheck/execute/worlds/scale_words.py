"""Tensors of scale factors: words whose bytes a block-scaled product takes as factors.

Small integers would leave three bytes 0: those factors are next to nothing, and hide which of them a product takes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tlcheck.execute.ops.scale_factors import UE4M3, UE8M0, has_factors
from tlcheck.signatures.tcgen05 import SCALE_COPIES
from tlcheck.snapshot.dtypes import dtype_of
from tlcheck.snapshot.ir import Bind, Expr, Function, Store
from tlcheck.snapshot.walk import expressions, postorder, statements

_MOVES = frozenset(("copy", "tma_copy", "async_copy")) | SCALE_COPIES
_REGIONS = ("region", "tvm_access_ptr", "address_of")


def scale_words(function: Function) -> Mapping[str, str]:
    """The tensors by pointer that products of the source have their factors from, with the type of these."""
    types: dict[int, str] = {}
    calls = [e for s in statements(function.body) for e in postorder(expressions(s)) if e.op == "call"]
    for e in calls:
        if has_factors(e):
            regions = [uid for a in e.args if (uid := _buffer(a)) is not None]
            narrow = _bits(e.args[0]) == 4
            types |= dict.fromkeys(regions[-2:], UE4M3 if narrow else UE8M0)
    moves = list(_moves(function, calls)) if types else []
    while more := {source: types[target] for target, source in moves if target in types and source not in types}:
        types |= more
    words = [b for b in function.buffers if b.data.uid in types and b.dtype == "uint32"]
    return {str(b.data.value): types[b.data.uid] for b in words}


def _moves(function: Function, calls: list[Expr]) -> Iterator[tuple[int, int]]:
    """The target and the source of each move, as uids of buffers."""
    for e in calls:
        if e.value in _MOVES and len(e.args) > 1:
            source, target = _buffer(e.args[0]), _buffer(e.args[1])
            if source is not None and target is not None:
                yield target, source
    for stmt in statements(function.body):
        if isinstance(stmt, Store) and stmt.value.op == "load" and stmt.value.buffer is not None:
            yield stmt.buffer.data.uid, stmt.value.buffer.data.uid
        elif isinstance(stmt, Bind) and (source := _buffer(stmt.value)) is not None:  # a name of its address
            yield stmt.var.uid, source


def _buffer(e: Expr) -> int | None:
    """The buffer that an argument is a region of."""
    if e.op == "var":
        return e.uid
    if e.op == "load" and e.buffer is not None and not e.buffer.scope.endswith("barrier"):
        return e.buffer.data.uid
    if e.op == "call" and e.value in _REGIONS:
        return next((uid for a in e.args if (uid := _buffer(a)) is not None), None)
    return None


def _bits(e: Expr) -> int:
    return next((dtype_of(a.buffer.dtype).bits for a in postorder([e]) if a.buffer is not None), 0)
