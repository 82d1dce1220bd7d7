"""Runs a test file as pytest would."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from tlcheck.worker.failures import RequestError
from tlcheck.worker.protocol import Job


def is_test(file: Path) -> bool:
    """Whether pytest would collect this file."""
    return file.stem.startswith("test_") or file.stem.endswith("_test")


def run(file: Path, job: Job) -> list[tuple[str, BaseException]]:
    """The tests that fail, each with its error: it ends that test alone. Raises RequestError."""
    sys.argv = ["pytest", str(file), *job.script_args]
    try:
        import pytest
    except ImportError as error:
        raise RequestError("test files are run by pytest, which is neither installed here nor there") from error
    watch = _Watch()
    options = ["-q", "--no-header", "-p", "no:cacheprovider"]
    code = pytest.main([str(file), *options, *job.script_args], plugins=[watch])
    if code == pytest.ExitCode.USAGE_ERROR:
        raise RequestError(f"pytest does not take these arguments: {' '.join(job.script_args)}")
    return watch.failed


class _Watch:
    """A plugin of pytest's."""

    def __init__(self) -> None:
        self.failed: list[tuple[str, BaseException]] = []

    def pytest_exception_interact(self, node: Any, call: Any) -> None:
        """Of a test, or of the whole file while tests are looked for."""
        self.failed.append((node.name, call.excinfo.value))
