"""What a kernel as written does with its parameters: what it writes, what it reads first, what it adds to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tlcheck.snapshot.ir import Expr, Function, Store
from tlcheck.snapshot.walk import expressions, postorder, statements

_READ, _WRITE = 1, 2
_MODES = {"region": 1, "access_ptr": 2, "tvm_access_ptr": 4}  # call -> place of the argument that says how
_RETURNING = ("_ret_elem_op", "Ret")


@dataclass(frozen=True, slots=True)
class Roles:
    """outputs: parameters that are written, in order; written: those that are never read, which begin as poison.

    returning: whether an atomic returns what was there before, so that results may depend on the order of threads.
    """

    outputs: tuple[str, ...]
    written: frozenset[str]
    returning: bool


def roles(function: Function) -> Roles:
    """The roles of the parameters of a kernel as written."""
    names = {b.data.uid: str(b.data.value) for b in function.buffers}
    modes: dict[int, int] = {}
    returning = False
    for stmt in statements(function.body):
        if isinstance(stmt, Store):
            modes[stmt.buffer.data.uid] = modes.get(stmt.buffer.data.uid, 0) | _WRITE
        for root in expressions(stmt):
            returning = returning or any(_returns(e) for e in postorder([root]))
            for uid, mode in _accesses(root):
                modes[uid] = modes.get(uid, 0) | mode
    outputs = tuple(name for uid, name in names.items() if modes.get(uid, 0) & _WRITE)
    written = frozenset(name for uid, name in names.items() if modes.get(uid, 0) == _WRITE)
    return Roles(outputs, written, returning)


def _returns(e: Expr) -> bool:
    if e.op != "call":
        return False
    name = str(e.args[0].value) if e.value in ("call_extern", "call_pure_extern") and e.args else str(e.value)
    return name.endswith(_RETURNING) or dict(e.annotations).get("return_prev", "0") not in ("0", "False")


def _accesses(root: Expr) -> Iterator[tuple[int, int]]:
    """Memory and how an expression accesses it. An atomic adds to its destination, which is its first address."""
    stack = [(root, _READ | _WRITE)]
    while stack:
        e, unsaid = stack.pop()
        if e.op == "load" and e.buffer is not None:
            yield e.buffer.data.uid, _READ
        if e.op == "call" and e.value in (*_MODES, "address_of") and e.args:
            yield _addressed(e, unsaid)
            inner = e.args[0]
            stack.extend((a, _READ | _WRITE) for a in (inner.args if inner.op == "load" else e.args))
        elif _is_atomic(e):
            yield from _combined(e)
            stack.extend((a, _READ) for a in e.args)
        else:
            stack.extend((a, unsaid) for a in e.args)


def _is_atomic(e: Expr) -> bool:
    name = e.args[0].value if e.value in ("call_extern", "call_pure_extern") and e.args else e.value
    lower = str(name).lower()
    return e.op == "call" and lower.startswith("atomic") and not lower.startswith(("atomic_load", "atomicload"))


def _combined(e: Expr) -> Iterator[tuple[int, int]]:
    """The destination: of tiles the region that is written, of elements the first address or element."""
    for a in e.args:
        if a.op == "call" and a.value in (*_MODES, "address_of"):
            uid, mode = _addressed(a, _READ | _WRITE)
            if mode & _WRITE:
                yield uid, _READ | _WRITE
                return
        elif a.op == "load" and a.buffer is not None:
            yield a.buffer.data.uid, _READ | _WRITE
            return


def _addressed(e: Expr, unsaid: int) -> tuple[int, int]:
    target = e.args[1] if e.value == "tvm_access_ptr" else e.args[0]
    place = _MODES.get(str(e.value))
    value = e.args[place].value if place is not None and place < len(e.args) else None
    mode = value if isinstance(value, int) and value else unsaid
    return (target.buffer.data.uid if target.buffer is not None else target.uid), mode
