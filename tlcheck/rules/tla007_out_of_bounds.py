"""TLA007: A lane writes outside the destination

A lane's address lies before or behind the destination's memory: a tail without its guard, a vector wider than what is left,
or a layout whose image is larger than the buffer.

What to do: use a release that has it right; until then, pad the buffer to whole tiles.
"""

from __future__ import annotations

from tlcheck.analysis.evidence import Evidence
from tlcheck.analysis.subject import Subject
from tlcheck.rules.rule import Broken

BASIC = 50


def check(subject: Subject, evidence: Evidence) -> Broken | None:
    """Refuted by a lane whose offset is negative or not below the buffer's size."""
    count = evidence.difference.outside if evidence.difference else None
    if count is None:
        return None
    return Broken(f"{count.wrong} of {count.total} lanes write outside the buffer", count.witness, "pad to whole tiles")
