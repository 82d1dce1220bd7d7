"""Kernels of a few lines, written by hand: four blocks of 64 threads, each of which adds to one element of B."""

from __future__ import annotations

from tlcheck.prove.subject import evidences, subject
from tlcheck.snapshot.ir import Buffer, Evaluate, Expr, For, Function, If, Snapshot, Stmt, Thread

BLOCK, THREAD, STEP = (Expr("var", "int32", value=name, uid=91_001 + n) for n, name in enumerate(("bx", "tx", "i")))


def number(value: int, dtype: str = "int32") -> Expr:
    return Expr("int", dtype, value=value)


def tensor(name: str, dtype: str, size: int, uid: int) -> Buffer:
    return Buffer(name, dtype, (number(size),), "global", Expr("var", "handle", value=name, uid=uid))


ADDED = tensor("B", "int32", 64, 91_010)


def operation(op: str, *args: Expr) -> Expr:
    """`args[0] op args[1]`, of their type; of a comparison, a truth value."""
    return Expr(op, "bool" if op in ("lt", "le", "eq", "ne", "and", "not") else args[0].dtype, args)


def cast(dtype: str, value: Expr) -> Expr:
    return Expr("cast", dtype, (value,))


def chosen(condition: Expr, yes: Expr, no: Expr) -> Expr:
    return Expr("call", yes.dtype, (condition, yes, no), "if_then_else")


def load(buffer: Buffer, index: Expr) -> Expr:
    return Expr("load", buffer.dtype, (index,), buffer=buffer)


def own(buffer: Buffer, position: Expr = THREAD) -> Expr:
    """The element of a thread, or of an iteration."""
    return load(buffer, operation("add", operation("mul", BLOCK, number(64)), position))


def address(element: Expr) -> Expr:
    return Expr("call", "handle", (element,), "address_of")


def add(element: Expr, value: Expr, *conditions: Expr, name: str = "atomic_add_elem_op") -> Stmt:
    """An atomic, under conditions."""
    stmt: Stmt = Evaluate(Expr("call", "handle", (address(element), value), name))
    for condition in reversed(conditions):
        stmt = If(condition, stmt)
    return stmt


def parallel(body: Stmt) -> Stmt:
    """An iteration for each thread."""
    return For(STEP, number(0), number(64), "parallel", body)


def within(index: Expr, size: int = 64) -> tuple[Expr, Expr]:
    """The bounds that TileLang checks of an index."""
    return operation("le", number(0, index.dtype), index), operation("lt", index, number(size, index.dtype))


def status(
    source: Stmt, lowered: Stmt, *buffers: Buffer, seen: tuple[Buffer, ...] = (), root: str | None = None
) -> str:
    """Return what is proved of a kernel whose atomic becomes another. seen: the buffers as the lowered one declares
    them. root: what the atomic adds to, where the kernel has several.
    """
    found = evidences(subject(pair(source, lowered, *buffers, seen=seen)))
    (asked,) = (e for e in found if root in (None, e.match.source[0].target.root))
    return asked.status


def pair(source: Stmt, lowered: Stmt, *buffers: Buffer, seen: tuple[Buffer, ...] = ()) -> Snapshot:
    """A kernel and what becomes of it."""
    before, after = _function(source, (ADDED, *buffers)), _function(lowered, (ADDED, *(seen or buffers)))
    checkpoints = {"source": before, "intent": before, "device-tir": after}
    return Snapshot("case", "file", 1, {"tilelang": "0.1.15"}, "sm_90", {}, {}, checkpoints, {})


def _function(atomic: Stmt, buffers: tuple[Buffer, ...]) -> Function:
    body = Thread(BLOCK, "blockIdx.x", number(4), Thread(THREAD, "threadIdx.x", number(64), atomic))
    return Function("main", tuple(b.data for b in buffers), buffers, (), body)
