"""Define what checking found of one run: its claims, or why it was not checked. No snapshot stays in memory for it."""

from __future__ import annotations

import traceback
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tlcheck import exits
from tlcheck.cost.kernel_cost import KernelCost
from tlcheck.errors import UsageError
from tlcheck.lower.runs import Lowered, Run
from tlcheck.snapshot import codec
from tlcheck.snapshot.ir import Snapshot
from tlcheck.verdicts.claim import UNDECIDED, Claim, Excuse
from tlcheck.verdicts.kept import Verdicts
from tlcheck.verdicts.source_lines import with_lines
from tlcheck.worker.protocol import Failure


@dataclass(frozen=True, slots=True)
class Result:
    """One run: its claims, or why it was not checked (`failure`, with its `excuse`).

    saved: the snapshot's file, where the user gave that. broken: expectations that no longer hold, in words.
    notes: anything else to know. source_digest: of what the source left, and on what (`Execution.digest`). cost: where
    it was asked for and can be counted. reference: that the source agrees with the case's reference, in words; else
    empty. seconds: of lowering and judging it; 0 where that was known.
    """

    run: Run
    claims: tuple[Claim, ...] = ()
    failure: Failure | None = None
    excuse: Excuse | None = None
    saved: str = ""
    pass_configs: Mapping[str, str] | None = None
    broken: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    source_digest: str = ""
    cost: KernelCost | None = None
    reference: str = ""
    seconds: float = field(default=0.0, compare=False)

    def count(self, verdict: str) -> int:
        """Number of claims with this verdict; refuted ones with an excuse are `expected`, `accepted` or `warning`."""
        return sum(1 for claim in self.claims if claim.counts_as == verdict)

    @property
    def is_silent(self) -> bool:
        """Whether the kernel lowers, and nothing of it is decided: no claim, or none with a verdict."""
        return self.failure is None and all(claim.verdict == UNDECIDED for claim in self.claims)

    @property
    def is_interrupted(self) -> bool:
        """Whether the user ended the run before this was done."""
        return self.failure is not None and self.failure.kind == "interrupted"


def codes_of(results: Iterable[Result]) -> Mapping[str, int]:
    """Return how many claims are undecided, by the code of their reason."""
    found = Counter(claim.code for r in results for claim in r.claims if claim.verdict == UNDECIDED and claim.code)
    return dict(sorted(found.items()))


def exit_code(results: Iterable[Result], *, strict: bool) -> int:
    """Return the exit code of results. strict: an undecided claim and a warning are wrong too.

    A run in which nothing is decided is not checked.
    """
    everything = list(results)
    failures = [r.failure for r in everything if r.failure is not None and r.excuse is None]
    return exits.exit_code(
        usage=any(failure.kind == "usage" for failure in failures),
        found=any(
            r.count("refuted") or r.broken or (strict and (r.count("undecided") + r.count("warning")))
            for r in everything
        ),
        unchecked=bool(failures) or any(r.is_silent for r in everything),
    )


def read_snapshot(file: Path) -> Snapshot:
    """A snapshot that the user saved. Raises UsageError."""
    try:
        return codec.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"{file}: {error}") from error


def result_of(run: Run, verdicts: Verdicts) -> Result:
    """The result of a run. Source lines are read anew: a comment beside an atomic changes them and not the snapshot."""
    claims = with_lines(verdicts.claims)
    configs, notes = verdicts.pass_configs, verdicts.notes
    return Result(
        run,
        claims,
        verdicts.failure,
        pass_configs=configs,
        notes=notes,
        source_digest=verdicts.source_digest,
        cost=verdicts.cost,
    )


def unlowered(lowered: Lowered) -> Result:
    """The result of a run without a snapshot, by no policy."""
    return Result(lowered.run, failure=lowered.failure, notes=notes_of(lowered))


def notes_of(lowered: Lowered) -> tuple[str, ...]:
    """Return what there is to say of a lowering that made a snapshot."""
    return tuple(f"no checkpoint {name}: {why}" for name, why in lowered.unsaved.items())


def internal_failure(error: Exception) -> Failure:
    """A fault of tlcheck's own as the failure of one run."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{Path(frame.filename).name}:{frame.lineno}"
    message = f"tlcheck itself failed: {type(error).__name__}: {error}"
    return Failure("internal", "check", message, "a bug: please report it with the snapshot (--save DIR)", where)
