"""TLA003: A value is added to an element that belongs to another

Each destination gets one addition, but of a value that was meant for another element: the layouts of source and destination
disagree. The numbers come out permuted, with the right sum.

What to do: use a release that has it right; copying the source into a fragment or shared tile of its own first often avoids it.
"""

from __future__ import annotations

from tlcheck.analysis.evidence import Evidence
from tlcheck.analysis.subject import Subject
from tlcheck.rules.rule import Broken

BASIC = 40


def check(subject: Subject, evidence: Evidence) -> Broken | None:
    """Refuted by a lane that reads the source of one element and adds it to another one of the tile."""
    count = evidence.difference.source if evidence.difference else None
    if count is None:
        return None
    return Broken(
        f"{count.wrong} of {count.total} values are added to an element that another value was meant for",
        count.witness,
        "copy the source into a buffer of its own before the atomic",
    )
