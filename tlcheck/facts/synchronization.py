"""Barriers and waits of a function, with what comes after them."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence

from tlcheck.facts.accesses import AccessEvent
from tlcheck.facts.model import Count, Sync
from tlcheck.facts.trips import Trips
from tlcheck.program.walk import Placed, Program, expressions
from tlcheck.snapshot.ir import Expr

BARRIER = "barrier"
_COUNTED = {
    "mbarrier_wait_parity": "mbarrier wait",
    "ptx_arrive_barrier": "mbarrier arrive",
    "ptx_arrive_barrier_expect_tx": "mbarrier arrive",
    "fence_proxy_async": "proxy fence",
    "warpgroup_wait": "wgmma wait",
}


def synchronization(program: Program, events: Sequence[AccessEvent], trips: Trips) -> tuple[Sync, ...]:
    """Each kind at each place, how often a thread of a block comes there."""
    found: dict[tuple[str, str], Count] = defaultdict(lambda: Count(0))
    shared = [event for event in events if event.space == "shared"]
    for placed in program.statements:
        for top in expressions(placed.stmt):
            if top.op != "call":
                continue
            if top.value == "tvm_storage_sync":
                found[_barrier(top), _place(placed, shared)] += trips.count(placed.scope, threads=False)
            elif top.value in _COUNTED:
                found[_COUNTED[str(top.value)], ""] += trips.count(placed.scope, threads=False)
    return tuple(Sync(*key, count) for key, count in sorted(found.items()))


def _barrier(call: Expr) -> str:
    """Of all threads, or of some: then the call has a number and how many."""
    return BARRIER if len(call.args) < 3 else f"{BARRIER} of {call.args[2].value} threads"


def _place(placed: Placed, events: Sequence[AccessEvent]) -> str:
    """What is done next to shared memory, in program order."""
    number = bisect_right([event.order for event in events], placed.order)
    if number == len(events):
        return "at the end"
    return f"before {events[number].operation} of {events[number].buffer}"
