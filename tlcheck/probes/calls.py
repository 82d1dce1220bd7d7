"""The calls that are probed."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from tlcheck.probes.formats import FLOATS, INTEGERS, bits_of, holds, is_float
from tlcheck.program.device_library import ORDERS, LibraryCall

SCALARS = (*FLOATS, *INTEGERS)
HALVES = ("float16", "bfloat16")
VECTOR_VALUES = ("float16", "bfloat16", "float32", "float64", "int32")
VECTORS = ("float16", "bfloat16", "float32")  # destinations that some release has vector atomics for
NO_VECTORS = ("float64", "int32", "int64")
BOXES = ("float16", "bfloat16", "float32", "int32", "uint32")  # element types that TMA adds
ANY_ORDER = range(len(ORDERS))


def calls() -> list[LibraryCall]:
    """Every call that is probed, sorted."""
    return sorted({*_scalars(), *_vectors(), *_bits(), *_plain(), *_bulk()})


def _common(destination: str) -> set[str]:
    """Types of values that are probed with every memory order."""
    return {destination, "float32", "int32", *(HALVES if destination in HALVES else ())}


def _scalars() -> Iterator[LibraryCall]:
    for operation, destination, value in product(("add", "max", "min"), SCALARS, SCALARS):
        orders = ANY_ORDER if value in _common(destination) else range(1)
        for order, returns in product(orders, (False, True)):
            yield LibraryCall(operation, destination, value, 1, False, order, returns)
            if value == destination or (order == 0 and value in _common(destination)):
                yield LibraryCall(operation, destination, value, 1, False, order, returns, True)


def _vectors() -> Iterator[LibraryCall]:
    for destination, value, width, pointer in product(VECTORS, VECTOR_VALUES, (2, 4), (False, True)):
        for order, returns, shared in product(ANY_ORDER, (False, True), (False, True)):
            if value == destination or (order > 0) + returns + shared < 2:
                yield LibraryCall("add", destination, value, width, pointer, order, returns, shared)
    for destination, width, pointer, shared in product(NO_VECTORS, (2, 4), (False, True), (False, True)):
        yield LibraryCall("add", destination, destination, width, pointer, 0, False, shared)


def _bits() -> Iterator[LibraryCall]:
    for operation, destination, shared in product(("and", "or", "xor"), INTEGERS, (False, True)):
        for order, value in product(ANY_ORDER if operation == "or" else range(1), {destination, "int32"}):
            yield LibraryCall(operation, destination, value, 1, False, order, False, shared)


def _plain() -> Iterator[LibraryCall]:
    """Atomic loads and stores, with the orders that C++ has for them."""
    for dtype, order, shared in product(SCALARS, (0, 1, 2, 5), (False, True)):
        yield LibraryCall("load", dtype, dtype, 1, False, order, True, shared)
    for dtype, order, shared in product(SCALARS, (0, 3, 5), (False, True)):
        for value in {dtype} if shared else {dtype, "float32", "int32"}:
            yield LibraryCall("store", dtype, value, 1, False, order, False, shared)


def _bulk() -> Iterator[LibraryCall]:
    """Bulk reductions: a run of bytes, and the box of a TMA descriptor of that type."""
    for dtype in (*FLOATS, "int32", "uint32", "int64", "uint64"):
        yield LibraryCall("bulk", dtype, dtype, pointer=True)
    for dtype in BOXES:
        yield LibraryCall("box", dtype, dtype, pointer=True)


# Numbers that the probes are run with: small and large, of both signs, with few and with many digits.
_NUMBERS = (3, -5, 1.5, 7, 40000, -2.25, 1 + 2**-6, 1 + 2**-9, 1 + 2**-20, 1 + 2**-40, 100, -100, 2**31 + 7, -(2**20))
_LARGE = (2**40 + 5, -(2**35) - 1, 2**63 + 2**62 + 1)
_MOST = 8


def numbers(destination: str, value: str) -> list[int | float]:
    """Numbers that both types hold exactly, four to eight; the largest only where both types are as wide."""
    wide = bits_of(destination) == bits_of(value) and is_float(destination) == is_float(value)
    found = [n for n in _NUMBERS + (_LARGE if wide else ()) if holds(destination, n) and holds(value, n)]
    return [*found[:2], *found[2:][-(_MOST - 2) :]]
