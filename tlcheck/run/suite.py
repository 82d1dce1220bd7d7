"""Cases on the device with one toolchain: run, compare, sanitize, time.

suite = Suite(resolve("0.1.15"), Options(), folder)
arch = suite.device()["arch"]
results = suite.run(subjects, watcher)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tlcheck.errors import UsageError
from tlcheck.lower.client import processors
from tlcheck.lower.runs import Run
from tlcheck.lower.session import Watcher
from tlcheck.program.roles import source_roles
from tlcheck.run import compiled_source, device_results, sanitizer
from tlcheck.run.device_results import FAILED, NOT_RUN, PASSED, DeviceFinding, DeviceResult, Timing
from tlcheck.run.processes import EndedProcess, Pool
from tlcheck.snapshot.ir import Snapshot
from tlcheck.toolchain.resolve import Toolchain
from tlcheck.verdicts.results import Result
from tlcheck.witness import Addition
from tlcheck.worker.gpu.task import DeviceTask, LaunchTask, Task, TimeTask, VerifyTask


@dataclass(frozen=True)
class DeviceOptions:
    """The way to run kernels. seeds: sets of inputs. repeats: runs of each. exact: also on inputs with exact sums.

    limit: seconds on the GPU for each case. jobs: processes at a time that compile; None for one per processor.
    pass_configs: over the kernels' own. record, replay: folders, absolute.
    """

    seeds: int = 1
    repeats: int = 3
    exact: bool = False
    limit: float = 120.0
    jobs: int | None = None
    pythonpath: tuple[str, ...] = ()
    pass_configs: Mapping[str, str] = field(default_factory=dict)
    sanitize: tuple[str, ...] = ()
    bench: bool = False
    record: str = ""
    replay: str = ""


class NoDeviceError(Exception):
    """There is no GPU that this toolchain's torch can use; the message says why."""


@dataclass(frozen=True)
class DeviceCase:
    """One run with what is known of it before the device: its snapshot, and what `check` says.

    args: build arguments that go over the case's own, as text.
    """

    run: Run
    snapshot: Snapshot
    checked: Result
    args: Mapping[str, str]


