"""Blocks that run at once and are not at the same place."""

from __future__ import annotations

from pathlib import Path

from tests.hardware.snapshots import unpack
from tlcheck.execute.compare.both_levels import execute

(VARYING,) = unpack(Path(__file__).parents[1] / "varying-start-0.1.15.zip").values()


def test_copies_of_one_statement_complete_the_barrier_of_their_own_block() -> None:
    """The pipeline of block x begins with step x (lowered with 0.1.15 for sm_90): barriers go by the steps that were
    made, so that two blocks use different ones at the same step. None of their accesses is unordered.
    """
    found = execute(VARYING)
    assert [o.verdict for o in found.outputs] == ["agreed"]
    assert len(found.blocks) == 2
    assert not found.races
