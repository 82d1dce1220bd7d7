"""A kernel's verdict does not depend on what the case, or its file, is called."""

from __future__ import annotations

from dataclasses import replace

from tests.fixtures.index import FOLDER
from tlcheck.execute.request import Request
from tlcheck.snapshot.ir import Snapshot
from tlcheck.verdicts.judging import verdicts_of
from tlcheck.verdicts.results import read_snapshot
from tlcheck.witness import Element


def shown_by(snapshot: Snapshot) -> list[tuple[object, ...]]:
    """Return the wrong elements with their numbers, which come from the inputs."""
    witnesses = [claim.finding.witness for claim in verdicts_of(snapshot, Request()).claims if claim.finding]
    return [(one.index, one.got, one.expected, one.inputs) for one in witnesses if isinstance(one, Element)]


def test_inputs_are_drawn_for_what_is_executed() -> None:
    found = read_snapshot(FOLDER / "wrong" / "sums-0.1.9.snapshot.json")
    assert shown_by(found) == [((0,), "-2.0", "4.0", "random inputs of seed 0; 61 elements differ")]
    called = replace(found, case="another", file="other.py", args={"n": "1"})
    assert shown_by(called) == shown_by(found)
