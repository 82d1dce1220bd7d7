"""Fixtures of the worker tests: kernel files written by a test, run against a stand-in for TileLang."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cpu.client import Client
from tests.cpu.worker.processes import WORKER
from tlcheck.lower.client import Worker
from tlcheck.worker.jobs import Job, LowerJob

Write = Callable[[str], str]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write a kernel file and return its path."""

    def write(source: str) -> str:
        file = tmp_path / "kernels.py"
        file.write_text("import tilelang\nfrom tilelang.tvm import PrimFunc\n" + textwrap.dedent(source))
        return str(file)

    return write


@pytest.fixture
def worker() -> Iterator[Client]:
    with Client(Worker(*WORKER), parallel=2) as client:
        yield client


@pytest.fixture
def process() -> Iterator[Worker]:
    """A worker that the test itself talks to."""
    worker = Worker(*WORKER)
    worker.start()
    yield worker
    worker.close()


@pytest.fixture
def lowered(tmp_path: Path) -> Callable[..., Job]:
    """A job that lowers `kernel` of a file."""
    return lambda file, **fields: LowerJob(file, "kernel", output=os.fspath(tmp_path / "out.json"), **fields)
