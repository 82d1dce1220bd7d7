"""atom, red and the atomic loads and stores, as intrinsics and as functions of the device library (atomic.h)."""

from __future__ import annotations

from tlcheck.signatures.signature import ADDRESSES, Address, Family, Signature
from tlcheck.snapshot.ir import Expr


def _update(name: str, args: tuple[Expr, ...]) -> Signature:
    """(address or element, value or the address of values[, memory order])."""
    return Signature(reads=_value(args), updates=(Address(0),))


def _store(name: str, args: tuple[Expr, ...]) -> Signature:
    """(address, value[, memory order])."""
    return Signature(reads=_value(args), writes=(Address(0),))


def _value(args: tuple[Expr, ...]) -> tuple[Address, ...]:
    return (Address(1),) if args[1].op == "call" and args[1].value in ADDRESSES else ()


_LOAD = Signature(reads=(Address(0),))
_UPDATES = [("add", form) for form in ("", "x2", "x4")] + [("max", ""), ("min", ""), ("or", "")]

FAMILY = Family(
    "atom",
    "PTX 9.7.13.6; ld and st with an order: PTX 9.7.9",
    {
        **{f"atomic_{name}{form}{result}_elem_op": _update for name, form in _UPDATES for result in ("", "_ret")},
        **{f"Atomic{name.capitalize()}{form}{result}": _update for name, form in _UPDATES for result in ("", "Ret")},
        "atomic_load_elem_op": _LOAD,
        "AtomicLoad": _LOAD,
        "atomic_store_elem_op": _store,
        "AtomicStore": _store,
    },
)
