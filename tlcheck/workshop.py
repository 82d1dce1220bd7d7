"""Lowers kernel files once for all processes that share a folder, and judges their cases: for the pytest plugin."""

from __future__ import annotations

import io
import os
import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from rich.console import Console

from tlcheck.cache.store import open_cache
from tlcheck.case import ALL_TARGETS
from tlcheck.config import Config, naming, read_config
from tlcheck.errors import UsageError
from tlcheck.files import held, put
from tlcheck.golden import states
from tlcheck.golden.recording import Project, project_of, recorded
from tlcheck.golden.store import Contents, GoldenStore
from tlcheck.lower.cached import CachedExecutor
from tlcheck.lower.client import DeclaredCase, Discovered, Worker, discovered, processors
from tlcheck.lower.executor import LocalExecutor
from tlcheck.lower.runs import Lowered, Run
from tlcheck.lower.selection import Selection
from tlcheck.lower.session import Settings
from tlcheck.report import check_text, golden_text
from tlcheck.report.diff_text import DiffForm
from tlcheck.toolchain.resolve import resolve
from tlcheck.verdicts.acceptance import project_acceptances
from tlcheck.verdicts.checking import checking
from tlcheck.verdicts.judge import Policy
from tlcheck.verdicts.results import Result
from tlcheck.worker.jobs import DiscoverJob

_WIDTH = 120
Made = TypeVar("Made")


@dataclass(frozen=True)
class Verdict:
    """wrong: a report of all that is; expected: why the case does not lower, where that is known."""

    wrong: str = ""
    expected: str = ""


class _Silent:
    """A watcher that tells nobody."""

    def goal(self, text: str) -> None: ...

    def judges(self, run: Run) -> None: ...

    def has_judged(self, run: Run) -> None: ...

    def has_judged_ahead(self) -> None: ...

    def stage(self, text: str) -> None: ...

    def total(self, runs: int) -> None: ...

    def done(self, run: Run, *, known: bool = False) -> None: ...

    def trouble(self, text: str) -> None: ...


@dataclass
class Workshop:
    """Lowers and judges kernels of one project. folder: shared with other processes. files: all that may be asked for.

    wanted: the cases that will be judged, file, name and target, known when all are collected.
    """

    config: Config
    folder: Path
    files: Sequence[Path]
    wanted: Sequence[tuple[Path, str, str]] = ()

    def cases(self, file: Path) -> list[tuple[str, str]]:
        """Name and target of each case of a file. Raises UsageError where it cannot be imported."""
        found = self._once("cases", self._discover)[str(file.resolve())]
        if found.failure is not None:
            raise UsageError(f"{file}: {found.failure.message}\n{found.failure.detail}".rstrip())
        return [(case.name, target) for case in found.cases for target in self._targets(case)]

    def _discover(self) -> dict[str, Discovered]:
        """Return cases by absolute path."""
        s = self._settings
        with naming(self.config, "toolchain"):
            toolchain = resolve(s.toolchain, s.requirements)
        device = next(iter(s.arch), ALL_TARGETS[-1])
        jobs = [
            DiscoverJob(os.path.relpath(file), arch=device, pythonpath=s.pythonpath, timeout=s.timeout, number=number)
            for number, file in enumerate(self.files)
        ]
        with LocalExecutor(processors()) as local:
            executor = CachedExecutor(local, open_cache(s.cache), fork=s.fork)
            worker = executor.toolchain_worker(toolchain, Worker(toolchain.python, toolchain.env, fork=s.fork))
            for job in jobs:
                executor.add(worker, job)
            found = [discovered(done.job, done.answer) for done in executor.answers()]
        return {str(Path(each.job.file).resolve()): each for each in found}

    def _targets(self, case: DeclaredCase) -> Sequence[str]:
        """Cases that are made for certain archs are not lowered for others."""
        asked = self._settings.arch
        if not asked or case.targets == ALL_TARGETS:
            return asked or case.targets
        return [target for target in asked if target in case.targets]

    def judge(self, file: Path, name: str, target: str) -> Verdict:
        """Findings, and differences from the golden where the project has any."""
        found, result = self._judged[str(file.resolve()), name, target]
        if result.failure is not None and result.excuse is not None:
            return Verdict(expected=result.excuse.reason or result.failure.message)
        parts = [_report(result)] if result.failure is not None or result.broken or result.count("refuted") else []
        if result.failure is None:
            parts += self._golden(found)
        return Verdict("\n".join(parts))

    def _golden(self, found: Lowered) -> list[str]:
        if not self._approved.goldens:
            return []
        state = states.state_of(recorded(found, self._project), self._approved)
        if state.kind == states.SAME:
            return []
        file = io.StringIO()
        golden_text.write(Console(file=file, width=_WIDTH), [state], DiffForm())
        return [file.getvalue()]

    @cached_property
    def _judged(self) -> dict[tuple[str, str, str], tuple[Lowered, Result]]:
        """Return results by absolute path, case and target."""
        return self._once("judged", self._lower)

    def _lower(self) -> dict[tuple[str, str, str], tuple[Lowered, Result]]:
        wanted: dict[Path, set[tuple[str, str]]] = {}
        for file, name, target in self.wanted:
            wanted.setdefault(Path(os.path.relpath(file)), set()).add((name, target))
        selections = [Selection(file, found=True, only=frozenset(cases)) for file, cases in wanted.items()]
        policy = Policy(project_acceptances(self.config))
        with checking(self._settings, policy, self.folder, _Silent()) as checks:
            return {
                (str(Path(lowered.run.file).resolve()), lowered.run.name, lowered.run.target): (lowered, result)
                for lowered, result in checks.results(selections)
            }

    def _once(self, name: str, make: Callable[[], Made]) -> Made:
        """Do it in one of the processes; the others wait for it."""
        with held(self.folder / f"{name}.lock"):
            made = self.folder / f"{name}.pickle"
            if not made.exists():
                put(made, pickle.dumps(make()))
            found: Made = pickle.loads(made.read_bytes())
            return found

    @cached_property
    def _settings(self) -> Settings:
        config = self.config
        return Settings(
            toolchain=config.toolchain,
            arch=config.arch,
            pythonpath=tuple(map(str, config.pythonpath)),
            requirements=config.requirements,
        )

    @cached_property
    def _approved(self) -> Contents:
        return GoldenStore(self._project.folder).read()

    @cached_property
    def _project(self) -> Project:
        return project_of(self.config)


def workshops(root: Path, folder: Path, files: Sequence[Path]) -> dict[Path, Workshop]:
    """The workshop of each file: one for the files of each project. root: of those that are in none.

    Raises UsageError for settings that are wrong.
    """
    own = read_config(root)
    projects: dict[Config, list[Path]] = {}
    for file in files:
        config = read_config(file.parent)
        projects.setdefault(config if config.file is not None else own, []).append(file)
    found: dict[Path, Workshop] = {}
    for number, (config, mine) in enumerate(projects.items()):
        shared = folder / str(number)
        shared.mkdir(exist_ok=True)
        found |= dict.fromkeys(mine, Workshop(config, shared, mine))
    return found


def _report(result: Result) -> str:
    file = io.StringIO()
    check_text.write(Console(file=file, width=_WIDTH), [result], [])
    return file.getvalue()
