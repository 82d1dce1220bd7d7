"""From selected kernel files to snapshots: a worker for each toolchain lowers every case for each of its targets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from tlcheck.cache.store import open_cache
from tlcheck.case import ALL_TARGETS
from tlcheck.errors import UsageError
from tlcheck.lower.client import DeclaredCase, Discovered, Worker, discovered, lowered, processors
from tlcheck.lower.crew import Crew
from tlcheck.lower.desk import Desk, Done, Side
from tlcheck.lower.runs import Lowered, Run
from tlcheck.lower.scripts import End, Script, Scripts, captured, is_helper, is_script, require_no_script, with_scripts
from tlcheck.lower.selection import Selection
from tlcheck.toolchain.resolve import resolve
from tlcheck.worker.protocol import Job


@dataclass(frozen=True)
class Settings:
    """How to lower. arch: empty for the targets that the cases declare. jobs: at a time, by default one per processor.

    timeout: processor seconds for one case. fork: see `Worker`. every_pass: see `Job`. cache: whether results are kept.
    scripts: how files without cases are run; None where they are not.
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
    scripts: Scripts | None = None


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

    `ends`: how far scripts came. `cache` is where results are kept, also those that others derive from snapshots.
    """

    settings: Settings
    folder: Path
    watcher: Watcher
    passed_over: list[Path] = field(default_factory=list)
    ends: list[End] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.cache = open_cache(self.settings.cache)

    @property
    def remarks(self) -> list[str]:
        """What there is to say of scripts."""
        return [remark for end in self.ends for remark in end.remarks]

    def lower(self, selections: Sequence[Selection]) -> Iterator[Lowered]:
        """One `Lowered` for each run, in order of completion; saved snapshots are left out.

        Toolchains work side by side. Raises UsageError where something selected is not there.
        """
        if self.settings.scripts is None:
            require_no_script(selections)
        with Crew(self.settings.jobs or processors()) as crew:
            desk = Desk(crew, self.cache, fork=self.settings.fork)
            self._files: dict[int, tuple[_Asked, int]] = {}
            self._runs: dict[int, Run] = {}
            self._scripts: dict[int, Script] = {}
            self.watcher.stage("importing kernel files")
            for asked in self._toolchains(selections, desk):
                self._discover(asked, desk)
            for done in desk.answers():
                if id(done.job) in self._files:
                    yield from self._found(done, desk)
                elif id(done.job) in self._scripts:
                    yield from self._captured(done)
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
        variables = self.settings.scripts.variables if self.settings.scripts else {}
        workers = {
            name: Worker(t.python, {**t.env, **variables}, fork=self.settings.fork) for name, t in resolved.items()
        }
        with ThreadPoolExecutor() as pool:  # each asks an interpreter and looks at thousands of files
            sides = pool.map(desk.side, resolved.values(), workers.values())
        return [_Asked(name, side, mine) for side, (name, mine) in zip(sides, toolchains.items(), strict=True)]

    def _discover(self, asked: _Asked, desk: Desk) -> None:
        scripts = {number: s for number, s in asked.selections.items() if self.settings.scripts and is_script(s)}
        asked.selections = {number: s for number, s in asked.selections.items() if number not in scripts}
        for number, selection in asked.selections.items():
            job = self._job("discover", selection.path, selection.name)
            self._files[id(job)] = asked, number
            desk.add(asked.side, job)
        for number, selection in scripts.items():
            self._capture(asked, number, selection, desk)

    def _capture(self, asked: _Asked, number: int, selection: Selection, desk: Desk) -> None:
        """Have a script run, once for each arch: it may ask the device for it. Raises UsageError for `--arg`."""
        how = self.settings.scripts
        assert how is not None
        if is_helper(selection):
            self.passed_over.append(selection.path)
            return
        if self.settings.args and not selection.found:
            raise UsageError(f"{selection.path} is run as a script: give its arguments after `--`, or name a kernel")
        for place, arch in enumerate(self.settings.arch or ALL_TARGETS[-1:]):
            job = self._job("capture", selection.path, "", arch, str(self.folder / f"{number}-{place}.zip"))
            job = with_scripts(job, how)
            run = Run(str(selection.path), "", arch, asked.name, {}, position=(number, place))
            self._scripts[id(job)] = Script(run, selection.found, how)
            self.watcher.total(1)
            desk.add(asked.side, job)

    def _captured(self, done: Done) -> Iterator[Lowered]:
        """The kernels of a script, or why there is none."""
        script = self._scripts.pop(id(done.job))
        script = replace(script, run=replace(script.run, versions=done.versions))
        found = captured(done.job, done.answer, self.folder)
        results = script.results(found, kept=bool(done.snapshot))
        self.watcher.total(max(0, len(results) - 1))
        for result in results or [Lowered(script.run)]:
            self.watcher.done(result.run)
        if not results:
            self.passed_over.append(Path(script.run.file))
        self.ends.append(script.end(found))
        yield from results

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
