"""cp.async as releases spell it: how much a call copies, and what a wait leaves under way."""

from __future__ import annotations

from tlcheck.program.release import Release
from tlcheck.signatures.table import signature_of
from tlcheck.snapshot.ir import Expr

_COUNTS_ELEMENTS = Release.of("0.1.9")  # the first whose call with two addresses counts elements; earlier: bytes
WAIT = "async_wait_inflight_count"  # an attribute, in pipelines up to 0.1.8


def copied_bytes(call: Expr, bits: int, release: Release) -> int | None:
    """Bytes that a `ptx_cp_async` copies, of elements of so many bits, as a release lowers it; None where they vary.

    Forms: (destination, source, size[, predicate]), and in old releases (destination, its offset in bytes, source,
    its offset in elements, size in bytes[, predicate]).
    """
    signature = signature_of(call)
    if signature is None or signature.size is None:
        return None
    two_addresses, size = signature.reads[0].offset is None, call.args[signature.size]
    if size.op != "int" or not isinstance(size.value, int):
        return None
    return size.value * bits // 8 if two_addresses and release >= _COUNTS_ELEMENTS else size.value
