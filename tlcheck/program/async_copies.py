"""cp.async as releases spell it: how much a call copies, and what a wait leaves under way."""

from __future__ import annotations

import re

from tlcheck.snapshot.ir import Expr

COUNTS_BYTES = (0, 1, 8)  # the last release whose call with two addresses counts bytes; later ones count elements
WAIT = "async_wait_inflight_count"  # an attribute, in pipelines up to 0.1.8


def release_numbers(release: str) -> tuple[int, ...]:
    """A release as numbers, without what comes behind them (`post1`); the newest known where it is not one."""
    found = re.match(r"\d+(\.\d+)*", release)
    return tuple(int(n) for n in found.group().split(".")) if found else (0, 1, 15)


def copied_bytes(call: Expr, bits: int, release: tuple[int, ...]) -> int | None:
    """Bytes that a `ptx_cp_async` copies, of elements of so many bits; None where they vary.

    Forms: (destination, source, size[, predicate]), and in old releases (destination, its offset in bytes, source,
    its offset in elements, size in bytes[, predicate]).
    """
    two_addresses = len(call.args) < 5
    size = call.args[2 if two_addresses else 4]
    if size.op != "int" or not isinstance(size.value, int):
        return None
    return size.value * bits // 8 if two_addresses and release > COUNTS_BYTES else size.value
