"""TLA005: An element is added more often than intended

Some additions happen twice or more: registers that several threads replicate are added by each of them, a tail runs into
the next row, or a loop was duplicated.

What to do: use a release that has it right; a fragment that is not replicated (an explicit layout) avoids the most common form.
"""

from __future__ import annotations

from tlcheck.analysis.evidence import Evidence
from tlcheck.analysis.subject import Subject
from tlcheck.rules.rule import Broken

BASIC = 60


def check(subject: Subject, evidence: Evidence) -> Broken | None:
    """Refuted by a lane that adds what was added before, or what nobody meant."""
    count = evidence.difference.repeated if evidence.difference else None
    if count is None:
        return None
    return Broken(f"{count.wrong} of {count.total} additions are more than what is intended", count.witness)
