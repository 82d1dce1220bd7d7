"""Judging a snapshot: from what it holds to verdicts, whatever becomes of it.

`serve` is all that a judging process does.
"""

from __future__ import annotations

import os
import pickle
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path

from tlcheck.execute.run import Request
from tlcheck.lower.runs import Run
from tlcheck.snapshot import codec
from tlcheck.snapshot.ir import Snapshot
from tlcheck.verdicts.check import check
from tlcheck.verdicts.claim import by_cause, with_content
from tlcheck.verdicts.executed import executed
from tlcheck.verdicts.kept import Verdicts, dumps
from tlcheck.verdicts.results import Result, internal_failure, result_of
from tlcheck.worker.protocol import Failure


def serve(descriptor: int) -> None:
    """Judge the snapshots whose files come in, one after the other, until the other side is closed."""
    with Connection(descriptor) as asked, suppress(EOFError, BrokenPipeError):
        while True:
            file = Path(os.fsdecode(asked.recv_bytes()))
            request = pickle.loads(asked.recv_bytes())
            asked.send_bytes(dumps(_verdicts_in(file, request)))


def _verdicts_in(file: Path, request: Request | None) -> Verdicts:
    try:
        return verdicts_of(codec.loads(file.read_text(encoding="utf-8")), request)
    except (OSError, ValueError) as error:
        return Verdicts(failure=internal_failure(error))


def verdicts_of(snapshot: Snapshot, request: Request | None = None) -> Verdicts:
    """Judge a snapshot. request: how it is executed; None where it is not.

    A fault of tlcheck's own is this snapshot's failure: the others go on.
    """
    try:
        report = check(snapshot)
        found = executed(snapshot, request) if request is not None else ()
    except Exception as error:
        return Verdicts(failure=internal_failure(error), pass_configs=snapshot.pass_configs)
    failure = Failure("check", "check", report.problem) if report.problem and not found else None
    return Verdicts(by_cause(with_content(report.claims, found) + found), failure, snapshot.pass_configs)


def judged(run: Run, snapshot: Snapshot) -> Result:
    """Judge a snapshot here and now, by no policy."""
    return result_of(run, verdicts_of(snapshot))
