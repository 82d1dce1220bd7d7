"""What the tests of the gate share: sides made of saved snapshots, and comparisons made by hand."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from functools import cache
from pathlib import Path

from tests.cpu.checking import SAVED, failed, make_atomic, make_result, make_run, saved_result
from tlcheck.facts import Facts, facts_of
from tlcheck.gate.compare import outcomes
from tlcheck.gate.outcome import Comparison, Outcome, Side
from tlcheck.verdicts.results import read_snapshot

__all__ = ["compared", "failing", "made", "make_atomic", "outcome", "saved", "side_of"]


def saved(name: str, release: str) -> Side:
    """The side that a committed snapshot makes."""
    return side_of(SAVED / f"{name}-{release}.snapshot.json")


@cache
def side_of(file: Path) -> Side:
    snapshot = read_snapshot(file)
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    return Side(saved_result(file, snapshot, 0), facts_of(snapshot), 1.0, snapshot.line, digest)


def made(*verdicts: str, release: str = "0.1.15") -> Side:
    """A side with these verdicts and nothing else."""
    return Side(make_result(*verdicts, run=make_run(release)), Facts(release), 1.0, 7, "digest")


def failing(message: str = "boom", kind: str = "exception", release: str = "0.1.15") -> Side:
    return Side(failed(kind, message, make_run(release)))


def compared(
    before: Side | None, after: Side | None, *, one: bool = False, name: str = "case", target: str = "sm_90"
) -> Comparison:
    """With its outcomes."""
    pair = Comparison("k.py", name, target, before, after)
    return replace(pair, outcomes=outcomes(pair, one_toolchain=one))


def outcome(klass: str, kind: str = "atomic", before: str = "x4", after: str = "4 x", subject: str = "B") -> Outcome:
    return Outcome(klass, kind, before, after, f"{subject}: {before} -> {after}", subject, 3)
