"""One task in a process of its own: compile, wait for the GPU, run, answer.

The answer is a JSON object: `phase` (`start`, `import`, `compile`, `wait`, `inputs`, `launch`, `compare`, `time`,
`done`), `source`, `trials` or `timing` or `device`, `seconds` by phase, and `failure` if it ended early. It is
written anew with every phase, so that a process that dies has told what it was doing.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, TypeVar

from tlcheck import files
from tlcheck.case import Case
from tlcheck.targets.nvidia import arch_of
from tlcheck.worker import failures, process_limits, release
from tlcheck.worker.dependencies import Recorder
from tlcheck.worker.gpu import task as tasks
from tlcheck.worker.gpu.loaded_case import CompiledKernel, LoadedCase
from tlcheck.worker.gpu.task import (
    CaseTask,
    DeviceTask,
    GpuTask,
    InputsTask,
    LaunchTask,
    ReferTask,
    Task,
    TimeTask,
    VerifyTask,
)

Compared = TypeVar("Compared", VerifyTask, ReferTask)


class TaskAnswer:
    """The answer as far as it is known."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._since = time.monotonic()
        self.content: dict[str, Any] = {"phase": "start", "trials": [], "seconds": {}}

    def enter(self, phase: str) -> None:
        now, seconds = time.monotonic(), self.content["seconds"]
        seconds[self.content["phase"]] = round(seconds.get(self.content["phase"], 0.0) + now - self._since, 3)
        self.content["phase"], self._since = phase, now
        self.write()

    def write(self) -> None:
        tasks.answer(self._task, self.content)


def main(file: str) -> None:
    """Do the task described in a file; ends the process without the exit handlers of TVM and torch."""
    faulthandler.enable()
    process_limits.die_with_parent()
    process_limits.write_no_core()
    task = tasks.read(Path(file))
    if isinstance(task, CaseTask) and task.processor:
        process_limits.limit_processor_time(task.processor)
    answer = TaskAnswer(task)
    recorder = None
    if isinstance(task, InputsTask | ReferTask):  # their answers may be kept
        recorder = Recorder()
        recorder.watch()
    try:
        answer.enter("import")
        _do(task, answer)
        answer.enter("done")
    except BaseException as error:
        file = str(Path(task.file).resolve()) if isinstance(task, CaseTask) else ""
        failure = failures.from_exception(error, answer.content["phase"], file)
        answer.content["failure"] = asdict(failure)
        answer.write()
    if recorder is not None and isinstance(task, InputsTask | ReferTask):
        answer.content["dependencies"] = _read(recorder, Path(task.folder))
        answer.write()
    os._exit(0)


def _read(recorder: Recorder, folder: Path) -> dict[str, Any] | None:
    """Return what a task has read, without the files that the controller made for it."""
    found = recorder.found()
    if found is None:
        return None
    files = {file: digest for file, digest in found.files.items() if folder not in Path(file).parents}
    return asdict(replace(found, files=files))


def _do(task: Task, answer: TaskAnswer) -> None:
    match task:
        case DeviceTask():
            _describe(task, answer)
        case VerifyTask():
            _verify(task, answer)
        case LaunchTask():
            _launch(task, answer)
        case TimeTask():
            _time(task, answer)
        case InputsTask():
            _inputs(task, answer)
        case ReferTask():
            _refer(task, answer)


def _describe(task: DeviceTask, answer: TaskAnswer) -> None:
    import torch

    answer.content["device"] = {"torch": torch.__version__, "cuda": torch.version.cuda or ""}
    if not torch.cuda.is_available():
        return
    properties = torch.cuda.get_device_properties(0)
    amd = properties.gcnArchName.partition(":")[0] if torch.version.hip else ""  # of `gfx942:sramecc+:xnack-`
    answer.content["device"] |= {
        "name": properties.name,
        "arch": amd or arch_of(10 * properties.major + properties.minor),
        "multiprocessors": properties.multi_processor_count,
        "memory": properties.total_memory,
        "l2": properties.L2_cache_size,
        "versions": release.import_tilelang(),
    }
    if task.ceilings:
        from tlcheck.worker.gpu import timing

        answer.content["device"]["ceilings"] = timing.ceilings()


def _verify(task: VerifyTask, answer: TaskAnswer) -> None:
    from tlcheck.worker.gpu import draws, verification

    subject, compiled = _compile(task, answer)
    task = _declared(task, subject.case)
    inputs = draws.draws(subject, compiled.names, task)
    for trial in verification.verify(subject, compiled, task, inputs, answer.enter):
        answer.content["trials"].append(trial)


def _declared(task: Compared, case: Case) -> Compared:
    """The task with what the case says of its parameters, which goes over what was read from the kernel."""
    if case.updates is not None:
        poisoned = tuple(name for name in task.poisoned if name not in case.updates)
        scratch = tuple(name for name in task.updated if name not in case.updates)
        task = replace(task, poisoned=poisoned, updated=tuple(case.updates), scratch=scratch)
    return task if case.float_atomics is None else replace(task, float_atomics=case.float_atomics)


def _launch(task: LaunchTask, answer: TaskAnswer) -> None:
    """Launch once, on tensors without guards: compute-sanitizer sees the true ends of each."""
    import torch

    from tlcheck.worker.gpu import draws

    subject, compiled = _compile(task, answer)
    answer.enter("inputs")
    (_, variant), *_ = draws.variants(subject.case, exact=False)
    values = draws.make(subject, variant, 0, task.device)
    torch.cuda.synchronize()
    answer.enter("launch")
    compiled.launch(*values)
    torch.cuda.synchronize()


def _time(task: TimeTask, answer: TaskAnswer) -> None:
    from tlcheck.worker.gpu import timing

    subject, compiled = _compile(task, answer)
    answer.enter("time")
    answer.content["timing"] = timing.measure(subject, compiled, task)


def _inputs(task: InputsTask, answer: TaskAnswer) -> None:
    """Write the case's inputs for an execution on the CPU, and answer with what the case says that decides about it."""
    subject = _load(task)
    from tlcheck.worker.gpu import case_arrays

    answer.enter("inputs")
    case = subject.case
    answer.content["where"] = case_arrays.where(case.inputs)
    answer.content["updates"] = None if case.updates is None else list(case.updates)
    answer.content["reference"] = case.reference is not None
    answer.content["sets"] = case_arrays.write_inputs(subject, task)


def _refer(task: ReferTask, answer: TaskAnswer) -> None:
    subject = _load(task)
    from tlcheck.worker.gpu import case_arrays

    answer.enter("compare")
    for trial in case_arrays.compare(subject, _declared(task, subject.case)):
        answer.content["trials"].append(trial)


def _load(task: CaseTask) -> LoadedCase:
    release.import_tilelang()
    from tlcheck.worker.gpu import kernel

    return kernel.load(task.file, task.name, task.args, task.pythonpath)


def _compile(task: GpuTask, answer: TaskAnswer) -> tuple[LoadedCase, CompiledKernel]:
    """The case and its kernel. The GPU is this process's own from here on: it holds the lock until it ends."""
    subject = _load(task)
    from tlcheck.worker.gpu import kernel

    answer.enter("compile")
    compiled = kernel.compile_kernel(subject, task.pass_configs)
    answer.content["source"] = compiled.source
    answer.enter("wait")
    if task.lock:
        files.take(Path(task.lock))
        signal.alarm(max(1, round(task.limit)))  # its default action ends the process wherever it hangs
    return subject, compiled
