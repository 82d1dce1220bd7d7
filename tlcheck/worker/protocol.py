"""Define what the controller and a worker say to each other: one JSON object per line.

Controller to worker: `{"id": id, "job": fields, "more": whether the next job is done by the same process}`, the fields
as in `tlcheck.worker.jobs`, or `{"stop": true}`, which ends what runs: it is answered with what it has come to. Worker
to controller: first a hello, `{"ready": versions}` or `{"failed": failure}`; then one `{"id": id, "answer": Answer}`
for each job, in order of completion.

The controller reads with msgspec; a toolchain's interpreter does not have it, and reads by hand.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tlcheck.worker.dependencies import Dependencies

OUTPUT_TAIL = 64 * 1024  # bytes kept of what a job printed

PASS_CONFIG = "pass-config"  # kind of the failure where a release has no such configuration


@dataclass(frozen=True)
class Failure:
    """The reason why a job has no result.

    kind: `usage` (the user asked for something that is not there), `target` (a script compiles a kernel for something
        else, or the release makes no code for the arch), `capture` (a script asked for what is not there without a GPU,
        or without a package), `skipped` (all tests of a test file were), `exception`, `exit` (the kernel file ended the
        process), `crash` (a signal, named in the message), `timeout`, `killed` (from outside, as for want of memory),
        `worker` (the worker itself ended), `interrupted` (the user ended the run).
    phase: `start`, `import`, `build`, `lower`, `extract` or `inputs`.
    message: one line; where a pass or `code generation` raised it, that begins with it. detail: further useful lines.
    where: `FILE:LINE` in the user's code, if known. trace: Python's traceback.
    advice: how the user mends it, if that is known; a line of `detail` too.
    """

    kind: str
    phase: str
    message: str
    detail: str = ""
    where: str = ""
    trace: str = ""
    advice: str = ""


@dataclass(frozen=True)
class Answer:
    """The end of a job: `result` (a JSON object, see `tlcheck.worker.tasks`) or `failure`.

    cpu, wall: seconds. output: the end of what the job printed.
    dependencies: what the job read (see `tlcheck.worker.dependencies`); None if that is not known.
    """

    result: Mapping[str, Any] | None
    failure: Failure | None
    cpu: float
    wall: float
    output: str
    dependencies: Dependencies | None = None


def interrupted(phase: str, what: str = "") -> Failure:
    """Say that the user ended the run before this was done. what: how far it had come."""
    return Failure("interrupted", phase, f"interrupted{what}")


def encode(message: Mapping[str, Any]) -> bytes:
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"


def send(descriptor: int, message: Mapping[str, Any]) -> None:
    """Write one message, all of it: a signal may cut a write short."""
    data = encode(message)
    while data:
        data = data[os.write(descriptor, data) :]


def read_dependencies(fields: Mapping[str, Any]) -> Dependencies:
    return Dependencies(**{**fields, "folders": tuple(fields["folders"])})
