"""What the tests of checking share: saved snapshots, results made by hand, and a worker that lowers nothing."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType

from tlcheck.analysis.difference import Witness
from tlcheck.case import Expect
from tlcheck.results import AtomicResult, FindingResult, Result, SourceLine
from tlcheck.session import Run
from tlcheck.toolchain.client import DeclaredCase, Discovered, Failure, Job, LowerResult

SAVED = Path(__file__).parents[1] / "fixtures" / "era"
WRONG = SAVED / "annotated_gemm-0.1.7.snapshot.json"
RIGHT = SAVED / "annotated_gemm-0.1.15.snapshot.json"
INVARIANT = SAVED / "invariant_rows-0.1.14.snapshot.json"

WITNESS = Witness((("k", 2), ("blockIdx.y", 1), ("blockIdx.x", 0)), (("i", 3),), 5, 1, (0, 1), 32, 1, 32)


def make_run(release: str = "0.1.7", target: str = "sm_90", expects: Iterable[Expect] = (), file: str = "k.py") -> Run:
    return Run(file, "case", target, release, {"tilelang": release}, {}, tuple(expects))


def make_finding(rule: str = "TLA001") -> FindingResult:
    return FindingResult(
        rule, "some-name", "A title", "lower-tile-op", "tl.LowerTileOp", "it is wrong", WITNESS, "", (), "", "", None
    )


def make_atomic(verdict: str = "proved", buffer: str = "B", rule: str = "TLA001") -> AtomicResult:
    source = SourceLine("k.py", 7, True, "T.atomic_add(B, a)")
    finding = make_finding(rule) if verdict == "refuted" else None
    reason = "not understood" if verdict == "undecided" else ""
    return AtomicResult(buffer, "atomicadd", "add", source, verdict, reason, (), (), finding)


def make_result(*verdicts: str, run: Run | None = None) -> Result:
    return Result(run or make_run(), tuple(make_atomic(verdict) for verdict in verdicts))


def failed(kind: str = "exception", message: str = "boom", run: Run | None = None) -> Result:
    return Result(run or make_run(), failure=Failure(kind, "build", message))


@dataclass
class StandInWorker:
    """Answers as told, in reverse order. files: file -> its cases. snapshots: case -> the snapshot it is lowered to."""

    release: str = "0.1.15"
    files: Mapping[str, tuple[DeclaredCase, ...]] = field(default_factory=dict)
    kernels: tuple[str, ...] = ()
    snapshots: Mapping[str, Path] = field(default_factory=dict)
    failures: Mapping[str, Failure] = field(default_factory=dict)  # by the name of a file or case
    jobs: list[Job] = field(default_factory=list)
    started: int = 0

    @property
    def versions(self) -> Mapping[str, str]:
        return {"tilelang": self.release}

    def __enter__(self) -> StandInWorker:
        self.started += 1
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, t: TracebackType | None) -> None:
        pass

    def discover(self, jobs: Iterable[Job]) -> Iterator[Discovered]:
        for job in self._taken(jobs):
            name = Path(job.file).name
            cases = tuple(c for c in self.files.get(name, ()) if job.name in ("", c.name))
            found = Discovered(job, cases, self.kernels, self.failures.get(name))
            yield replace(found, cases=()) if found.failure else found

    def lower(self, jobs: Iterable[Job]) -> Iterator[LowerResult]:
        for job in self._taken(jobs):
            if failure := self.failures.get(job.name):
                yield LowerResult(job, failure=failure)
            else:
                shutil.copyfile(self.snapshots.get(job.name, RIGHT), job.output)
                yield LowerResult(job, Path(job.output))

    def _taken(self, jobs: Iterable[Job]) -> list[Job]:
        taken = list(jobs)
        self.jobs += taken
        return taken[::-1]


def declared(
    name: str, targets: tuple[str, ...] = ("sm_80", "sm_90"), expects: tuple[Expect, ...] = ()
) -> DeclaredCase:
    return DeclaredCase(name, {}, targets, expects)
