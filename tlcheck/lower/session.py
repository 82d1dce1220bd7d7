"""Make snapshots of selected kernel files: a worker for each toolchain lowers every case for each of its targets."""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any, Protocol

from tlcheck.cache.store import open_cache
from tlcheck.case import ALL_TARGETS
from tlcheck.errors import UsageError
from tlcheck.lower.cached import AnsweredJob, CachedExecutor, ToolchainWorker
from tlcheck.lower.case_inputs import CaseInputs, InputsRequest
from tlcheck.lower.client import DeclaredCase, Discovered, TestNews, Worker, discovered, processors
from tlcheck.lower.executor import LocalExecutor
from tlcheck.lower.keyword import Keyword
from tlcheck.lower.machines import JobExecutor, MachinePool
from tlcheck.lower.runs import Lowered, Run
from tlcheck.lower.scripts import (
    Captured,
    End,
    Script,
    Scripts,
    captured,
    handed_over,
    is_helper,
    is_script,
    left_out_tests,
    require_no_script,
    with_scripts,
)
from tlcheck.lower.selection import Selection
from tlcheck.lower.warm import WarmProcesses
from tlcheck.probes.unknown import measure_unknown
from tlcheck.toolchain.resolve import Toolchain, resolve
from tlcheck.worker.capture.pytests import is_test
from tlcheck.worker.jobs import CaptureJob, DiscoverJob, InputsJob, Job, LowerJob, name_of, output_of
from tlcheck.worker.protocol import PASS_CONFIG

_VERBS = {DiscoverJob: "importing", LowerJob: "lowering", InputsJob: "making inputs of", CaptureJob: "running"}


@dataclass(frozen=True)
class Settings:
    """The way to lower kernels. arch: empty for the targets that the cases declare. jobs: at a time, by default one per
    processor.

    pass_configs: over the kernels' own. timeout: processor seconds for one case. fork: see `Worker`. every_pass: see
    `LowerJob`. cache: whether results are kept. scripts: how files without cases are run; None where they are not.
    seeds: of the inputs to be made by cases; empty if nothing is executed. toolchain_from: the setting that names the
    toolchain, if one does. cluster: who lowers and judges, if not this machine. warm: processes that outlive a session.
    loudness: of the progress; -1 shows none, 1 says at the end how many kernels were lowered. said: see `Run`. keyword:
    which kernels are wanted; all where None.
    """

    toolchain: str = "pinned"
    arch: tuple[str, ...] = ()
    args: Mapping[str, str] = field(default_factory=dict)
    pass_configs: Mapping[str, str] = field(default_factory=dict)
    pythonpath: tuple[str, ...] = ()
    requirements: tuple[str, ...] = ()
    timeout: float = 300.0
    jobs: int | None = None
    fork: bool = True
    every_pass: bool = False
    cache: bool = True
    scripts: Scripts | None = None
    seeds: tuple[int, ...] = ()
    toolchain_from: str = ""
    cluster: MachinePool | None = None
    warm: WarmProcesses | None = None
    loudness: int = 0
    said: tuple[str, ...] = ()
    keyword: Keyword | None = None

    def saying(self, words: tuple[str, ...]) -> Settings:
        """Add words that other commands about the kernels need as well."""
        return replace(self, said=(*words, *self.said))


class Watcher(Protocol):
    """A listener that is told how far it is."""

    def stage(self, text: str) -> None:
        """Something without a known length begins."""

    def total(self, runs: int) -> None:
        """There are so many runs more to do."""

    def done(self, run: Run, *, known: bool = False) -> None:
        """One run has ended, in whatever way. known: an earlier command has lowered it."""

    def trouble(self, text: str) -> None:
        """A script ended early. text: its traceback and last lines, for those who ask."""


