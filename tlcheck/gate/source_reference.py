"""Find what the releases trace a case to: the source, against the case's reference.

TileLang traces a kernel file to TIR before its first pass, and a release may trace it wrongly. Then all that comes
after is right, and other releases give another source kernel. Releases that trace it to the same have one answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path

from tlcheck.errors import UsageError
from tlcheck.execute.request import Request
from tlcheck.gate.outcome import AGREES, DIFFERS
from tlcheck.gate.pairing import unquoted
from tlcheck.lower.runs import Lowered, Position, Run
from tlcheck.lower.session import Watcher
from tlcheck.run.blame import against_reference
from tlcheck.run.examination import RunRequest
from tlcheck.run.processes import CopiedProcess
from tlcheck.snapshot.checkpoint import Checkpoint
from tlcheck.snapshot.ir import Snapshot
from tlcheck.snapshot.text import render
from tlcheck.toolchain.resolve import resolve
from tlcheck.verdicts.results import read_snapshot

_SECONDS = 20.0  # of the processor, for one source and for its reference


@dataclass(frozen=True)
class SourceAnswer:
    """A record of what the source comes to. answer: `agrees`, `differs` or `undecided`; why: difference or reason."""

    answer: str
    why: str = ""


def with_reference(
    found: Sequence[Lowered], request: RunRequest, asked: Request, folder: Path, watcher: Watcher
) -> dict[Position, SourceAnswer]:
    """The answer for each run that has inputs, a reference and a kernel. Raises UsageError for unfit inputs.

    asked: which blocks run, and what an execution, or a reference, may take.
    """
    asked = replace(asked, budget=replace(asked.budget, seconds=min(asked.budget.seconds, _SECONDS)))
    wanted = sorted((x for x in found if x.run.has_inputs and x.snapshot is not None), key=lambda x: x.run.toolchain)
    known: dict[tuple[str, ...], SourceAnswer | None] = {}
    answers: dict[Position, SourceAnswer] = {}
    for toolchain, own in groupby(wanted, key=lambda x: x.run.toolchain):
        with closing(CopiedProcess(resolve(toolchain, request.settings.requirements))) as process:
            for lowered in own:
                assert lowered.snapshot is not None
                snapshot = read_snapshot(lowered.snapshot)
                key = unquoted(lowered.run.case), lowered.run.target, *as_traced(snapshot)
                if key not in known:
                    watcher.stage(f"executing {lowered.run.case} {lowered.run.target} as {toolchain} has it written")
                    known[key] = _answer(lowered.run, snapshot, folder, process, request, asked)
                answer = known[key]
                if answer is not None:
                    answers[lowered.run.position] = answer
    return answers


def as_traced(snapshot: Snapshot) -> tuple[str, ...]:
    """Return what a release has made of the file, before its first pass; nothing where that cannot be read."""
    source = snapshot.checkpoints.get(Checkpoint.SOURCE)
    return tuple(render(source).lines) if source is not None else ()


def _answer(
    run: Run, snapshot: Snapshot, folder: Path, process: CopiedProcess, request: RunRequest, asked: Request
) -> SourceAnswer | None:
    """None for a case without a reference."""
    try:
        blame = against_reference(run, snapshot, folder, process, request, asked)
    except UsageError as error:
        return SourceAnswer("undecided", str(error))
    if blame.source == "no reference":
        return None
    if blame.source == DIFFERS:
        return SourceAnswer(DIFFERS, f"{blame.findings[0].buffer}: {blame.findings[0].message}")
    if blame.source == AGREES:
        some, of = blame.blocks
        return SourceAnswer(AGREES, f"in {some} of {of} blocks" if some < of else "")
    return SourceAnswer("undecided", blame.reasons[0])
