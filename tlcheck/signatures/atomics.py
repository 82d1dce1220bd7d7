"""atom, red and the atomic loads and stores, as intrinsics and as functions of the device library (atomic.h).

No release has a function for `and` or `xor`; the code generator would print AtomicAnd and AtomicXor.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tlcheck.signatures.calls import arguments_of_call, name_of_call
from tlcheck.signatures.signature import ADDRESSES, Address, Family, Form, Signature
from tlcheck.snapshot.ir import Expr

LOAD, STORE = "load", "store"
IDEMPOTENT = ("max", "min", "or", "and")  # made again with the same value, these change nothing
ACQUIRING, RELEASING = (1, 2, 4, 5), (3, 4, 5)  # memory orders, by their numbers in C++; 0 is relaxed


@dataclass(frozen=True, slots=True)
class Atomic:
    """The operation of an atomic: (address or element[, value][, memory order]).

    operation: add, max, min, or, and, xor; LOAD and STORE combine nothing.
    width: neighbouring elements. Those of a vector may be given by their address.
    returns: gives back what was there before.
    """

    operation: str
    width: int = 1
    returns: bool = False

    @property
    def combines(self) -> bool:
        """Whether it is a read-modify-write."""
        return self.operation not in (LOAD, STORE)

    @property
    def order(self) -> int:
        """Position of the memory order, which a call may lack."""
        return 1 if self.operation == LOAD else 2


def _spellings() -> Iterator[tuple[str, Atomic]]:
    """Each atomic by the name of its intrinsic and of its function."""
    for operation in ("add", "max", "min", "or", "and", "xor"):
        for width in (1, 2, 4) if operation == "add" else (1,):
            form = "" if width == 1 else f"x{width}"
            for returns in (False, True):
                atomic = Atomic(operation, width, returns)
                yield f"atomic_{operation}{form}{'_ret' * returns}_elem_op", atomic
                yield function_of(atomic), atomic
    for atomic in (Atomic(LOAD, returns=True), Atomic(STORE)):
        yield f"atomic_{atomic.operation}_elem_op", atomic
        yield function_of(atomic), atomic


def function_of(atomic: Atomic) -> str:
    """The name of an atomic's function in the device library."""
    form = f"x{atomic.width}" if atomic.width > 1 else ""
    return f"Atomic{atomic.operation.capitalize()}{form}{'Ret' if atomic.returns and atomic.operation != LOAD else ''}"


ATOMICS = dict(_spellings())
"""Atomics by the name of a call."""


def order_of(call: Expr) -> int | None:
    """The memory order that an atomic names; None for none, and for other calls."""
    atomic, args = ATOMICS.get(name_of_call(call)), arguments_of_call(call)
    named = args[atomic.order] if atomic is not None and len(args) > atomic.order else None
    return int(named.value) if named is not None and named.op == "int" and named.value is not None else None


def _update(name: str, args: tuple[Expr, ...]) -> Signature:
    """(address or element, value or the address of values[, memory order])."""
    return Signature(reads=_value(args), updates=(Address(0),))


def _store(name: str, args: tuple[Expr, ...]) -> Signature:
    """(address, value[, memory order])."""
    return Signature(reads=_value(args), writes=(Address(0),))


def _value(args: tuple[Expr, ...]) -> tuple[Address, ...]:
    return (Address(1),) if args[1].op == "call" and args[1].value in ADDRESSES else ()


_LOAD = Signature(reads=(Address(0),))
_PLAIN: dict[str, Signature | Form] = {LOAD: _LOAD, STORE: _store}

FAMILY = Family(
    "atom",
    "PTX 9.7.13.6; ld and st with an order: PTX 9.7.9",
    {name: _PLAIN.get(atomic.operation, _update) for name, atomic in ATOMICS.items()},
)
