"""Runs a script as Python would, or a test file as pytest would, and captures its kernels."""

from __future__ import annotations

import builtins
import contextlib
import sys
import types
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tlcheck.worker import device, failures, kernel_file
from tlcheck.worker.capture import borrowed, standins
from tlcheck.worker.capture.recording import Recording
from tlcheck.worker.failures import RequestError
from tlcheck.worker.lines import AtomicLines
from tlcheck.worker.protocol import Failure, Job


def capture(job: Job, enter: Callable[[str], None], report: Callable[[Mapping[str, Any]], None]) -> dict[str, Any]:
    """Run the script to its end, or as far as it comes. `report` is told of each kernel.

    `ended` in the result says why a script did not come to its end; None if it did.
    """
    file = Path(job.file).resolve()
    lines = AtomicLines()
    lines.watch()
    recording = Recording(job, lines, report)
    mode = _watch(recording, job) if job.live else _replace(recording, job)
    borrowed.install(job.tools)
    standins.install()
    sys.path[:0] = [str(file.parent), *job.pythonpath]
    enter("run")
    module = types.ModuleType("__main__")
    ended = None
    try:
        with mode:
            (_run_tests if is_test(file) else _run_script)(file, module, job)
    except RequestError:
        raise
    except BaseException as error:
        ended = _ended(error, file)
    enter("done")
    return {"ended": asdict(ended) if ended else None, "names": _kernel_names(module)}


def warm() -> None:
    """What all scripts without a GPU need, done before the first one."""
    from tlcheck.worker.capture import tensors

    tensors.warm()


def _replace(recording: Recording, job: Job) -> contextlib.AbstractContextManager[Any]:
    """Nothing is launched: what stands for the device while the script runs."""
    from tlcheck.worker.capture import gpu, interception, tensors

    device.pretend(job.arch)
    gpu.install()
    mode = tensors.install()
    interception.install(recording, mode.empty, job.max_configs)
    return mode


def _watch(recording: Recording, job: Job) -> contextlib.AbstractContextManager[Any]:
    """Everything happens for real."""
    from tlcheck.worker.capture.live import Watch
    from tlcheck.worker.capture.observation import Keeper

    stem = str(Path(job.output).with_suffix(""))
    Watch(recording, Keeper(stem, job.record_limit) if job.record_limit else None).install()
    return contextlib.nullcontext()


def is_test(file: Path) -> bool:
    """Whether pytest would collect this file."""
    return file.stem.startswith("test_") or file.stem.endswith("_test")


def _run_script(file: Path, module: types.ModuleType, job: Job) -> None:
    sys.argv = [job.file, *job.script_args]
    module.__dict__.update(__file__=str(file), __builtins__=builtins, __spec__=None, __cached__=None)
    sys.modules["__main__"] = module
    exec(compile(file.read_bytes(), str(file), "exec", dont_inherit=True), module.__dict__)


def _run_tests(file: Path, module: types.ModuleType, job: Job) -> None:
    """A failing test ends that test alone; without a GPU it compares numbers that do not exist, and may."""
    sys.argv = ["pytest", str(file), *job.script_args]
    try:
        import pytest
    except ImportError as error:
        raise RequestError("test files are run by pytest, which is neither installed here nor there") from error
    code = pytest.main([str(file), "-q", "--no-header", "-p", "no:cacheprovider", *job.script_args])
    if code == pytest.ExitCode.USAGE_ERROR:
        raise RequestError(f"pytest does not take these arguments: {' '.join(job.script_args)}")
    if job.live and code == pytest.ExitCode.TESTS_FAILED:
        raise AssertionError("not all of its tests have passed")


def _ended(error: BaseException, file: Path) -> Failure | None:
    """Why the script ended before its end; None where it ended itself without complaint."""
    if isinstance(error, SystemExit) and not error.code:
        return None
    return failures.from_exception(error, "run", str(file))


def _kernel_names(module: types.ModuleType) -> list[str]:
    return kernel_file.kernel_names(module)
