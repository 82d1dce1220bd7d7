"""What a kernel does with each of its parameters, read from its snapshot: which outputs may be poisoned."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tlcheck.program.atomics import READ, WRITE, atomics, pointer
from tlcheck.program.walk import Program, expressions, walk
from tlcheck.snapshot.ir import Expr, Snapshot, Store

_MODES = {"region": 1, "access_ptr": 2, "tvm_access_ptr": 4}  # call -> place of the argument that says how


@dataclass(frozen=True)
class Roles:
    """written: parameters that are written and never read. updated: written and read, or added to by atomics.

    float_atomics: whether floating-point numbers are added by atomics, in an order that may differ.
    """

    written: tuple[str, ...] = ()
    updated: tuple[str, ...] = ()
    float_atomics: bool = False


def roles(snapshot: Snapshot) -> Roles:
    """As the kernel is written: at the checkpoint `intent`; nothing where that was not reached."""
    function = snapshot.checkpoints.get("intent")
    if function is None:
        return Roles()
    placed = walk(function)
    names = {placed.roots.of(buffer.data): buffer.name for buffer in function.buffers}
    sites = atomics(placed).sites
    targets = {site.target.root for site in sites}
    accesses = list(_accesses(placed))
    reads = {root for root, mode in accesses if mode & READ}
    writes = {root for root, mode in accesses if mode & WRITE}
    return Roles(
        tuple(name for root, name in names.items() if root in writes - reads - targets),
        tuple(name for root, name in names.items() if root in (writes & reads) | targets),
        any(site.operation == "add" and "float" in site.target.dtype for site in sites),
    )


def _accesses(program: Program) -> Iterator[tuple[str, int]]:
    """Memory and how it is accessed, `READ` or `WRITE` or both."""
    for placed in program.statements:
        if isinstance(placed.stmt, Store):
            yield program.roots.of(placed.stmt.buffer.data), WRITE
        for expr in expressions(placed.stmt):
            yield from _in_expression(program, expr)


def _in_expression(program: Program, expr: Expr) -> Iterator[tuple[str, int]]:
    stack = [expr]
    while stack:
        e = stack.pop()
        mode = _mode(e)
        if mode and (target := pointer(program, e)) is not None:
            yield target.root, mode
            stack.extend(target.indices)
        else:
            stack.extend(e.args)


def _mode(e: Expr) -> int:
    """How an expression accesses the memory that it names; 0 if it names none."""
    if e.op == "load":
        return READ
    place = _MODES.get(str(e.value)) if e.op == "call" else None
    if place is None or len(e.args) <= place:
        return READ | WRITE if e.op == "call" and e.value == "address_of" else 0
    value = e.args[place].value
    return value if isinstance(value, int) else READ | WRITE
