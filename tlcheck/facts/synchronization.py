"""Barriers and waits of a function, with what comes after them."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence

from tlcheck.facts.accesses import AccessEvent
from tlcheck.facts.model import BARRIER, Count, Sync
from tlcheck.facts.trips import Trips
from tlcheck.program.walk import Placed, Program, expressions
from tlcheck.snapshot.ir import Attr, Expr

_ALL = Expr("int", "int32", value=0)
_GROUP_WAITS = {"ptx_wait_group": None, "ptx_wait_all": _ALL, "cp_async_wait_all": _ALL}
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
        if isinstance(placed.stmt, Attr):
            found[_group_wait(placed.stmt.value), ""] += trips.count(placed.scope, threads=False)
        for top in expressions(placed.stmt):
            if top.op != "call":
                continue
            if top.value == "tvm_storage_sync":
                found[_barrier(top), _place(placed, shared)] += trips.count(placed.scope, threads=False)
            elif top.value in _GROUP_WAITS:
                found[_group_wait(_GROUP_WAITS[str(top.value)] or top.args[0]), ""] += trips.count(
                    placed.scope, threads=False
                )
            elif top.value in _COUNTED:
                found[_COUNTED[str(top.value)], ""] += trips.count(placed.scope, threads=False)
    return tuple(Sync(*key, count) for key, count in sorted(found.items()))


def _group_wait(newest: Expr | None) -> str:
    """A wait for groups of cp.async: it matters how many of them it leaves under way."""
    count = newest.value if newest is not None and newest.op == "int" else "?"
    return f"cp.async wait for all but {count} groups"


def _barrier(call: Expr) -> str:
    """Of all threads, or of some: then the call has a number and how many."""
    return BARRIER if len(call.args) < 3 else f"{BARRIER} of {call.args[2].value} threads"


def _place(placed: Placed, events: Sequence[AccessEvent]) -> str:
    """What is done next to shared memory, in program order."""
    number = bisect_right([event.order for event in events], placed.order)
    if number == len(events):
        return "at the end"
    return f"before {events[number].operation} of {events[number].buffer}"
