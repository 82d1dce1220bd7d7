"""A vector atomic as written that begins in bounds and ends outside is the author's fault: nothing is judged."""

from __future__ import annotations

from pathlib import Path

from tlcheck.execute.run import execute
from tlcheck.snapshot import codec

RULES = Path(__file__).parents[2] / "fixtures" / "rules"


def test_a_vector_that_ends_outside() -> None:
    """B has 510 elements, and the last thread adds to elements 508 to 511."""
    (output,) = execute(codec.loads((RULES / "TLA007-bad.snapshot.json").read_text())).outputs
    assert output.verdict == "undecided"
    assert "access of B out of bounds" in output.reason


def test_vectors_that_end_inside() -> None:
    (output,) = execute(codec.loads((RULES / "TLA007-good.snapshot.json").read_text())).outputs
    assert output.verdict == "agreed"
