"""Verdicts on real snapshots against an oracle that runs them.

What is proved adds the same, what is refuted differs, as the witness says.
"""

from __future__ import annotations

import pytest

from tests.cpu.prove.oracle import Kernel
from tests.cpu.prove.oracle_text import UnsupportedError
from tests.cpu.prove.witnesses import FOOTPRINT, untrue
from tests.fixtures.index import Fixture, read
from tlcheck.snapshot.ir import Snapshot
from tlcheck.verdicts.atomic_claims import AtomicReport
from tlcheck.verdicts.claim import PROVED, REFUTED

pytestmark = pytest.mark.xdist_group("fixtures")  # each is judged once

# Every era's IR, with wrong code and right; of the kernels that are kept of all four, each is run in two.
RELEASES = ("0.1.6.post2", "0.1.7", "0.1.12", "0.1.15")
LEFT = ("one_element", "second_group")  # the oracle runs a tile once a block, and counts fragments from thread 0
EVERY = [f for f in read().fixtures if f.release in RELEASES and not any(name in f.path for name in LEFT)]
ERAS = [f for f in EVERY if f.path.startswith("era/")]
SOME = [f for f in EVERY if f not in ERAS or ERAS.index(f) % len(RELEASES) % 2 == ERAS.index(f) // len(RELEASES) % 2]
UNSUPPORTED = {"tma_tile": "a TMA reduction", "attention": "a layout is too large"}  # what the oracle does not cover


@pytest.mark.slow
@pytest.mark.parametrize("fixture", [pytest.param(f, id=f.path) for f in SOME])
def test_verdicts_are_true(fixture: Fixture) -> None:
    reason = next((reason for name, reason in UNSUPPORTED.items() if name in fixture.path), None)
    if reason is None:
        _agree(fixture.snapshot(), fixture.report())
    else:
        with pytest.raises(UnsupportedError, match=reason):
            _agree(fixture.snapshot(), fixture.report())


def _agree(snapshot: Snapshot, report: AtomicReport) -> None:
    kernel = Kernel(snapshot)
    verdicts = {a.buffer: {b.verdict for b in report.claims if b.buffer == a.buffer} for a in report.claims}
    proved = [root for root, found in verdicts.items() if found == {PROVED}]
    for checkpoint in snapshot.checkpoints:
        for block in kernel.blocks()[:2][-1:] if checkpoint not in ("source", "intent", "tile-ops") else ():
            wrong = {root: kernel.differs(checkpoint, root, block) for root in proved}
            assert not any(wrong.values()), (checkpoint, block, wrong)
    for atomic in report.claims:
        if atomic.verdict == REFUTED and atomic.finding is not None and atomic.finding.rule in FOOTPRINT:
            assert untrue(snapshot, atomic) == ""
