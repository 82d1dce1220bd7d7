"""Define what the tests of the gate share: sides made of saved snapshots, and comparisons made by hand."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from functools import cache
from pathlib import Path

from tests.cpu.checking import SAVED, failed, make_atomic, make_result, make_run, saved_result
from tlcheck.facts import Facts
from tlcheck.facts.extract import facts_of
from tlcheck.gate.compare import outcomes
from tlcheck.gate.outcome import LoweredPair, LoweredSide, Outcome
from tlcheck.verdicts.results import read_snapshot

__all__ = ["compared", "failing", "made", "make_atomic", "outcome", "saved", "side_of"]


def saved(name: str, release: str) -> LoweredSide:
    """The side that a committed snapshot makes."""
    return side_of(SAVED / f"{name}-{release}.snapshot.json")


@cache
def side_of(file: Path) -> LoweredSide:
    snapshot = read_snapshot(file)
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    return LoweredSide(saved_result(file, snapshot, 0), facts_of(snapshot), 1.0, snapshot.line, digest)


def made(*verdicts: str, release: str = "0.1.15") -> LoweredSide:
    """A side with these verdicts and nothing else."""
    return LoweredSide(make_result(*verdicts, run=make_run(release)), Facts(release), 1.0, 7, "digest")


def failing(message: str = "boom", kind: str = "exception", release: str = "0.1.15") -> LoweredSide:
    return LoweredSide(failed(kind, message, make_run(release)))


def compared(
    before: LoweredSide | None,
    after: LoweredSide | None,
    *,
    one: bool = False,
    name: str = "case",
    target: str = "sm_90",
) -> LoweredPair:
    """With its outcomes."""
    pair = LoweredPair("k.py", name, target, before, after)
    return replace(pair, outcomes=outcomes(pair, one_toolchain=one))


def outcome(klass: str, kind: str = "atomic", before: str = "x4", after: str = "4 x", subject: str = "B") -> Outcome:
    return Outcome(klass, kind, before, after, f"{subject}: {before} -> {after}", subject, 3)