@dataclass
class Session:
    """Lowers selections into `folder`. `passed_over`: files of folders without a case for these targets.

    `elsewhere`: what there is to say of files that the user named, whose cases are all for other targets.
    `ends`: how far scripts came, in the order of reports. `judged`: whether a lowered kernel has its verdicts, so that
    nobody reads the inputs of its case; they are then neither made again nor written. `anticipate` is told of kernels
    of a test file while it runs, in another thread; None where nobody wants to know. `cache` is where results are
    kept, also those that others derive from snapshots.
    """

    settings: Settings
    folder: Path
    watcher: Watcher
    passed_over: list[Path] = field(default_factory=list)
    elsewhere: list[str] = field(default_factory=list)
    ends: list[End] = field(default_factory=list)
    judged: Callable[[Lowered], bool] = lambda lowered: False
    anticipate: Callable[[Lowered], None] | None = None

    def __post_init__(self) -> None:
        self.cache = open_cache(self.settings.cache)
        self.stopped = False
        self.scripts_running = 0
        self._executor: JobExecutor | None = None

    @property
    def remarks(self) -> list[str]:
        """Return what there is to say of scripts, and of files without a case for these targets."""
        told = (remark for end in self.ends for remark in end.remarks)
        return [*left_out_tests(self.ends), *self.elsewhere, *told]

    def lower(self, selections: Sequence[Selection]) -> Iterator[Lowered]:
        """One `Lowered` for each run, in order of completion; saved snapshots are left out.

        Toolchains work side by side. Raises UsageError where something selected is not there.
        """
        if all(selection.is_snapshot for selection in selections):
            return
        if self.settings.scripts is None:
            require_no_script(selections)
        with self._open_executor() as executor:
            self._executor = executor
            if self.stopped:
                executor.stop()
            try:
                cached = CachedExecutor(executor, self.cache, fork=self.settings.fork)
                yield from _Lowering(self, cached).lower(selections)
            finally:
                self._executor = None  # judging goes on, and may be stopped
        self.cache.trim()

    def _open_executor(self) -> JobExecutor:
        if self.settings.cluster is not None:
            return self.settings.cluster.executor(self._begins)
        return LocalExecutor(self.settings.jobs or processors(), self._begins)

    def _begins(self, job: Job) -> None:
        """Say what runs now."""
        place = self.settings.cluster.place if self.settings.cluster is not None else ""
        name = f"::{name_of(job)}" if name_of(job) else ""
        arch = "" if isinstance(job, DiscoverJob) else f" {job.arch}"
        self.watcher.stage(f"{_VERBS[type(job)]} {job.file}{name}{arch}{place}")

    def tells(self, job: Job, news: TestNews) -> None:
        """Say which test runs, and hand over kernels of those before."""
        self.watcher.stage(f"running {job.file} {job.arch}: {news.words}")
        is_room = self.scripts_running < (self.settings.jobs or processors())
        if self.anticipate is not None and is_room and isinstance(job, CaptureJob):
            for lowered in handed_over(job, self.folder):
                self.anticipate(lowered)

    def stop(self) -> None:
        """End the lowering: what is not done yet fails as interrupted."""
        self.stopped = True
        if self._executor is not None:
            self._executor.stop()


@dataclass
class _ToolchainWork:
    """The part of a session that one toolchain does: the selected files, and what was found in them until now."""

    name: str
    side: ToolchainWorker
    selections: Mapping[int, Selection]
    found: dict[int, tuple[Discovered, Mapping[str, str]]] = field(default_factory=dict)


@dataclass(frozen=True)
class _Import:
    """A job to import a file. place: of the selection that asks for it."""

    asked: _ToolchainWork
    place: int


@dataclass(frozen=True)
class _Inputs:
    """A job to make inputs. key: of `CaseInputs`."""

    key: str


@dataclass
class _Uncalled:
    """The kernels of a script that compiles none. open: how many are not imported yet. needing: why some cannot be
    lowered, in words. lowered: how many can.
    """

    script: Script
    captured: Captured
    open: int
    needing: list[str] = field(default_factory=list)
    lowered: int = 0


@dataclass(frozen=True)
class _Builder:
    """A job to import one of these kernels. place: of it among them."""

    of: _Uncalled
    place: int


_Purpose = _Import | Script | Run | _Inputs | _Builder


