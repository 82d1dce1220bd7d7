"""Changes of synchronization."""

from __future__ import annotations

from collections.abc import Iterator

from tlcheck.facts.change import Change
from tlcheck.facts.kernel_facts import BARRIER, Facts, Sync

_MANY = 2  # times as many barriers may cost time


def barrier_changes(before: Facts, after: Facts) -> Iterator[Change]:
    """Barriers that came, went or moved: each is known by what comes after it."""
    old, new = ({(s.name, s.place): s for s in facts.syncs if s.place} for facts in (before, after))
    gone = [old[key] for key in sorted(old.keys() - new.keys())]
    come = [new[key] for key in sorted(new.keys() - old.keys())]
    if gone and come:
        yield Change("barrier", "kernel", "barriers", "moved", f"barriers moved: {_places(gone)} -> {_places(come)}")
    elif gone or come:
        what = "removed" if gone else "added"
        yield Change("barrier", "kernel", "barrier", what, f"barrier {what} {_places(gone or come)}")
    fewer = [key for key in sorted(old.keys() & new.keys()) if not old[key].count.same(new[key].count)]
    if fewer and not (gone or come):
        detail = ", ".join(f"{n[0]} {n[1]}: {old[n].count} -> {new[n].count} times" for n in fewer)
        one, other = (sum(s.count.number for s in side.values()) for side in (old, new))
        words = "more often" if other > one else "less often"
        yield Change("barrier count", "kernel", "barriers", words, detail, slower=other >= _MANY * one)


def _places(syncs: list[Sync]) -> str:
    return ", ".join(f"{sync.place}{sync.name.removeprefix(BARRIER)}" for sync in syncs)


def wait_changes(before: Facts, after: Facts) -> Iterator[Change]:
    """Everything else that waits or signals, by its number alone."""
    old, new = ({s.name: s.count for s in facts.syncs if not s.place} for facts in (before, after))
    for name in sorted(old.keys() | new.keys()):
        one, other = (side[name].number if name in side else 0 for side in (old, new))
        if one != other:
            yield Change("wait", name, name, "more" if other > one else "fewer", f"{one} -> {other} in a thread")
