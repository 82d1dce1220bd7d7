"""Examine what a user selects on the device, for `tlcheck run`."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tlcheck.execute.request import Request
from tlcheck.lower.client import processors
from tlcheck.lower.runs import Lowered
from tlcheck.lower.selection import Selection
from tlcheck.lower.session import Settings
from tlcheck.run import circumstances
from tlcheck.run.device_results import NOT_RUN, DeviceResult
from tlcheck.run.explanation import explained
from tlcheck.run.suite import DeviceCase, DeviceOptions, Suite
from tlcheck.run.versions import TimedPair, Versions
from tlcheck.snapshot import codec
from tlcheck.toolchain.resolve import resolve
from tlcheck.verdicts.acceptance import Acceptances
from tlcheck.verdicts.checking import Checks, checking, saved
from tlcheck.verdicts.judge import JudgeWatcher, Policy
from tlcheck.verdicts.results import Result, read_snapshot


@dataclass(frozen=True)
class Examination:
    """Results with one toolchain. device: as `Suite.device` has it. clocks: before and after."""

    toolchain: str
    device: Mapping[str, Any]
    clocks: tuple[Mapping[str, str], Mapping[str, str]]
    date: str
    results: tuple[DeviceResult, ...]
    passed_over: int = 0


@dataclass(frozen=True)
class RunRequest:
    """The choice of what to run. settings: `arch` empty for that of the device; `toolchain` for cases that name none.

    execute: how to execute what fails there on the CPU, None for not at all.
    """

    selections: Sequence[Selection]
    settings: Settings
    options: DeviceOptions = field(default_factory=DeviceOptions)
    acceptances: Acceptances = field(default_factory=Acceptances)
    execute: Request | None = None


def examine(request: RunRequest, folder: Path, watcher: JudgeWatcher) -> Iterator[Examination]:
    """Run everything, one toolchain after the other. Raises NoDeviceError and UsageError.

    Of one that is interrupted (KeyboardInterrupt) there is first what has run until then.
    """
    groups: dict[str, list[Selection]] = {}
    for selection in request.selections:
        groups.setdefault(selection.toolchain or request.settings.toolchain, []).append(selection)
    for number, (toolchain, selections) in enumerate(groups.items()):
        own = folder / str(number)
        own.mkdir()
        yield from _examine(toolchain, replace(request, selections=selections), own, watcher)


def _examine(toolchain: str, request: RunRequest, folder: Path, watcher: JudgeWatcher) -> Iterator[Examination]:
    settings = request.settings
    suite = Suite(resolve(toolchain, settings.requirements), request.options, folder)
    watcher.stage(f"{toolchain}: looking at the device")
    before, date = circumstances.clocks(), circumstances.now()
    device = suite.device(ceilings=request.options.bench)
    arch = settings.arch or (device["arch"],)
    settings = replace(settings, arch=arch, toolchain=toolchain)
    with checking(settings, Policy(request.acceptances), folder, watcher) as checks:
        found = list(_prepared(request, checks, arch))
    passed_over = len(checks.session.passed_over)
    subjects = [item for item in found if isinstance(item, DeviceCase)]
    ran: dict[tuple[int, ...], DeviceResult] = {}

    def made(clocks: Mapping[str, str]) -> Examination:
        results = [ran.get(r.run.position) or r for r in map(_interrupted, found)]
        results.sort(key=lambda result: result.run.position)
        return Examination(toolchain, device, (before, clocks), date, tuple(results), passed_over)

    after: Mapping[str, str] | None = None
    try:
        for result in suite.run(subjects, watcher, device.get("ceilings")):
            ran[result.run.position] = result
        after = circumstances.clocks()
        policy = Policy(request.acceptances, execute=request.execute)
        for result in explained([*ran.values()], request.selections, settings, policy, folder, watcher):
            ran[result.run.position] = result
    except KeyboardInterrupt:
        if ran:
            yield made(after or circumstances.clocks())
        raise
    yield made(after)


def _interrupted(item: DeviceCase | DeviceResult) -> DeviceResult:
    return DeviceResult(item.run, NOT_RUN, "interrupted") if isinstance(item, DeviceCase) else item


@dataclass(frozen=True)
class TimeComparison:
    """The times of two toolchains side by side. device, date: as in `Examination`."""

    old: str
    new: str
    device: Mapping[str, Any]
    clocks: tuple[Mapping[str, str], Mapping[str, str]]
    date: str
    comparisons: tuple[TimedPair, ...]


def compare_times(request: RunRequest, old: str, new: str, folder: Path, watcher: JudgeWatcher) -> TimeComparison:
    """The cases with both toolchains in turns. Raises NoDeviceError and UsageError."""
    settings, options = request.settings, request.options
    toolchains = [resolve(name, settings.requirements) for name in (old, new)]
    before, date = circumstances.clocks(), circumstances.now()
    device = Suite(toolchains[1], options, folder).device()
    arch = settings.arch or (device["arch"],)
    settings = replace(settings, arch=arch, toolchain=new)
    with checking(settings, Policy(request.acceptances), folder, watcher) as checks:
        subjects = [item for item in _prepared(request, checks, arch) if isinstance(item, DeviceCase)]
    jobs = max(1, (options.jobs or processors()) // 4)  # pairs, and compilers must not keep the timer waiting
    configs = options.pass_configs
    versions = Versions(toolchains[0], toolchains[1], folder, jobs, options.limit, options.pythonpath, configs)
    found = sorted(versions.compare(subjects, watcher), key=lambda comparison: comparison.run.position)
    return TimeComparison(old, new, device, (before, circumstances.clocks()), date, tuple(found))


def _prepared(request: RunRequest, checks: Checks, arch: Sequence[str]) -> Iterator[DeviceCase | DeviceResult]:
    """Yield what can be run, and why the rest cannot: a snapshot for another device is not even judged."""
    for done in saved(request.selections):
        snapshot = read_snapshot(request.selections[done.run.position[0]].path)
        if snapshot.target in arch:
            # arguments that can be read back; for others, such as functions, a declared case has its own
            found = {}
            for name, text in snapshot.args.items():
                with suppress(ValueError, SyntaxError):
                    ast.literal_eval(text)
                    found[name] = text
            yield DeviceCase(done.run, snapshot, checks.judge(done), found)
        else:
            yield DeviceResult(done.run, NOT_RUN, f"made for {snapshot.target}, the device is {arch[0]}")
    if any(not selection.is_snapshot for selection in request.selections):
        for lowered, checked in checks.judge.each(checks.session.lower(request.selections)):
            yield _lowered(lowered, checked, request)


def _lowered(lowered: Lowered, checked: Result, request: RunRequest) -> DeviceCase | DeviceResult:
    if lowered.snapshot is None:
        failure = lowered.failure
        reason = f"{failure.phase}: {failure.message}" if failure else "not lowered"
        excused = checked.excuse.reason if checked.excuse else ""
        return DeviceResult(lowered.run, NOT_RUN, reason, excused=excused)
    snapshot = codec.loads(lowered.snapshot.read_text(encoding="utf-8"))
    return DeviceCase(lowered.run, snapshot, checked, request.settings.args)
