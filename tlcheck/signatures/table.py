"""All families of instructions, and the signature of a call."""

from __future__ import annotations

from tlcheck.signatures import (
    atomics,
    barriers,
    bulk_copies,
    control,
    cp_async,
    device_library,
    exchanges,
    fences,
    matrices,
    mbarriers,
    mfma,
    mma,
    tcgen05,
    wgmma,
    wide_accesses,
)
from tlcheck.signatures.calls import arguments_of_call, library_name, name_of_call
from tlcheck.signatures.signature import Address, Family, Signature
from tlcheck.snapshot.ir import Expr

FAMILIES: tuple[Family, ...] = (
    wide_accesses.FAMILY,
    wide_accesses.BULK,
    atomics.FAMILY,
    cp_async.FAMILY,
    bulk_copies.FAMILY,
    bulk_copies.ROWS,
    bulk_copies.REMOTE,
    bulk_copies.LAUNCHES,
    mbarriers.FAMILY,
    barriers.FAMILY,
    barriers.ARRIVALS,
    barriers.CLUSTERS,
    fences.FAMILY,
    fences.THREADS,
    matrices.LDMATRIX,
    matrices.STMATRIX,
    mma.MMA,
    mma.MMA_SP,
    mma.MMA_BLOCK_SCALE,
    mfma.FAMILY,
    mfma.TRANSPOSED,
    wgmma.FAMILY,
    wgmma.DESCRIPTORS,
    wgmma.DESCRIPTOR_OFFSETS,
    tcgen05.FAMILY,
    tcgen05.PRODUCTS,
    tcgen05.DESCRIPTORS,
    exchanges.SHUFFLES,
    exchanges.VOTES,
    exchanges.ELECTIONS,
    device_library.REDUCTIONS,
    device_library.SCANS,
    device_library.PRODUCTS,
    device_library.NUMBERS,
    device_library.DP4A,
    control.FAMILY,
)
FAMILY_OF = {name: family for family in FAMILIES for name in family.signatures}
"""Families by the name of a call or of a function, without template arguments and `::run`."""


def family_of(e: Expr) -> Family | None:
    """Return the family of the instruction that an expression calls; None for anything else."""
    return _family(name_of_call(e)) if e.op == "call" else None


def _family(name: str) -> Family | None:
    return FAMILY_OF.get(name) or FAMILY_OF.get(library_name(name))


def signature_of(e: Expr) -> Signature | None:
    """Return the signature of the instruction that an expression calls; None for anything else.

    A call that lacks an argument which tells its forms apart is not that instruction.
    """
    if e.op != "call":
        return None
    name = name_of_call(e)
    family = _family(name)
    if family is None:
        return None
    found = family.signatures[library_name(name)]
    try:
        return found if isinstance(found, Signature) else found(name, arguments_of_call(e))
    except IndexError:
        return None


def argument(e: Expr, address: Address) -> Expr:
    """Return the argument of a call that names some memory."""
    return arguments_of_call(e)[address.at]


def destinations(e: Expr) -> tuple[Expr, ...]:
    """Return the arguments that name what a call may change: all of them where its signature is not known."""
    signature, args = signature_of(e), arguments_of_call(e)
    return e.args if signature is None else tuple([args[a.at] for a in signature.destinations if a.at < len(args)])
