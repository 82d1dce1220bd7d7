"""The first cast of a lowered kernel to a float type that the source does not have."""

from __future__ import annotations

from tlcheck.snapshot.dtypes import dtype_of
from tlcheck.snapshot.ir import Alloc, Function, Stmt, Store
from tlcheck.snapshot.walk import expressions, postorder, statements


def narrowing(source: Function, lowered: Function) -> tuple[Stmt, str] | None:
    """The statement that casts, and the type; None where all types are the source's."""
    known = {_element(buffer.dtype) for buffer in source.buffers}
    for stmt in statements(source.body):
        known |= {_element(stmt.buffer.dtype)} if isinstance(stmt, (Alloc, Store)) else set()
        known |= {_element(e.dtype) for e in postorder(expressions(stmt)) if e.dtype}
    for stmt in statements(lowered.body):
        for e in postorder(expressions(stmt)):
            if e.op == "cast" and "float" in e.dtype and _element(e.dtype) not in known:
                return stmt, _element(e.dtype)
    return None


def _element(dtype: str) -> str:
    """The type of a lane: `float16` of `float16x8`."""
    return dtype_of(dtype).name
