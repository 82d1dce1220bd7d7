"""Runs a script as Python would, or a test file as pytest would, and captures its kernels."""

from __future__ import annotations

import builtins
import contextlib
import random
import sys
import types
import unittest.case
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

from tlcheck.worker import assumed_device, borrowed, breakpoints, failures, kernel_file, packages, standins
from tlcheck.worker.capture import pytests
from tlcheck.worker.capture.kernel_recording import Recording
from tlcheck.worker.capture.parts import KernelParts
from tlcheck.worker.capture.passed import PassedCalls
from tlcheck.worker.capture.patience import FOREVER, Patience
from tlcheck.worker.capture.pytests import TestRun, is_test
from tlcheck.worker.capture.refusals import Refusals
from tlcheck.worker.capture.unseen import NoTimeError, UnseenError
from tlcheck.worker.failures import RequestError
from tlcheck.worker.jobs import CaptureJob
from tlcheck.worker.protocol import Failure
from tlcheck.worker.statement_lines import StatementLines


def capture(
    job: CaptureJob, enter: Callable[[str], None], report: Callable[[Mapping[str, Any]], None]
) -> dict[str, Any]:
    """Run the script to its end, or as far as it comes. `report` is told of each kernel.

    `ended` in the result says why a script did not come to its end; None if it did. `tests`: see `TestRun.counts`.
    """
    file = Path(job.file).resolve()
    lines = StatementLines()
    lines.watch()
    breakpoints.watch()
    refusals = Refusals()
    refusals.watch(unittest.case._AssertRaisesContext)
    recording = Recording(job, lines, refusals, report)
    packages.import_straight()
    borrowed.install()
    patience = FOREVER if job.live else Patience(job.timeout, job.sides)
    mode, calls = (_watch(recording, job), None) if job.live else _replace(recording, job, patience)
    parts = KernelParts(job.output, recording, calls) if job.parts and calls is not None else None
    first, last = packages.import_path(file)
    sys.path[:0] = [*map(str, first), *job.pythonpath]
    sys.path += map(str, last)
    enter("run")
    module = types.ModuleType("__main__")
    ended = None
    counts: Mapping[str, int] = {}
    try:
        with mode:
            if is_test(file):
                end_test = parts.end_test if parts is not None else lambda: None
                tests = pytests.run(file, job, refusals, patience, report, end_test)
                counts, ended = tests.counts(), _tests_ended(tests, recording)
            else:
                _run_script(file, module, job)
    except RequestError:
        raise
    except BaseException as error:
        ended = _ended(error, str(file))
    enter("done")
    if ended is not None:
        ended = standins.told(ended)
    return {
        "ended": asdict(ended) if ended else None,
        "names": kernel_file.builder_names(module),
        "refused": list(refusals.seen),
        "tests": counts,
        "calls": {} if calls is None else calls.write(Path(job.output)),
    }


def warm() -> None:
    """Do what all scripts without a GPU need, before the first one."""
    from tlcheck.worker.capture import tensors

    tensors.warm()


def _replace(
    recording: Recording, job: CaptureJob, patience: Patience
) -> tuple[contextlib.AbstractContextManager[Any], PassedCalls]:
    """Put stand-ins in the device's place while the script runs, and keep what calls pass. Nothing is launched."""
    import numpy

    from tlcheck.worker.capture import gpu, interception, tensors, triton_kernels
    from tlcheck.worker.capture.interpreted import Executor
    from tlcheck.worker.capture.tape import Tape

    assumed_device.pretend(job.arch)
    random.seed(0)  # sizes are often drawn: each run has the same
    numpy.random.seed(0)
    gpu.install(assumed_device.known_target(job.arch))
    tape = Tape(Executor(job.interpreter, job.output), calls=job.calls)
    mode = tensors.install(tape, patience)
    interception.install(recording, mode.empty, tape, job.max_configs)
    launched = partial(tape.launch, "")
    triton_kernels.install(launched, interception.bench)
    standins.install(launched)
    return mode, tape.passed


def _watch(recording: Recording, job: CaptureJob) -> contextlib.AbstractContextManager[Any]:
    """Everything happens for real."""
    from tlcheck.worker.capture.live import LiveWatch
    from tlcheck.worker.capture.observation import Keeper

    stem = str(Path(job.output).with_suffix(""))
    LiveWatch(recording, Keeper(stem, job.record_limit) if job.record_limit else None).install()
    standins.install()
    return contextlib.nullcontext()


def _run_script(file: Path, module: types.ModuleType, job: CaptureJob) -> None:
    """Run it as `python FILE` does; one with relative imports as `python -m` does."""
    sys.argv = [job.file, *job.script_args]
    place = packages.place_of(file)
    module.__package__ = place.package if place.relative else None
    module.__dict__.update(__file__=str(file), __builtins__=builtins, __spec__=None, __cached__=None)
    sys.modules["__main__"] = module
    exec(compile(file.read_bytes(), str(file), "exec", dont_inherit=True), module.__dict__)


def _ended(error: BaseException, file: str) -> Failure | None:
    """Return why the script ended before its end; None where it ended itself without complaint. file: see
    `where_raised`.
    """
    if isinstance(error, SystemExit) and not error.code:
        return None
    failure = failures.from_exception(failures.without_runner(error), "run", file)
    return replace(failure, kind="capture") if isinstance(error, UnseenError) else failure


def _tests_ended(tests: TestRun, recording: Recording) -> Failure | None:
    """Return what there is to say of the first failed test, rather one that failed by itself; None if all is well.

    If nothing was captured, return why. A failure's place is where the project raised it: the test is named anyway.
    """
    ended = [(name, _ended(error, "")) for name, error in tests.failed]
    found = [(name, failure) for name, failure in ended if failure is not None]
    if found:
        name, first = min(found, key=lambda item: item[1].kind == "capture")
        others = f", and {len(found) - 1} more" if len(found) > 1 else ""
        left = f"; {tests.left}" if tests.left else ""
        late = tests.left or any(isinstance(error, NoTimeError) for _, error in tests.failed)
        kind = "timeout" if late else first.kind  # another run may get further: its answer is not kept
        return replace(first, kind=kind, message=f"{name} failed{others}: {first.message}{left}")
    if tests.left:
        return Failure("timeout", "run", tests.left)
    if recording.count or not tests.skipped:
        return None
    count = len(tests.skipped)
    return Failure("skipped", "run", f"{count} test{'s' * (count > 1)} skipped: {tests.skipped[0]}")
