"""Make goldens of lowered kernels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tlcheck.config import Config
from tlcheck.facts import to_json
from tlcheck.facts.extract import facts_of
from tlcheck.golden.costs import cost_text
from tlcheck.golden.entry import COST, FACTS, TEXT_SUFFIX, Golden, Key, json_part, key_of
from tlcheck.golden.normal import normal_text
from tlcheck.golden.pending import Pending
from tlcheck.lower.runs import Lowered, of_saved
from tlcheck.snapshot.ir import Snapshot
from tlcheck.verdicts.judge import Judge, Policy
from tlcheck.verdicts.results import Result, read_snapshot
from tlcheck.worker.protocol import Failure


@dataclass(frozen=True)
class Project:
    """A record of where goldens are kept, and of what. root: what their kernel files' paths are relative to. cost:
    whether they hold what kernels cost.
    """

    root: Path
    folder: Path
    checkpoints: tuple[str, ...]
    cost: bool = False


def project_of(config: Config) -> Project:
    root = config.file.parent if config.file is not None else Path.cwd()
    return Project(root, root / config.golden, config.golden_checkpoints, config.golden_cost)


@dataclass(frozen=True)
class Recorded:
    """A run and its golden, or the failure that is the reason why there is none.

    expected: the failure is one that the case expects.
    """

    lowered: Lowered
    key: Key
    golden: Golden | None = None
    snapshot: Snapshot | None = None
    failure: Failure | None = None
    expected: bool = False

    def pending(self, judge: Judge) -> Pending:
        """Return what a person has to decide on. Judges the kernel: what is refuted in it must be known."""
        result = judge(self.lowered)
        notes = [f"not checked: {result.failure.message}"] if result.failure else []
        notes += [claim.words for claim in result.claims if claim.verdict == "undecided"]
        refuted = tuple(claim for claim in result.claims if claim.finding is not None)
        claimed = tuple(f"{claim.kind} {claim.buffer}: {claim.verdict}" for claim in result.claims)
        return Pending(self.key, self.golden, self.lowered.run.versions, refuted, tuple(notes), claimed)


def recorded(lowered: Lowered, project: Project) -> Recorded:
    """Raises UsageError for a kernel file outside the project."""
    run = lowered.run
    key = key_of(run.file, run.name, run.target, project.root)
    if lowered.snapshot is None:
        failed = Policy().apply(Result(run, failure=lowered.failure))
        return Recorded(lowered, key, failure=lowered.failure, expected=failed.excuse is not None)
    return _of_snapshot(lowered, key, read_snapshot(lowered.snapshot), project)


def saved(file: Path, project: Project) -> Recorded:
    """Make a golden of a snapshot that the user saved; its kernel's path counts from the project's folder."""
    s = read_snapshot(file)
    return _of_snapshot(
        of_saved(file, s), key_of(str(project.root / s.file), s.case, s.target, project.root), s, project
    )


def _of_snapshot(lowered: Lowered, key: Key, snapshot: Snapshot, project: Project) -> Recorded:
    golden = golden_of(snapshot, project.checkpoints)
    if not golden.texts():
        wanted = ", ".join(project.checkpoints)
        return Recorded(lowered, key, failure=Failure("check", "lower", f"the kernel did not come to {wanted}"))
    if project.cost:
        golden = with_cost(golden, lowered, snapshot)
    return Recorded(lowered, key, golden, snapshot)


def golden_of(snapshot: Snapshot, checkpoints: Sequence[str]) -> Golden:
    """The normal form at those of `checkpoints` that the kernel came to, and its facts."""
    parts = {f"{c}{TEXT_SUFFIX}": normal_text(snapshot, c) for c in checkpoints if c in snapshot.checkpoints}
    return Golden({**parts, FACTS: json_part(to_json(facts_of(snapshot)))} if parts else {})


def with_cost(golden: Golden, lowered: Lowered, snapshot: Snapshot) -> Golden:
    """The golden with what the kernel costs."""
    return Golden({**golden.parts, COST: cost_text(lowered, snapshot)})
