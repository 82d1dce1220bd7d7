"""How much of memory an access may touch."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from tlcheck.execute.memory.plain import evaluated
from tlcheck.signatures import cp_async
from tlcheck.signatures.atomics import ATOMICS
from tlcheck.signatures.bulk_copies import FAMILY
from tlcheck.signatures.calls import name_of_call
from tlcheck.signatures.table import family_of
from tlcheck.snapshot.dtypes import dtype_of
from tlcheck.snapshot.ir import Buffer, Expr

WIDEST = 32  # bytes of an access by one thread: vectors of 256 bits (PTX 9.7.9.8)
_COPIED = 16  # bytes of cp.async at most


def bits_of(buffer: Buffer, sizes: Mapping[str, int]) -> int:
    """Return how many bits a tensor has."""
    return prod(int(evaluated(e, sizes)) for e in buffer.shape) * dtype_of(buffer.dtype).bits


def predicate(call: Expr) -> Expr | None:
    """Return the condition without which cp.async reads nothing; None where there is none."""
    return call.args[-1] if family_of(call) is cp_async.FAMILY and len(call.args) in (4, 6) else None


def octets_of(call: Expr, address: Expr) -> int:
    """Return how many bytes from an address on an instruction accesses at most."""
    family, element = family_of(call), address.args[0]
    if family is FAMILY:
        place = 3 if str(call.value).startswith("tma_load") else 2
        size = call.args[place].value
        return size if isinstance(size, int) else 1 << 40
    if family is cp_async.FAMILY:
        return _COPIED
    atomic = ATOMICS.get(name_of_call(call))
    return WIDEST if atomic is None else atomic.width * -(-dtype_of(element.dtype).bits // 8)


def is_compact(buffer: Buffer, sizes: Mapping[str, int]) -> bool:
    """Whether a tensor's rows lie one after the other."""
    shape, steps = ([int(evaluated(e, sizes)) for e in of] for of in (buffer.shape, buffer.strides))
    return not steps or steps == [prod(shape[n + 1 :]) for n in range(len(shape))]
