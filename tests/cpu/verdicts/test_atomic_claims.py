"""Verdicts of real kernels of every era, against what the kernels' authors found in the generated CUDA source."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.fixtures.index import Fixture, read
from tlcheck.prove import plans
from tlcheck.prove.evidence import Evidence
from tlcheck.prove.subject import PreparedSnapshot, evidences, subject
from tlcheck.snapshot.checkpoint import Checkpoint
from tlcheck.verdicts.atomic_claims import AtomicReport, judge_atomics
from tlcheck.verdicts.claim import Claim, Finding
from tlcheck.verdicts.expectations import within
from tlcheck.verdicts.rules.rule import Broken, rules
from tlcheck.witness import Addition

pytestmark = pytest.mark.xdist_group("fixtures")  # each is judged once

INDEX = read()
ERA = [pytest.param(f, id=f.path) for f in INDEX.fixtures if f.path.startswith("era/")]
DEMO = next(f for f in INDEX.fixtures if f.path.startswith("demo/"))

# Kernel, and the release where it is only in one -> a part of the reason.
UNDECIDED = {
    "cases/atomic_operations.py::tma_tile": "adds it, which is not understood",  # bulk copies of the TMA engine
    # A guard that is split in two branches, of which the second never runs.
    "cases/atomics.py::tail_tile_symbolic@0.1.6.post2": "a condition on blocks or iterations is not understood",
}


def expected(fixture: Fixture) -> set[tuple[str, str]]:
    """(destination, rule) of what the case declares for this release and arch."""
    return {
        (expect.buffer, expect.rule)
        for expect in INDEX.expects[fixture.kernel]
        if within(expect.releases, fixture.release, fixture.kernel)
        and (not expect.targets or fixture.arch in expect.targets)
    }


@pytest.mark.parametrize("fixture", ERA)
def test_what_is_known_to_be_wrong_is_refuted_and_all_else_proved(fixture: Fixture) -> None:
    report = fixture.report()
    assert not report.problem
    assert report.claims
    refuted = {(a.buffer, a.finding.rule) for a in report.claims if a.finding}
    assert refuted == expected(fixture)
    known = UNDECIDED.get(f"{fixture.kernel}@{fixture.release}") or UNDECIDED.get(fixture.kernel)
    undecided = [a.reason for a in report.claims if a.verdict == "undecided"]
    assert all(known and known in reason for reason in undecided), undecided


def test_some_of_every_era_is_wrong() -> None:
    """The test above means something: the declarations reach the releases."""
    wrong = {f.values[0].release for f in ERA if isinstance(f.values[0], Fixture) and expected(f.values[0])}
    assert {"0.1.6.post2", "0.1.7", "0.1.7.post3", "0.1.8", "0.1.9", "0.1.10", "0.1.13", "0.1.14"} <= wrong
    assert "0.1.15" not in wrong


def atomic(report: AtomicReport, buffer: str) -> Claim:
    (found,) = [a for a in report.claims if a.buffer == buffer]
    return found


def test_attention_of_the_first_seed_is_refuted_once() -> None:
    report = DEMO.report()
    assert [(a.buffer, a.verdict) for a in report.claims] == [("dQ", "refuted"), ("dV", "proved"), ("dK", "proved")]
    for buffer in ("dV", "dK"):
        checkpoints = {s.checkpoint: s.status for s in atomic(report, buffer).stages}
        assert checkpoints.keys() == {"lower-tile-op", "vectorize-loop", "device-tir"}
        assert set(checkpoints.values()) == {"same"}


def test_attention_has_its_lanes_32_elements_apart() -> None:
    finding = atomic(DEMO.report(), "dQ").finding
    assert finding is not None
    assert (finding.rule, finding.checkpoint, finding.pass_name) == ("TLA001", "lower-tile-op", "tl.LowerTileOp")
    assert finding.what.startswith("2048 of 4096 lanes of AtomicAddx2 ")
    witness = finding.witness
    assert isinstance(witness, Addition)
    assert dict(witness.instance) == {"blockIdx.x": 0, "blockIdx.y": 0, "blockIdx.z": 0, "k": 0}
    assert (witness.thread, witness.lane, witness.stride) == (0, 1, 32)
    assert (witness.element, witness.intended, witness.written) == ((0, 0, 0, 1), 32, 1)
    assert finding.layout
    assert finding.excerpt is not None


def test_half_of_attentions_vectors_are_misaligned_too() -> None:
    finding = atomic(DEMO.report(), "dQ").finding
    assert finding is not None
    assert "TLA002" in finding.others
    assert _what(finding, "TLA002").startswith("1024 of 2048 AtomicAddx2 are not aligned to 2 elements")


def _what(finding: Finding, rule: str) -> str:
    """Return what one of the rules under `also` says, at the finding's checkpoint."""
    of = subject(DEMO.snapshot())
    said = [
        broken.what
        for e in evidences(of)
        if e.checkpoint == finding.checkpoint and e.match.source[0].target.root == "dQ"
        if (broken := _broken(rule, of, e)) is not None
    ]
    assert len(said) == 1
    return said[0]


