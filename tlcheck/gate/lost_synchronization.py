"""Barriers, waits and fences that are gone: whether the accesses that they stood between are still in order."""

from __future__ import annotations

from collections.abc import Sequence

from tlcheck.facts import Change, Facts
from tlcheck.verdicts.claim import UNDECIDED, Claim


def unordered(change: Change, before: Facts, after: Facts, claims: Sequence[Claim]) -> str:
    """Whose order the new side leaves open, in words; empty where it is decided.

    A barrier is about the buffer whose access comes after it, a wait or a fence about all of them. What is refuted is
    decided: the claim says so.
    """
    examined = [claim for claim in claims if claim.kind in ("order", "legality")]
    if not any(claim.verdict != UNDECIDED for claim in examined):
        return "of any access"
    buffers = guarded(before, after) if change.kind == "barrier" else frozenset[str]()
    open_ = [c.buffer for c in examined if c.kind == "order" and c.verdict == UNDECIDED]
    return ", ".join(dict.fromkeys(name for name in open_ if not buffers or name in buffers))


def guarded(before: Facts, after: Facts) -> frozenset[str]:
    """The buffers before an access of which there was a barrier; none where one stood at the end."""
    kept = {(s.name, s.place) for s in after.syncs}
    gone = {s.place for s in before.syncs if s.place and (s.name, s.place) not in kept}
    buffers = {place.rpartition(" of ")[2] for place in gone}
    return frozenset() if any(" of " not in place for place in gone) else frozenset(buffers)
