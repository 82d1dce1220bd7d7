"""Kernels of a test file are handed over while its later tests run."""

from __future__ import annotations

import threading
import zipfile
from collections import Counter
from collections.abc import Collection
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tlcheck.lower.scripts import handed_over
from tlcheck.worker.capture.parts import KernelParts
from tlcheck.worker.jobs import CaptureJob


class Calls:
    """Calls of kernels. seen: how many of each."""

    def __init__(self) -> None:
        self.seen: Counter[str] = Counter()

    def write(self, archive: Path, kernels: Collection[str]) -> dict[str, Any]:
        with zipfile.ZipFile(archive, "a") as file:
            for kernel in kernels:
                file.writestr(f"{kernel}.inputs", f"{self.seen[kernel]} calls")
        return {kernel: {"sets": [[[0], []]], "digest": f"d{self.seen[kernel]}"} for kernel in kernels}


class TestFile:
    """A test file that runs."""

    __test__ = False

    def __init__(self, folder: Path) -> None:
        self.job = CaptureJob("test_k.py", output=str(folder / "0-0.zip"), arch="sm_90")
        self.recording = SimpleNamespace(told=[], lock=threading.RLock())
        self.calls = Calls()
        self.parts = KernelParts(self.job.output, cast("Any", self.recording), cast("Any", self.calls))

    def compile(self, number: str) -> None:
        with zipfile.ZipFile(self.job.output, "a") as archive:
            archive.writestr(number, f"snapshot {number}")
        self.recording.told.append({"name": f"k{number}", "args": {}, "origin": None, "snapshot": number})

    def end_test(self) -> list[tuple[str, str, str]]:
        """Name, snapshot and inputs of each kernel that is handed over after it."""
        self.parts.end_test()
        found = []
        for lowered in handed_over(self.job, Path(self.job.output).parent):
            assert lowered.snapshot is not None
            assert lowered.inputs is not None
            assert lowered.inputs.given is not None
            inputs = Path(lowered.inputs.given.file).read_text()
            found.append((lowered.run.case, lowered.snapshot.read_text(), inputs))
        return found


@pytest.fixture
def running(tmp_path: Path) -> TestFile:
    return TestFile(tmp_path)


def test_a_kernel_is_handed_over_after_a_test_that_leaves_it_alone(running: TestFile) -> None:
    running.compile("0001")
    running.calls.seen["0001"] += 1
    assert running.end_test() == []
    running.compile("0002")
    assert running.end_test() == [("test_k.py::k0001", "snapshot 0001", "1 calls")]
    assert running.end_test() == [("test_k.py::k0002", "snapshot 0002", "0 calls")]
    assert running.end_test() == []


def test_a_kernel_that_tests_go_on_to_call_is_not(running: TestFile) -> None:
    running.compile("0001")
    for _ in range(3):
        running.calls.seen["0001"] += 1
        assert running.end_test() == []
    assert running.end_test() == [("test_k.py::k0001", "snapshot 0001", "3 calls")]


def test_a_kernel_without_a_snapshot_is_not(running: TestFile) -> None:
    running.recording.told.append({"name": "k", "args": {}, "origin": None, "failure": {}})
    assert [running.end_test(), running.end_test()] == [[], []]