def _broken(identifier: str, of: PreparedSnapshot, evidence: Evidence) -> Broken | None:
    check = next(rule.check for rule in rules() if rule.id == identifier)
    assert check is not None
    return check(of, evidence)


def watched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The checkpoints at which an atomic is compared, as that happens."""
    judged: list[str] = []
    ask = plans.plans

    def asked(comparison: plans.Comparison) -> Iterator[plans.Plan]:
        judged.append(comparison.stage.checkpoint)
        return ask(comparison)

    monkeypatch.setattr("tlcheck.prove.evidence.plans", asked)
    return judged


def test_checkpoints_that_are_equal_are_judged_once_and_reported_each(monkeypatch: pytest.MonkeyPatch) -> None:
    snapshot = next(f for f in INDEX.fixtures if f.path == "era/tile_small-0.1.15").snapshot()
    judged = watched(monkeypatch)
    report = judge_atomics(snapshot)
    assert judged == ["lower-tile-op", "vectorize-loop", "device-tir"]
    lowered = [c for c in Checkpoint if c.is_lowered]
    assert [[stage.checkpoint for stage in claim.stages] for claim in report.claims] == [lowered]
    judged.clear()
    monkeypatch.setattr("tlcheck.prove.subject.united", dict)
    assert judge_atomics(snapshot) == report
    assert judged == lowered


def test_equal_checkpoints_of_which_more_is_asked_are_judged_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tails need no guards before vectors are made, and need them after."""
    snapshot = next(f for f in INDEX.fixtures if f.path == "era/tail_tile_odd-0.1.15").snapshot()
    early = snapshot.checkpoints["lower-tile-op"]
    judged = watched(monkeypatch)
    report = judge_atomics(replace(snapshot, checkpoints={**snapshot.checkpoints, "vectorize-loop": early}))
    assert judged == ["lower-tile-op", "vectorize-loop", "device-tir"]
    (claim,) = report.claims
    statuses = {stage.checkpoint: stage.status for stage in claim.stages}
    assert statuses["type-cast"] == "same"
    assert statuses["vectorize-loop"] == "different"


def test_without_the_kernel_as_written_nothing_is_checked() -> None:
    snapshot = DEMO.snapshot()
    lowered = {name: f for name, f in snapshot.checkpoints.items() if name not in ("intent", "tile-ops")}
    report = judge_atomics(replace(snapshot, checkpoints=lowered))
    assert not report.claims
    assert "the kernel as written" in report.problem


def test_without_anything_lowered_nothing_is_checked() -> None:
    snapshot = DEMO.snapshot()
    report = judge_atomics(replace(snapshot, checkpoints={"intent": snapshot.checkpoints["intent"]}))
    assert not report.claims
    assert "nothing after" in report.problem


def test_what_a_snapshot_no_longer_shows_is_not_proved() -> None:
    snapshot = next(f for f in INDEX.fixtures if f.path == "era/tile_small-0.1.15").snapshot()
    early = {name: f for name, f in snapshot.checkpoints.items() if name not in ("vectorize-loop", "device-tir")}
    report = judge_atomics(replace(snapshot, checkpoints=early))
    assert [(a.verdict, a.reason) for a in report.claims] == [
        ("undecided", "the snapshot ends at type-cast: later passes are not seen")
    ]


def test_the_lanes_of_both_sides_count_before_blocks_are_enumerated(monkeypatch: pytest.MonkeyPatch) -> None:
    """Checking may take hours if only those of the kernel as written count."""
    fixture = next(f for f in INDEX.fixtures if f.path == "era/shared_histogram-0.1.14")
    assert all(a.verdict == "proved" for a in fixture.report().claims)
    written = 4 * 128  # blocks and threads, of which each has one addition on either side
    monkeypatch.setattr(plans, "BUDGET", 2 * written)
    assert all(a.verdict == "proved" for a in judge_atomics(fixture.snapshot()).claims)
    monkeypatch.setattr(plans, "BUDGET", 2 * written - 1)
    assert "undecided" in {a.verdict for a in judge_atomics(fixture.snapshot()).claims}
