"""Define what the tests of checking share: saved snapshots, results made by hand, and a worker that lowers nothing."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, cast

import jsonschema
import pytest

from tlcheck.case import Expect
from tlcheck.cli.main import main
from tlcheck.errors import UsageError
from tlcheck.execute.compare.both_levels import execute
from tlcheck.execute.compare.diagnosis import diagnose
from tlcheck.execute.request import Request
from tlcheck.lower.client import DeclaredCase
from tlcheck.lower.runs import Lowered, Run, of_saved
from tlcheck.snapshot.ir import Snapshot
from tlcheck.toolchain.releases import PINNED
from tlcheck.toolchain.resolve import Toolchain, resolve
from tlcheck.verdicts.acceptance import Acceptances
from tlcheck.verdicts.claim import Claim, Finding, SourceLine, Verdict
from tlcheck.verdicts.execution_claims import claims_of
from tlcheck.verdicts.judge import Policy
from tlcheck.verdicts.judging import judged
from tlcheck.verdicts.results import Result, read_snapshot
from tlcheck.witness import Addition
from tlcheck.worker.jobs import Job, name_of, output_of, task_of
from tlcheck.worker.protocol import Answer, Failure

SAVED = Path(__file__).parents[1] / "fixtures" / "era"
SCHEMAS = Path(__file__).parents[2] / "docs" / "schemas"
WRONG = SAVED / "annotated_gemm-0.1.7.snapshot.json"
RIGHT = SAVED / "annotated_gemm-0.1.15.snapshot.json"
INVARIANT = SAVED / "invariant_rows-0.1.14.snapshot.json"

WITNESS = Addition({"k": 2, "blockIdx.y": 1, "blockIdx.x": 0}, {"i": 3}, 5, 1, (0, 1), 32, 1, 32)


def published(report: str, schema: str) -> Any:
    """A report for programs, which keeps to its schema in docs/schemas."""
    found = json.loads(report)
    validator(schema).validate(found)
    return found


@cache
def validator(schema: str) -> jsonschema.Draft202012Validator:
    """Of reports, by one of the files in docs/schemas."""
    return jsonschema.Draft202012Validator(json.loads((SCHEMAS / f"{schema}.json").read_text()))


def judge_here(lowered: Lowered) -> Result:
    """A lowered kernel, judged in this process as a page does it."""
    assert lowered.snapshot is not None
    return Policy(Acceptances()).apply(judged(lowered.run, read_snapshot(lowered.snapshot)))


def saved_result(file: Path, snapshot: Snapshot, position: int) -> Result:
    """A saved snapshot, judged in this process and by no policy."""
    return replace(judged(of_saved(file, snapshot, position).run, snapshot), saved=str(file))


def executed(snapshot: Snapshot, request: Request) -> tuple[Claim, ...]:
    """The claims of an execution alone."""
    return claims_of(snapshot, diagnose(snapshot, request, execute(snapshot, request)), request)


def make_run(release: str = "0.1.7", target: str = "sm_90", expects: Iterable[Expect] = (), file: str = "k.py") -> Run:
    return Run(file, "case", target, release, {"tilelang": release}, {}, tuple(expects))


def make_finding(rule: str = "TLA001") -> Finding:
    words = WITNESS.words("B")
    return Finding(rule, "some-name", "A title", (), "lower-tile-op", "tl.LowerTileOp", "it is wrong", WITNESS, words)


def make_atomic(verdict: str = "proved", buffer: str = "B", rule: str = "TLA001") -> Claim:
    source = SourceLine("k.py", 7, True, "T.atomic_add(B, a)")
    finding = make_finding(rule) if verdict == "refuted" else None
    reason, code = ("not understood", "U033") if verdict == "undecided" else ("", "")
    key = f"{buffer} add"
    return Claim(
        "atomic",
        key,
        buffer,
        source,
        cast(Verdict, verdict),
        "proof",
        call="atomicadd",
        reason=reason,
        finding=finding,
        code=code,
    )


def make_result(*verdicts: str, run: Run | None = None) -> Result:
    return Result(run or make_run(), tuple(make_atomic(verdict) for verdict in verdicts))


def failed(kind: str = "exception", message: str = "boom", run: Run | None = None) -> Result:
    return Result(run or make_run(), failure=Failure(kind, "build", message))


@dataclass(eq=False)
class StandInWorker:
    """Answers as told, in reverse order. files: file -> its cases. snapshots: case -> the snapshot it is lowered to.

    scripts: file -> what running it comes to, see `tlcheck.worker.tasks`. most: how many jobs it has had at a time.
    """

    release: str = "0.1.15"
    files: Mapping[str, tuple[DeclaredCase, ...]] = field(default_factory=dict)
    kernels: tuple[str, ...] = ()
    snapshots: Mapping[str, Path] = field(default_factory=dict)
    failures: Mapping[str, Failure] = field(
        default_factory=dict
    )  # by the name of a file, of a case, or FILE::NAME of what is imported
    scripts: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    jobs: list[Job] = field(default_factory=list)
    running: list[Job] = field(default_factory=list)
    started: int = 0
    most: int = 0
    fork: bool = False
    together: list[list[Job]] = field(default_factory=list)  # those sent to one process

    _more: bool = False

    @property
    def versions(self) -> Mapping[str, str]:
        return {"tilelang": self.release}

    def start(self) -> None:
        self.started += 1
        self._ready = os.open(os.devnull, os.O_RDONLY)

    def close(self) -> None:
        os.close(self._ready)

    def fileno(self) -> int:
        return self._ready

    def send(self, job: Job, *, more: bool = False) -> None:
        self.jobs.append(job)
        self.running.append(job)
        if not self._more:
            self.together.append([])
        self.together[-1].append(job)
        self._more = more
        self.most = max(self.most, len(self.running))

    def receive(self) -> list[tuple[Job, Answer]]:
        taken, self.running = self.running[::-1], []
        return [(job, self._answer(job)) for job in taken]

    def _answer(self, job: Job) -> Answer:
        if task_of(job) == "capture":
            return Answer(self.scripts[Path(job.file).name], None, 0.0, 0.0, "")
        file = Path(job.file).name
        asked = (file, f"{file}::{name_of(job)}") if task_of(job) == "discover" else (name_of(job),)
        failure = next((self.failures[name] for name in asked if name in self.failures), None)
        result = None if failure else self._discover(job) if task_of(job) == "discover" else self._lower(job)
        return Answer(result, failure, 0.0, 0.0, "")

    def _discover(self, job: Job) -> dict[str, Any]:
        cases = [case for case in self.files.get(Path(job.file).name, ()) if name_of(job) in ("", case.name)]
        return {"cases": [asdict(case) for case in cases], "kernels": list(self.kernels)}

    def _lower(self, job: Job) -> dict[str, Any]:
        shutil.copyfile(self.snapshots.get(name_of(job), RIGHT), output_of(job))
        return {}


def put_in_place(monkeypatch: pytest.MonkeyPatch, workers: Mapping[str, StandInWorker]) -> None:
    """Have these toolchains, by name, and no others."""

    def find(name: str, requirements: object) -> Toolchain:
        if name not in workers:
            raise UsageError(f"no toolchain {name}")
        return Toolchain(name, "release", Path(name))

    def start(python: Path, env: Mapping[str, str], **options: Any) -> StandInWorker:
        return workers[str(python)]

    for module in ("lower.session", "gate.gate"):
        monkeypatch.setattr(f"tlcheck.{module}.resolve", find)
    monkeypatch.setattr("tlcheck.lower.session.Worker", start)


def checked_runs(cases: Path, folder: Path, code: int) -> dict[str, Any]:
    """Return what `check` with the pinned release reports of each case for sm_90. It has to end with this exit code."""
    installed(PINNED)
    output = folder / "report.json"
    assert main(["check", str(cases), "--arch", "sm_90", "--format", "json", "-o", str(output)]) == code
    return {run["name"]: run for run in json.loads(output.read_text())["runs"]}


def explained(claims: list[Any]) -> list[Any]:
    """Claims without the races of the source, and those that these explain."""
    races = [claim for claim in claims if claim["kind"] == "source"]
    assert {(race["finding"]["rule"], race["finding"]["blame"]) for race in races} <= {("TLS001", "author")}
    return [claim for claim in claims if claim not in races] + [claim for race in races for claim in race["also"]]


def raced(claims: list[Any]) -> list[tuple[str, int]]:
    """The buffers for which the source races with itself, with the lines."""
    return [(claim["buffer"], claim["source"]["line"]) for claim in claims if claim["kind"] == "source"]


def line_of(statement: str, cases: Path) -> int:
    """The line of a kernel file that says this; the first one."""
    return 1 + [text.strip() for text in cases.read_text().splitlines()].index(statement)


def installed(release: str) -> Toolchain:
    """A release that the tests may use; they are skipped where it is not there."""
    try:
        return resolve(release)
    except UsageError as error:
        pytest.skip(str(error))


def declared(
    name: str, targets: tuple[str, ...] = ("sm_80", "sm_90"), expects: tuple[Expect, ...] = ()
) -> DeclaredCase:
    return DeclaredCase(name, {}, targets, expects)