class _Lowering:
    """One call of `Session.lower`: what each job that is under way is for."""

    def __init__(self, session: Session, executor: CachedExecutor) -> None:
        self._session, self._settings, self._watcher = session, session.settings, session.watcher
        self._executor = executor
        self._numbers = count()
        self._sides: dict[str, _ToolchainWork] = {}
        self._under_way: dict[int, _Purpose] = {}
        self._inputs = CaseInputs(self._ask_inputs, session.judged)
        self._runs = 0  # until all are known

    def lower(self, selections: Sequence[Selection]) -> Iterator[Lowered]:
        """Ask for everything, and answer as it ends."""
        self._watcher.stage("importing kernel files")
        for asked in self._toolchains(selections):
            self._sides[asked.name] = asked
            self._begin(asked)
        for done in self._executor.answers():
            match self._under_way.pop(done.job.number), done.job:
                case _Import(asked, place), _:
                    yield from self._imported(asked, place, done)
                case Script() as script, CaptureJob() as job:
                    yield from self._captured(script, job, done)
                case Run() as run, LowerJob() as job:
                    yield from self._with_inputs(self._lowered(run, done), job, done)
                case _Builder() as builder, _:
                    yield from self._built(builder, done)
                case _Inputs(key), _:
                    yield from self._inputs.ended(key, done, stopped=self._session.stopped)
            # say how many runs there are, once, when all files are imported and all scripts run
            if self._runs and not any(isinstance(p, (_Import, Script, _Builder)) for p in self._under_way.values()):
                self._watcher.total(self._runs)
                self._runs = 0

    def _ask(self, asked: _ToolchainWork, *wanted: tuple[Job, _Purpose], whole: bool = True) -> None:
        self._under_way.update({job.number: purpose for job, purpose in wanted})
        self._executor.add(asked.side, *(job for job, _ in wanted), whole=whole)

    def _ask_inputs(self, one: InputsRequest, key: str, whole: bool) -> None:
        job = replace(one.job, number=next(self._numbers))
        self._ask(self._sides[one.lowered.run.toolchain], (job, _Inputs(key)), whole=whole)

    def _toolchains(self, selections: Sequence[Selection]) -> list[_ToolchainWork]:
        toolchains: dict[str, dict[int, Selection]] = {}
        for place, selection in enumerate(selections):
            if not selection.is_snapshot:
                name = selection.toolchain or self._settings.toolchain
                toolchains.setdefault(name, {})[place] = selection
        resolved = {name: self._resolved(name) for name in toolchains}
        variables = self._settings.scripts.variables if self._settings.scripts else {}
        fork, warm = self._settings.fork, self._settings.warm
        tells = self._session.tells
        workers = {
            n: Worker(t.python, {**t.env, **variables}, fork=fork, warm=warm, tells=tells) for n, t in resolved.items()
        }
        with ThreadPoolExecutor() as pool:  # each asks an interpreter and looks at thousands of files
            sides = pool.map(self._executor.toolchain_worker, resolved.values(), workers.values())
        for toolchain in resolved.values():
            measure_unknown(toolchain, self._settings.arch or ALL_TARGETS)
        return [_ToolchainWork(name, side, mine) for side, (name, mine) in zip(sides, toolchains.items(), strict=True)]

    def _resolved(self, name: str) -> Toolchain:
        """Raises UsageError, which names the setting that the toolchain comes from."""
        try:
            return resolve(name, self._settings.requirements)
        except UsageError as error:
            where = self._settings.toolchain_from if name == self._settings.toolchain else ""
            raise UsageError(f"{error} ({where})" if where else str(error)) from error

    def _begin(self, asked: _ToolchainWork) -> None:
        """Have the files of a toolchain imported, and its scripts run."""
        scripts = {place: s for place, s in asked.selections.items() if self._settings.scripts and is_script(s)}
        asked.selections = {place: s for place, s in asked.selections.items() if place not in scripts}
        device = next(iter(self._settings.arch), ALL_TARGETS[-1])
        for place, selection in asked.selections.items():
            args = {**self._settings.args, **dict(selection.variation.args)}
            job = DiscoverJob(str(selection.path), selection.name, args, **self._common(device))
            self._ask(asked, (job, _Import(asked, place)))
        for place, selection in scripts.items():
            self._capture(asked, place, selection)

    def _capture(self, asked: _ToolchainWork, place: int, selection: Selection) -> None:
        """Have a script run, once for each arch: it may ask the device for it. Raises UsageError for `--arg`."""
        how = self._settings.scripts
        assert how is not None
        if is_helper(selection):
            self._session.passed_over.append(selection.path)
            return
        if self._settings.args and not selection.found:
            raise UsageError(f"{selection.path} is run as a script: give its arguments after `--`, or name a kernel")
        for number, arch in enumerate(self._settings.arch or ALL_TARGETS[-1:]):
            output = self._session.folder / f"{place}-{number}.zip"
            run = Run(str(selection.path), "", arch, asked.name, {}, position=(place, number), said=self._settings.said)
            every_pass = self._settings.every_pass
            configs = self._settings.pass_configs
            job = CaptureJob(
                run.file,
                output=str(output),
                every_pass=every_pass,
                pass_configs=configs,
                parts=self._session.anticipate is not None,
                calls=bool(self._settings.seeds),
                **self._common(arch),
            )
            if self._settings.keyword is not None and is_test(selection.path):
                how = replace(how, args=("-k", self._settings.keyword.text, *how.args))
            self._ask(asked, (with_scripts(job, how), Script(run, selection.found, how, selection.name)))
            self._session.scripts_running += 1

    def _captured(self, script: Script, job: CaptureJob, done: AnsweredJob) -> Iterator[Lowered]:
        """The kernels of a script, or why there is none."""
        self._session.scripts_running -= 1
        script = replace(script, run=replace(script.run, versions=done.versions))
        found = captured(job, done.answer, self._session.folder)
        if names := script.uncalled(found):
            self._ask_builders(_Uncalled(script, found, len(names)), names)
            return
        results = script.results(found, kept=bool(done.snapshot))
        if self._settings.keyword is not None and not is_test(Path(script.run.file)):  # pytest has chosen among tests
            results = [each for each in results if not each.run.name or self._settings.keyword.holds(each.run.case)]
        self._runs += len(results)
        for result in results:
            self._watcher.done(result.run, known=done.known)
        if not results:
            self._session.passed_over.append(Path(script.run.file))
        self._has_ended(script.end(found))
        yield from results

    def _has_ended(self, end: End) -> None:
        insort(self._session.ends, end, key=lambda end: end.run.position)
        if end.trouble:
            self._watcher.trouble(end.trouble)

    def _ask_builders(self, wanted: _Uncalled, names: Sequence[str]) -> None:
        """Have the kernels of a script that compiles none imported, as if the user had named each."""
        run = wanted.script.run
        for place, name in enumerate(names):
            job = DiscoverJob(run.file, name, {}, **self._common(run.target))
            self._ask(self._sides[run.toolchain], (job, _Builder(wanted, place)))

    def _built(self, builder: _Builder, done: AnsweredJob) -> Iterator[Lowered]:
        """Lower one of these kernels, if its arguments have defaults. After the last one, say what the others need."""
        wanted, found = builder.of, discovered(done.job, done.answer)
        script = wanted.script
        wanted.open -= 1
        if found.failure is not None:
            wanted.needing.append(found.failure.message)
        else:
            own = replace(script.run, versions=done.versions, target="", position=(*script.run.position, builder.place))
            targets = frozenset((case.name, script.run.target) for case in found.cases) if self._settings.arch else None
            selection = Selection(Path(script.run.file), name_of(done.job), only=targets)
            runs = list(self._runs_of(own, selection, found))
            wanted.lowered += len(runs)
            self._runs += len(runs)
            self._ask(self._sides[script.run.toolchain], *((self._lowering(run), run) for run in runs))
        if not wanted.open:
            yield from self._all_built(wanted)

    def _all_built(self, wanted: _Uncalled) -> Iterator[Lowered]:
        """Remark on what cannot be lowered; fail if nothing can."""
        script, needing = wanted.script, "; ".join(sorted(wanted.needing))
        if not wanted.lowered:
            captured = replace(wanted.captured, needing=needing)
            results = script.results(captured, kept=False)
            if not results:
                self._session.passed_over.append(Path(script.run.file))
            self._has_ended(script.end(captured))
            yield from results
            return
        remarks = (f"{script.run.file}: left out: {needing}",) if needing else ()
        self._has_ended(End(script.run, 0, None, remarks))

    def _imported(self, asked: _ToolchainWork, place: int, done: AnsweredJob) -> Iterator[Lowered]:
        """Take one file of a toolchain. With the last one its runs are known.

        Raises UsageError for what is asked for and not there: the first in order, and before anything is lowered.
        """
        asked.found[place] = discovered(done.job, done.answer), done.versions
        if len(asked.found) < len(asked.selections):
            return
        for place, selection in asked.selections.items():
            # the user may have named something that is not there
            found = asked.found[place][0]
            if found.failure is not None:
                if found.failure.kind == "usage":
                    raise UsageError(f"{selection.path}: {found.failure.message}")
            elif not found.cases and not selection.found:
                kernels = ", ".join(f"{selection.path}::{name}" for name in found.kernels)
                hint = f"; name a kernel: {kernels}" if kernels else " and no kernel"
                raise UsageError(f"{selection.path} declares no case{hint}")
        wanted = [run for place in asked.selections for run in self._runs_in(asked, place)]
        self._runs += len(wanted)
        self._ask(asked, *((self._lowering(run), run) for run in wanted))
        for place in asked.selections:
            if (failure := asked.found[place][0].failure) is not None:
                yield Lowered(self._run_of(asked, place), None, failure)

    def _runs_in(self, asked: _ToolchainWork, place: int) -> list[Run]:
        """Return what is to be lowered of a file that was imported."""
        found, selection = asked.found[place][0], asked.selections[place]
        if found.failure is not None:
            return []
        runs = list(self._runs_of(self._run_of(asked, place), selection, found))
        if not runs:
            self._session.passed_over.append(selection.path)
            if found.cases and not selection.found and self._settings.keyword is None:
                self._session.elsewhere.append(_elsewhere(selection.path, found.cases, self._settings.arch))
        return runs

    def _run_of(self, asked: _ToolchainWork, place: int) -> Run:
        """The run that stands for a whole file."""
        selection, versions = asked.selections[place], asked.found[place][1]
        said = self._settings.said
        return Run(
            str(selection.path),
            selection.name,
            "",
            asked.name,
            versions,
            position=(place,),
            said=said,
            variation=selection.variation,
        )

    def _lowering(self, run: Run) -> LowerJob:
        output = str(self._session.folder / ("-".join(map(str, run.position)) + ".snapshot.json"))
        settings = self._settings
        return LowerJob(
            run.file,
            run.name,
            {**settings.args, **dict(run.variation.args)},
            output=output,
            every_pass=settings.every_pass,
            pass_configs={**settings.pass_configs, **dict(run.variation.pass_configs)},
            **self._common(run.target),
        )

    def _runs_of(self, run: Run, selection: Selection, found: Discovered) -> Iterator[Run]:
        for place, case in enumerate(found.cases):
            for number, target in enumerate(self._targets(case, bool(selection.name))):
                if selection.only is not None and (case.name, target) not in selection.only:
                    continue
                if self._settings.keyword is not None and not self._settings.keyword.holds(f"{run.file}::{case.name}"):
                    continue
                position = (*run.position, place, number)
                own = case.expects, position, case.inputs, run.said, case.reference, run.variation, case.numbers
                yield Run(run.file, case.name, target, run.toolchain, run.versions, case.args, *own)

    def _targets(self, case: DeclaredCase, named: bool) -> tuple[str, ...]:
        """A case that the user did not name and that is made for certain archs is not lowered for others."""
        asked = self._settings.arch
        if not asked:
            return case.targets
        if named or case.targets == tuple(ALL_TARGETS):
            return asked
        return tuple(arch for arch in asked if arch in case.targets)

    def _lowered(self, run: Run, done: AnsweredJob) -> Lowered:
        """Return what the answer to a `lower` job says. Raises UsageError for an unknown pass configuration."""
        self._watcher.done(run, known=done.known)
        answer, result = done.answer, done.answer.result or {}
        failure = answer.failure
        if failure is not None and failure.kind == PASS_CONFIG and not run.variation.pass_configs:
            raise UsageError(failure.message)
        output = Path(output_of(done.job))
        snapshot = output if answer.result is not None else None
        return Lowered(
            run,
            snapshot,
            answer.failure,
            result.get("unsaved", {}),
            result.get("seconds", {}),
            done.snapshot,
            until=output if snapshot is None and output.exists() else None,
        )

    def _with_inputs(self, lowered: Lowered, job: LowerJob, done: AnsweredJob) -> Iterator[Lowered]:
        """Yield what was lowered; later, where the case's own inputs are to be made first."""
        if lowered.snapshot is None or not (lowered.run.has_inputs and self._settings.seeds):
            yield lowered
            return
        output = str(lowered.snapshot.with_suffix(".inputs"))
        takes = tuple((done.answer.result or {}).get("parameters", ()))
        seeds = self._settings.seeds
        how = InputsJob(
            job.file, job.name, job.args, output=output, seeds=seeds, parameters=takes, **self._common(job.arch)
        )
        yield from self._inputs.request(InputsRequest(lowered, how))

    def _common(self, arch: str) -> dict[str, Any]:
        """The fields that all jobs have, but for the file."""
        settings = self._settings
        return {
            "arch": arch,
            "pythonpath": settings.pythonpath,
            "timeout": settings.timeout,
            "number": next(self._numbers),
        }


def _elsewhere(path: Path, cases: Sequence[DeclaredCase], asked: Sequence[str]) -> str:
    """Say which targets the cases of a file are for, and how one is lowered for those that the user asks for."""
    targets = ", ".join(dict.fromkeys(target for case in cases for target in case.targets))
    return f"{path} has cases for {targets} only; for {', '.join(asked)} name a case: {path}::{cases[0].name}"
