"""Barriers and waits of a function, with what comes after them."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence

from tlcheck.facts.access_census import AccessEvent
from tlcheck.facts.kernel_facts import BARRIER, Count, Sync
from tlcheck.facts.trips import Trips
from tlcheck.program.walk import Placed, Program, expressions
from tlcheck.signatures import barriers
from tlcheck.signatures.signature import Collective, Completion, Fence
from tlcheck.signatures.table import family_of, signature_of
from tlcheck.snapshot.ir import Attr, Expr

_WAITS = {
    Completion.BULK_GROUP: "TMA store wait",
    Completion.MBARRIER: "mbarrier wait",
    Completion.WGMMA_GROUP: "wgmma wait",
}


def synchronization(program: Program, events: Sequence[AccessEvent], trips: Trips) -> tuple[Sync, ...]:
    """Each kind at each place, how often a thread of a block comes there."""
    found: dict[tuple[str, str], Count] = defaultdict(lambda: Count(0))
    shared = [event for event in events if event.space == "shared"]
    for placed in program.statements:
        if isinstance(placed.stmt, Attr):
            found[_group_wait(placed.stmt.value), ""] += trips.count(placed.scope, threads=False)
        for top in expressions(placed.stmt):
            name = _name(top)
            if name:
                place = _place(placed, shared) if name.startswith(BARRIER) else ""
                found[name, place] += trips.count(placed.scope, threads=False)
    return tuple(Sync(*key, count) for key, count in sorted(found.items()))


def _name(call: Expr) -> str:
    """The name under which an instruction is counted; empty for one that is not."""
    signature = signature_of(call)
    if signature is None:
        return ""
    if family_of(call) is barriers.FAMILY:
        return _barrier(call) if signature.waits and signature.collective is Collective.BLOCK else ""
    if signature.awaits is Completion.CP_ASYNC_GROUP:
        return _group_wait(call.args[0] if call.args else Expr("int", "int32", value=0))
    if signature.awaits is not None:
        return _WAITS.get(signature.awaits, "")
    if signature.mbarrier is not None and signature.releases:
        return "mbarrier arrive"
    return "proxy fence" if signature.fence is Fence.PROXY else ""


def _group_wait(newest: Expr | None) -> str:
    """A wait for groups of cp.async: it matters how many of them it leaves under way."""
    count = newest.value if newest is not None and newest.op == "int" else "?"
    return f"cp.async wait for all but {count} groups"


def _barrier(call: Expr) -> str:
    """Name a barrier of all threads, or of some: then the call has a number and how many."""
    numbers = [a for a in call.args if a.op != "str"]
    return BARRIER if len(numbers) < 2 else f"{BARRIER} of {numbers[1].value} threads"


def _place(placed: Placed, events: Sequence[AccessEvent]) -> str:
    """Return what is done next to shared memory, in program order."""
    number = bisect_right([event.order for event in events], placed.order)
    if number == len(events):
        return "at the end"
    return f"before {events[number].operation} of {events[number].buffer}"
