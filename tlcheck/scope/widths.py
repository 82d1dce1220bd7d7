"""How much of memory an access may touch."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from tlcheck.execute.memory.plain import evaluated
from tlcheck.signatures.atomics import ATOMICS
from tlcheck.signatures.calls import name_of_call
from tlcheck.signatures.signature import Completion
from tlcheck.signatures.table import signature_of
from tlcheck.snapshot.dtypes import dtype_of
from tlcheck.snapshot.ir import Buffer, Expr

WIDEST = 32  # bytes of an access by one thread: vectors of 256 bits (PTX 9.7.9.8)
_COPIED = 16  # bytes of cp.async at most


def bits_of(buffer: Buffer, sizes: Mapping[str, int]) -> int:
    """Return how many bits a tensor has."""
    return prod(int(evaluated(e, sizes)) for e in buffer.shape) * dtype_of(buffer.dtype).bits


def predicate(call: Expr) -> Expr | None:
    """Return the condition without which cp.async reads nothing; None where there is none."""
    signature = signature_of(call)
    return call.args[signature.predicate] if signature is not None and signature.predicate is not None else None


def octets_of(call: Expr, address: Expr) -> int:
    """Return how many bytes from an address on an instruction accesses at most."""
    element, signature = address.args[0], signature_of(call)
    if signature is not None and signature.asynchronous is Completion.CP_ASYNC_GROUP:
        return _COPIED
    if signature is not None and signature.size is not None:
        size = call.args[signature.size].value
        return size if isinstance(size, int) else 1 << 40
    atomic = ATOMICS.get(name_of_call(call))
    return WIDEST if atomic is None else atomic.width * -(-dtype_of(element.dtype).bits // 8)


def is_compact(buffer: Buffer, sizes: Mapping[str, int]) -> bool:
    """Whether a tensor's rows lie one after the other."""
    shape, steps = ([int(evaluated(e, sizes)) for e in of] for of in (buffer.shape, buffer.strides))
    return not steps or steps == [prod(shape[n + 1 :]) for n in range(len(shape))]
