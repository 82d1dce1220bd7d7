"""From selected kernel files to snapshots: a worker for each toolchain lowers every case for each of its targets."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from tlcheck.case import ALL_TARGETS, Expect
from tlcheck.errors import UsageError
from tlcheck.selection import Selection
from tlcheck.toolchain.client import DeclaredCase, Discovered, Failure, Job, LowerResult, Worker
from tlcheck.toolchain.resolve import resolve


@dataclass(frozen=True)
class Settings:
    """How to lower. arch: empty for the targets that the cases declare. jobs: at a time, by default one per processor.

    timeout: processor seconds for one case. fork: see `Worker`. every_pass: see `Job`.
    """

    toolchain: str = "pinned"
    arch: tuple[str, ...] = ()
    args: Mapping[str, str] = field(default_factory=dict)
    pythonpath: tuple[str, ...] = ()
    requirements: tuple[str, ...] = ()
    timeout: float = 300.0
    jobs: int | None = None
    fork: bool = True
    every_pass: bool = False


@dataclass(frozen=True)
class Run:
    """One case for one target with one toolchain.

    file, toolchain: as the user named them. name, target: empty for a file that could not even be imported.
    versions: of what determines the IR, `tilelang` and others. position: its place in reports.
    """

    file: str
    name: str
    target: str
    toolchain: str
    versions: Mapping[str, str]
    args: Mapping[str, str] = field(default_factory=dict)
    expects: tuple[Expect, ...] = ()
    position: tuple[int, ...] = ()

    @property
    def case(self) -> str:
        """`FILE::NAME`."""
        return f"{self.file}::{self.name}" if self.name else self.file

    @property
    def slug(self) -> str:
        """A file name that says what this is a run of."""
        return f"{Path(self.file).stem}-{self.name}-{self.target}-{self.release}"

    @property
    def release(self) -> str:
        return release_of(self.versions)


def release_of(versions: Mapping[str, str]) -> str:
    """TileLang's version without what a local build adds to it."""
    return versions.get("tilelang", "").partition("+")[0]


@dataclass(frozen=True)
class Lowered:
    """A run with the snapshot's file, or why there is none. unsaved: checkpoint -> why it is missing."""

    run: Run
    snapshot: Path | None = None
    failure: Failure | None = None
    unsaved: Mapping[str, str] = field(default_factory=dict)


def unique_name(name: str, taken: Container[str]) -> str:
    """`name`, or `name-2` and so on where it is taken: two folders may hold files of one name."""
    number, found = 1, name
    while found in taken:
        number += 1
        found = f"{name}-{number}"
    return found


class Watcher(Protocol):
    """Who is told how far it is."""

    def stage(self, text: str) -> None:
        """Something without a known length begins."""

    def total(self, runs: int) -> None:
        """So many runs more are to be done."""

    def done(self, run: Run) -> None:
        """One run has ended, in whatever way."""


@dataclass
class Session:
    """Lowers selections into `folder`. `passed_over`: files of folders without a case for these targets."""

    settings: Settings
    folder: Path
    watcher: Watcher
    passed_over: list[Path] = field(default_factory=list)

    def lower(self, selections: Sequence[Selection]) -> Iterator[Lowered]:
        """One `Lowered` for each run, in order of completion; saved snapshots are left out.

        Raises UsageError where something selected is not there.
        """
        toolchains: dict[str, list[tuple[int, Selection]]] = {}
        for number, selection in enumerate(selections):
            if not selection.is_snapshot:
                name = selection.toolchain or self.settings.toolchain
                toolchains.setdefault(name, []).append((number, selection))
        resolved = {name: resolve(name, self.settings.requirements) for name in toolchains}
        for name, numbered in toolchains.items():
            self.watcher.stage(f"starting {name}")
            parallel, fork = self.settings.jobs, self.settings.fork
            with Worker(resolved[name].python, resolved[name].env, parallel=parallel, fork=fork) as worker:
                yield from self._lower(worker, name, numbered)

    def _lower(self, worker: Worker, toolchain: str, numbered: Iterable[tuple[int, Selection]]) -> Iterator[Lowered]:
        self.watcher.stage(f"{toolchain}: importing kernel files")
        runs: list[Run] = []
        for number, selection, found in self._discover(worker, numbered):
            run = Run(str(selection.path), selection.name, "", toolchain, worker.versions, position=(number,))
            if found.failure is not None:
                yield Lowered(run, None, found.failure)
                continue
            mine = list(self._runs(run, selection, found))
            if not mine:
                self.passed_over.append(selection.path)
            runs += mine
        self.watcher.total(len(runs))
        for lowered in self._snapshots(worker, runs):
            self.watcher.done(lowered.run)
            yield lowered

    def _discover(
        self, worker: Worker, numbered: Iterable[tuple[int, Selection]]
    ) -> list[tuple[int, Selection, Discovered]]:
        """What the files have, in their order. Raises UsageError for what is asked for and not there."""
        jobs = {number: (self._job("discover", s.path, s.name), s) for number, s in numbered}
        numbers = {id(job): number for number, (job, _) in jobs.items()}
        answers = {numbers[id(found.job)]: found for found in worker.discover([job for job, _ in jobs.values()])}
        for number, found in sorted(answers.items()):
            _require(jobs[number][1], found)
        return [(number, selection, answers[number]) for number, (_, selection) in jobs.items()]

    def _runs(self, run: Run, selection: Selection, found: Discovered) -> Iterator[Run]:
        for place, case in enumerate(found.cases):
            for number, target in enumerate(self._targets(case, bool(selection.name))):
                position = (*run.position, place, number)
                yield Run(run.file, case.name, target, run.toolchain, run.versions, case.args, case.expects, position)

    def _targets(self, case: DeclaredCase, named: bool) -> tuple[str, ...]:
        """A case that the user did not name and that is made for certain archs is not lowered for others."""
        asked = self.settings.arch
        if not asked:
            return case.targets
        if named or case.targets == tuple(ALL_TARGETS):
            return asked
        return tuple(arch for arch in asked if arch in case.targets)

    def _snapshots(self, worker: Worker, runs: Sequence[Run]) -> Iterator[Lowered]:
        jobs = {id(job := self._lower_job(run)): (job, run) for run in runs}
        for result in worker.lower(job for job, _ in jobs.values()):
            yield _lowered(jobs[id(result.job)][1], result)

    def _lower_job(self, run: Run) -> Job:
        output = self.folder / ("-".join(map(str, run.position)) + ".snapshot.json")
        return self._job("lower", Path(run.file), run.name, run.target, str(output))

    def _job(self, task: str, file: Path, name: str, arch: str = "", output: str = "") -> Job:
        s = self.settings
        device = arch or next(iter(s.arch), ALL_TARGETS[-1])
        return Job(task, str(file), name, s.args, device, s.pythonpath, s.timeout, output, s.every_pass)


def _lowered(run: Run, result: LowerResult) -> Lowered:
    return Lowered(run, result.snapshot, result.failure, result.unsaved)


def _require(selection: Selection, found: Discovered) -> None:
    """Raises UsageError where the user named something that is not there."""
    if found.failure is not None:
        if found.failure.kind == "usage":
            raise UsageError(f"{selection.path}: {found.failure.message}")
    elif not found.cases and not selection.found:
        kernels = ", ".join(f"{selection.path}::{name}" for name in found.kernels)
        hint = f"; name a kernel: {kernels}" if kernels else " and no kernel"
        raise UsageError(f"{selection.path} declares no case{hint}")
