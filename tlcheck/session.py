"""From selected kernel files to snapshots: a worker for each toolchain lowers every case for each of its targets."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from tlcheck.cache.desk import Desk, Done, Side
from tlcheck.cache.store import open_cache
from tlcheck.case import ALL_TARGETS, Expect
from tlcheck.errors import UsageError
from tlcheck.selection import Selection
from tlcheck.toolchain.client import (
    DeclaredCase,
    Discovered,
    Failure,
    Job,
    Worker,
    discovered,
    lowered,
    processors,
)
from tlcheck.toolchain.crew import Crew
from tlcheck.toolchain.resolve import resolve


@dataclass(frozen=True)
class Settings:
    """How to lower. arch: empty for the targets that the cases declare. jobs: at a time, by default one per processor.

    timeout: processor seconds for one case. fork: see `Worker`. every_pass: see `Job`. cache: whether results are kept.
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
    cache: bool = True


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
    """A run with the snapshot's file, or why there is none. unsaved: checkpoint -> why it is missing.

    seconds: of processor time, by phase (`import`, `build`, `lower`, `extract`), when it was lowered.
    digest: hash of the snapshot's content, empty where results are not kept.
    """

    run: Run
    snapshot: Path | None = None
    failure: Failure | None = None
    unsaved: Mapping[str, str] = field(default_factory=dict)
    seconds: Mapping[str, float] = field(default_factory=dict)
    digest: str = ""


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
class _Asked:
    """What a session does with one toolchain: the selected files, and what was found in them until now."""

    name: str
    side: Side
    selections: Mapping[int, Selection]
    found: dict[int, tuple[Discovered, Mapping[str, str]]] = field(default_factory=dict)


@dataclass
class Session:
    """Lowers selections into `folder`. `passed_over`: files of folders without a case for these targets.

    `cache` is where results are kept, also those that others derive from snapshots.
    """

    settings: Settings
    folder: Path
    watcher: Watcher
    passed_over: list[Path] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.cache = open_cache(self.settings.cache)

    def lower(self, selections: Sequence[Selection]) -> Iterator[Lowered]:
        """One `Lowered` for each run, in order of completion; saved snapshots are left out.

        Toolchains work side by side. Raises UsageError where something selected is not there.
        """
        with Crew(self.settings.jobs or processors()) as crew:
            desk = Desk(crew, self.cache, fork=self.settings.fork)
            self._files: dict[int, tuple[_Asked, int]] = {}
            self._runs: dict[int, Run] = {}
            self.watcher.stage("importing kernel files")
            for asked in self._toolchains(selections, desk):
                self._discover(asked, desk)
            for done in desk.answers():
                if id(done.job) in self._files:
                    yield from self._found(done, desk)
                else:
                    yield self._lowered(self._runs.pop(id(done.job)), done)
        self.cache.trim()

    def _toolchains(self, selections: Sequence[Selection], desk: Desk) -> list[_Asked]:
        toolchains: dict[str, dict[int, Selection]] = {}
        for number, selection in enumerate(selections):
            if not selection.is_snapshot:
                name = selection.toolchain or self.settings.toolchain
                toolchains.setdefault(name, {})[number] = selection
        resolved = {name: resolve(name, self.settings.requirements) for name in toolchains}
        workers = {name: Worker(t.python, t.env, fork=self.settings.fork) for name, t in resolved.items()}
        return [_Asked(name, desk.side(resolved[name], workers[name]), mine) for name, mine in toolchains.items()]

    def _discover(self, asked: _Asked, desk: Desk) -> None:
        for number, selection in asked.selections.items():
            job = self._job("discover", selection.path, selection.name)
            self._files[id(job)] = asked, number
            desk.add(asked.side, job)

    def _found(self, done: Done, desk: Desk) -> Iterator[Lowered]:
        """One file of a toolchain was imported. With the last one its runs are known.

        Raises UsageError for what is asked for and not there: the first in order, and before anything is lowered.
        """
        asked, number = self._files.pop(id(done.job))
        asked.found[number] = discovered(done.job, done.answer), done.versions
        if len(asked.found) < len(asked.selections):
            return
        for place, selection in asked.selections.items():
            _require(selection, asked.found[place][0])
        for place, selection in asked.selections.items():
            yield from self._begin(asked, place, selection, desk)

    def _begin(self, asked: _Asked, number: int, selection: Selection, desk: Desk) -> Iterator[Lowered]:
        """Have the cases of a file lowered; yields only what there is to say of one that has none."""
        found, versions = asked.found[number]
        run = Run(str(selection.path), selection.name, "", asked.name, versions, position=(number,))
        if found.failure is not None:
            yield Lowered(run, None, found.failure)
            return
        runs = list(self._runs_of(run, selection, found))
        if not runs:
            self.passed_over.append(selection.path)
        self.watcher.total(len(runs))
        for mine in runs:
            job = self._lower_job(mine)
            self._runs[id(job)] = mine
            desk.add(asked.side, job)

    def _runs_of(self, run: Run, selection: Selection, found: Discovered) -> Iterator[Run]:
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

    def _lowered(self, run: Run, done: Done) -> Lowered:
        result = lowered(done.job, done.answer)
        self.watcher.done(run)
        return Lowered(run, result.snapshot, result.failure, result.unsaved, result.phase_seconds, done.snapshot)

    def _lower_job(self, run: Run) -> Job:
        output = self.folder / ("-".join(map(str, run.position)) + ".snapshot.json")
        return self._job("lower", Path(run.file), run.name, run.target, str(output))

    def _job(self, task: str, file: Path, name: str, arch: str = "", output: str = "") -> Job:
        s = self.settings
        device = arch or next(iter(s.arch), ALL_TARGETS[-1])
        return Job(task, str(file), name, s.args, device, s.pythonpath, s.timeout, output, s.every_pass)


def _require(selection: Selection, found: Discovered) -> None:
    """Raises UsageError where the user named something that is not there."""
    if found.failure is not None:
        if found.failure.kind == "usage":
            raise UsageError(f"{selection.path}: {found.failure.message}")
    elif not found.cases and not selection.found:
        kernels = ", ".join(f"{selection.path}::{name}" for name in found.kernels)
        hint = f"; name a kernel: {kernels}" if kernels else " and no kernel"
        raise UsageError(f"{selection.path} declares no case{hint}")
