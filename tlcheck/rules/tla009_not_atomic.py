"""TLA009: The addition is no longer atomic

The destination is updated by a plain store where the kernel asks for an atomic: additions of other threads or blocks in
between are lost.

What to do: use a release that has it right.
"""

from __future__ import annotations

from tlcheck.analysis.evidence import Evidence
from tlcheck.analysis.subject import Subject
from tlcheck.rules.rule import Broken

BASIC = 10


def check(subject: Subject, evidence: Evidence) -> Broken | None:
    """Refuted by a plain store to the destination that the kernel does not have, where no atomic on it is left."""
    if evidence.match.sites or evidence.match.orphans or not evidence.stored or evidence.first is None:
        return None
    root = evidence.match.written[0].target.root
    return Broken(f"{root} is updated by a plain store", evidence.first)