@dataclass
class Suite:
    """Runs cases with one toolchain. folder: for files on the way."""

    toolchain: Toolchain
    options: DeviceOptions
    folder: Path

    def device(self, ceilings: bool = False) -> Mapping[str, Any]:
        """The device as torch sees it. Raises NoDeviceError, and UsageError where the toolchain does not start."""
        task = DeviceTask(str(self.folder / "device.json"), ceilings)
        (done,) = Pool(self.toolchain, 1, self.folder).run([task])
        if done.failure is not None:
            raise UsageError(f"{self.toolchain.name}: {done.failure.message}")
        found: Mapping[str, Any] = done.content["device"]
        if not found["cuda"]:
            raise NoDeviceError(f"the toolchain's torch {found['torch']} is built without CUDA")
        if "name" not in found:
            raise NoDeviceError("torch finds no CUDA device")
        return found

    def run(
        self, subjects: Sequence[DeviceCase], watcher: Watcher, ceilings: Mapping[str, float] | None = None
    ) -> Iterator[DeviceResult]:
        """A result for each, as it comes; where there is more to do, one that takes its place.

        ceilings: of the device, as `device` gives them; needed to time.
        """
        # what takes longest to compile begins first
        ordered = sorted(subjects, key=lambda subject: -len(subject.snapshot.cuda))
        watcher.total((1 + len(self.options.sanitize) + self.options.bench) * len(ordered))
        found: dict[tuple[int, ...], DeviceResult] = {}
        tasks: list[Task] = [self._verifying(subject) for subject in ordered]
        for subject, done in self._each(tasks, ordered, watcher, self._jobs):
            place = subject.run.position
            found[place] = _result(subject, done)
            yield found[place]
        for tool in self.options.sanitize:
            tasks = [LaunchTask(**self._common(f"launch{tool}", subject)) for subject in ordered]
            for subject, done in self._each(tasks, ordered, watcher, self._jobs, tool):
                kernels = sanitizer.kernels_in(subject.snapshot.cuda)
                place = subject.run.position
                found[place] = _with_tool(found[place], tool, kernels, done)
                yield found[place]
        if self.options.bench and ceilings:
            tasks = [TimeTask(**self._common("time", subject)) for subject in ordered]
            jobs = max(1, self._jobs // 2)  # compilers must not keep the timer waiting
            for subject, done in self._each(tasks, ordered, watcher, jobs):
                yield _with_timing(found[subject.run.position], done, ceilings)

    def _each(
        self, tasks: Sequence[Task], subjects: Sequence[DeviceCase], watcher: Watcher, jobs: int, tool: str = ""
    ) -> Iterator[tuple[DeviceCase, EndedProcess]]:
        """Do each subject's task, below a tool of compute-sanitizer if one is given. jobs: processes at a time."""
        by_output = {task.output: subject for task, subject in zip(tasks, subjects, strict=True)}
        pool = Pool(self.toolchain, jobs, self.folder, sanitizer.VARIABLES if tool else {})

        def prefix(task: Task) -> Sequence[str]:
            kernels = sanitizer.kernels_in(by_output[task.output].snapshot.cuda)
            return sanitizer.command(tool, _log(task), kernels) if tool else ()

        for done in pool.run(tasks, prefix):
            subject = by_output[done.task.output]
            watcher.done(subject.run)
            yield subject, done

    @property
    def _jobs(self) -> int:
        return self.options.jobs or processors()

    def _common(self, kind: str, subject: DeviceCase) -> dict[str, Any]:
        """The fields that all tasks of a subject have. kind: begins the name of its answer's file."""
        run = subject.run
        number = "-".join(map(str, run.position))
        return {
            "output": str(self.folder / f"{kind}-{run.slug}-{number}.json"),
            "file": run.file,
            "name": run.name,
            "args": dict(subject.args),
            "pythonpath": self.options.pythonpath,
            "pass_configs": self.options.pass_configs,
            "lock": str(self.folder / "gpu.lock"),
            "limit": self.options.limit,
        }

    def _verifying(self, subject: DeviceCase) -> VerifyTask:
        options, found = self.options, source_roles(subject.snapshot)
        return VerifyTask(
            **self._common("verify", subject),
            seeds=tuple(range(options.seeds)),
            repeats=options.repeats,
            exact=options.exact,
            poisoned=tuple([b.name for b in found.unread]),
            updated=tuple([b.name for b in found.updated]),
            float_atomics=found.float_atomics,
            watched=_watched(subject.checked),
            record=options.record,
            replay=options.replay,
        )


def _watched(checked: Result) -> dict[str, tuple[int, ...]]:
    """The elements that witnesses name, by parameter."""
    found: dict[str, set[int]] = {}
    for claim in checked.claims:
        witness = claim.finding.witness if claim.finding is not None else None
        if isinstance(witness, Addition):
            offsets = {offset for offset in (witness.intended, witness.written) if offset is not None}
            found.setdefault(claim.buffer, set()).update(offsets)
    return {buffer: tuple(sorted(offsets)) for buffer, offsets in found.items()}


def _log(task: Task) -> Path:
    return Path(task.output).with_suffix(".log")


def _result(subject: DeviceCase, done: EndedProcess) -> DeviceResult:
    content = done.content
    trials = tuple(content.get("trials", ()))
    findings = tuple(device_results.findings_of(trials))
    reason = ""
    if done.failure is not None:
        shown = device_results.finding_of(done.failure, done.fault)
        findings = (*findings, shown) if shown else findings
        reason = "" if shown else f"{done.failure.phase}: {done.failure.message}"
    wrong = [found for found in findings if found.kind != "inexact-inputs"]
    different = compiled_source.difference(subject.snapshot.cuda, content["source"]) if "source" in content else ()
    result = DeviceResult(
        subject.run,
        FAILED if wrong else NOT_RUN if reason or not trials else PASSED,
        reason,
        findings,
        trials,
        ("different" if different else "same") if "source" in content else "unknown",
        different,
        seconds=content.get("seconds", {}),
    )
    return device_results.with_verdicts(result, subject.checked)


def _with_tool(result: DeviceResult, tool: str, kernels: Sequence[str], done: EndedProcess) -> DeviceResult:
    """Add what compute-sanitizer found."""
    log = _log(done.task)
    text = log.read_text(errors="replace") if log.exists() else done.output
    found = sanitizer.read_log(tool, text, kernels)
    if found is None:
        said = done.failure.message if done.failure else (done.output.strip().splitlines() or ["it said nothing"])[-1]
        reason = f"{tool} did not run to its end: {said}"
        return replace(result, status=NOT_RUN if result.status == PASSED else result.status, reason=reason)
    if not found.errors:
        return replace(result, sanitized=(*result.sanitized, found))
    said, kernel = found.messages[0] if found.messages else ("", "")
    message = f"{tool} counts {found.errors} in {kernel or 'this case'}: {said}"
    return replace(
        result,
        status=FAILED,
        findings=(*result.findings, DeviceFinding("sanitizer", "", message)),
        sanitized=(*result.sanitized, found),
        excused=result.excused or device_results.excuse(result.refuted),
    )


def _with_timing(result: DeviceResult, done: EndedProcess, ceilings: Mapping[str, float]) -> DeviceResult:
    timing = done.content.get("timing")
    if timing is None:
        said = done.failure.message if done.failure else "no times"
        return replace(result, reason=f"not timed: {said}")
    floor = max(timing["bytes"] / ceilings["bytes_per_second"], timing["flops"] / ceilings["flops_per_second"]) * 1e3
    return replace(result, timing=Timing(timing["times"], timing["bytes"], timing["flops"], floor))
