"""TLA011: The destination's layout puts two elements in one place

An annotated layout has to be injective: where it maps two logical elements to one physical offset, their sums are mixed, and
no lowering can be right.

What to do: correct the layout.
"""

from __future__ import annotations

from tlcheck.analysis.difference import Witness
from tlcheck.analysis.evidence import Evidence
from tlcheck.analysis.subject import Subject
from tlcheck.rules.rule import Broken

BASIC = 0


def check(subject: Subject, evidence: Evidence) -> Broken | None:
    """Refuted by two elements of the destination with one offset."""
    root = evidence.match.written[0].target.root
    clash = subject.clash(root)
    if clash is None:
        return None
    one, other, offset = clash
    return Broken(
        f"its layout maps the elements {list(one)} and {list(other)} to the same offset {offset}",
        Witness((), (), None, None, other, offset, offset),
        "correct the annotated layout",
    )
