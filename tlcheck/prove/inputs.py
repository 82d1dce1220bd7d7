"""Memory that may hold anything: parameters, and buffers that are only ever filled with copies of such memory."""

from __future__ import annotations

from tlcheck.program.atomics import is_atomic, pointer
from tlcheck.program.walk import Program, expressions, subexpressions
from tlcheck.snapshot.ir import Expr, Store


def inputs(program: Program) -> frozenset[str]:
    """The roots whose content is up to the caller, in a kernel as written."""
    given = {program.roots.of(b.data) for b in program.function.buffers}
    copies, written = _writes(program)
    while True:
        more = {to for to, sources in copies.items() if to not in written and sources <= given} - given
        if not more:
            return frozenset(given)
        given |= more


def _writes(program: Program) -> tuple[dict[str, set[str]], set[str]]:
    """Roots that are copied to, with where from; and roots that anything else may write."""
    copies: dict[str, set[str]] = {}
    written: set[str] = set()
    for placed in program.statements:
        if isinstance(placed.stmt, Store):
            written.add(program.roots.of(placed.stmt.buffer.data))
        for value in expressions(placed.stmt):
            for call in subexpressions(value):
                if call.op == "call" and call.value == "copy":
                    source, target = (_root(program, a) for a in call.args[:2])
                    copies.setdefault(target, set()).add(source)
                elif call.op == "call" and not is_atomic(str(call.value)) and call.value not in _POINTERS:
                    written.update(_root(program, a) for a in call.args if a.op == "call" and a.value in _POINTERS)
    return copies, written


_POINTERS = frozenset(("region", "address_of", "access_ptr", "tvm_access_ptr"))


def _root(program: Program, e: Expr) -> str:
    found = pointer(program, e)
    return found.root if found is not None else ""
