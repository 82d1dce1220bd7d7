"""Integers of tensors with which a kernel computes: where these are large, sums and products leave their type.

TVM simplifies integers of 32 bits and more as if none did, so what a kernel does then is its author's.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from tlcheck.program.observed import named
from tlcheck.signatures.calls import name_of_call
from tlcheck.snapshot import operators
from tlcheck.snapshot.ir import Bind, Evaluate, Expr, Function, Stmt, Store
from tlcheck.snapshot.walk import expressions, postorder, statements

_KEEPING = ("if_then_else", "likely", "reinterpret", "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not")
_ADDRESSES = ("access_ptr", "tvm_access_ptr", "address_of", "region", "copy")
_RING = operators.named("ring")
_COMPUTING = _RING | {"floordiv", "truncdiv"}


def leaves_type(e: Expr) -> bool:
    """Whether an operation's result may leave a signed type of 32 bits: a sum, a difference or a product."""
    return e.op in _RING and e.dtype.split("x")[0] == "int32"


@lru_cache(maxsize=64)
def overflows(function: Function) -> bool:
    """Whether what a kernel computes of the integers of tensors, and of floats cast to integers, may leave 32 bits."""
    tensors = {b.data.uid for b in function.buffers if "int" in b.dtype}
    return any(map(leaves_type, _computing(function, tensors, casts=True)[0]))


@lru_cache(maxsize=64)
def computed(function: Function, name: str) -> tuple[bool, bool]:
    """Whether a kernel computes with a tensor's integers, and whether it multiplies them by one another."""
    found, uses = _computing(function, {b.data.uid for b in function.buffers if b.data.value == name}, casts=False)
    return bool(found), any(e.op == "mul" and all(map(uses, e.args)) for e in found)


@lru_cache(maxsize=64)
def computes_with_casts(function: Function) -> bool:
    """Whether a kernel computes with integers that were floats: infinite ones are at the ends of their types."""
    return bool(_computing(function, set(), casts=True)[0])


def _computing(function: Function, known: set[int], casts: bool) -> tuple[list[Expr], Callable[[Expr], bool]]:
    """Return what computes with known memory and with what is made of it, and who uses that.

    casts: also with floats that are cast to integers.
    """
    every = list(statements(function.body))

    def uses(e: Expr) -> bool:
        return _uses(e, known, casts)

    while len(known) < len(known := known | {uid for stmt in every for uid in _given(stmt, uses)}):
        pass
    return [e for stmt in every for e in postorder(expressions(stmt)) if _computes(e, uses)], uses


def _given(stmt: Stmt, uses: Callable[[Expr], bool]) -> set[int]:
    """Return what a statement gives something of known memory: by a call, all that it names."""
    if isinstance(stmt, (Bind, Store)) and uses(stmt.value):
        return {stmt.var.uid if isinstance(stmt, Bind) else stmt.buffer.data.uid}
    return set(named([stmt.value])) if isinstance(stmt, Evaluate) and uses(stmt.value) else set()


def _computes(e: Expr, uses: Callable[[Expr], bool]) -> bool:
    """Whether an expression computes with known memory, or may: calls but for copies do."""
    computes = e.op in _COMPUTING and "int" in e.dtype
    calls = e.op == "call" and name_of_call(e) not in (*_KEEPING, *_ADDRESSES)
    return (computes or calls) and any(map(uses, e.args))


def _uses(e: Expr, known: set[int], casts: bool) -> bool:
    """Whether a value is made of known memory; not where that only says which element is read."""
    left = [e]
    while left:
        x = left.pop()
        if casts and x.op == "cast" and "int" in x.dtype and "float" in x.args[0].dtype:
            return True
        if x.uid in known if x.op == "var" else x.buffer is not None and x.buffer.data.uid in known:
            return True
        left += x.args if x.op != "load" else ()
    return False
