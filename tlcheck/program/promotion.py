"""Integers of 8 and 16 bits in the generated CUDA: C++ computes with them in int (integral promotion).

TIR's sums and products wrap in their own type. What TileLang's code generator prints for scalars, `a - b`, does not:
where the result is stored in that type it is cut off as in TIR, but a comparison, a quotient or a wider type sees the
number that did not wrap. So it is with `~` of an unsigned integer, which is negative, and with `c ? a - b : a + b`
(`if_then_else` is a variable of its own type instead). In vectors every lane is stored in its own type.
"""

from __future__ import annotations

from collections.abc import Iterator

from tlcheck.signatures.atomics import ATOMICS
from tlcheck.snapshot.dtypes import dtype_of
from tlcheck.snapshot.ir import Evaluate, Expr, Function, Store
from tlcheck.snapshot.operators import named
from tlcheck.snapshot.walk import expressions, postorder, statements

_RING = named("ring")


def is_promoted(e: Expr) -> bool:
    """Whether an operation wraps in TIR and not in C++."""
    found = dtype_of(e.dtype)
    if not (found.is_integral and found.bits in (8, 16) and found.lanes == 1):
        return False
    if e.op == "select":
        return any(map(is_promoted, e.args[1:]))
    if e.op == "call" and e.value == "bitwise_not":
        return found.name.startswith("uint")
    return e.op in _RING or (e.op == "call" and e.value == "shift_left")


def shows_promotion(function: Function) -> bool:
    """Whether the result of such an operation goes anywhere but into memory of its own type."""
    return any(is_promoted(part) for root in _wider(function) for part in root.args)


def _is_mask(e: Expr) -> bool:
    """Whether an operation keeps lower bits alone, which int and the type of its operands have in common."""
    if e.op != "floormod" and e.value != "bitwise_and":
        return False
    kept = [int(a.value or 0) - (e.op == "floormod") for a in e.args[1:] if a.op == "int"]
    whole = (1 << dtype_of(e.dtype).bits) - 1
    return any(0 <= bits <= whole and (e.op != "floormod" or bits & (bits + 1) == 0) for bits in kept)


def _is_atomic_of_own_type(e: Expr) -> bool:
    """Whether a call combines a value with an element of the value's own type."""
    if e.op != "call" or e.value not in ATOMICS or len(e.args) < 2:
        return False
    elements = [part for part in postorder(e.args[:1]) if part.op == "load"]
    return bool(elements) and elements[-1].dtype == e.args[1].dtype


def _wider(function: Function) -> Iterator[Expr]:
    """The expressions that see all bits of their arguments."""
    for stmt in statements(function.body):
        for e in postorder(expressions(stmt)):
            if _is_atomic_of_own_type(e):  # the device library casts the value back
                yield Expr("of", "", (e.args[0], *e.args[2:]))
            elif not is_promoted(e) and e.value != "if_then_else" and not _is_mask(e):
                yield e
        if not isinstance(stmt, Evaluate):
            yield Expr("of", "", tuple(stmt.indices if isinstance(stmt, Store) else expressions(stmt)))
