"""Logs that compute-sanitizer wrote on an H200, and the commands that it is called with."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fixtures.index import FOLDER
from tlcheck.errors import UsageError
from tlcheck.run import sanitizer
from tlcheck.snapshot import codec

LOGS = Path(__file__).parent / "logs"


@pytest.mark.parametrize(
    ("log", "errors", "first"),
    [
        ("right-memcheck", 0, ""),
        ("right-racecheck", 0, ""),
        ("out_of_bounds-memcheck", 34, "Invalid __global__ write of size 4 bytes at main_kernel+0x1a0"),
        ("shared_race-racecheck", 1, "Error: Race reported between Write access at main_kernel+0x100"),
        ("unaligned_vector-memcheck", 34, "Invalid __global__ atomic of size 4 bytes at atomicAdd(__half2"),
    ],
)
def test_recorded_logs_are_read(log: str, errors: int, first: str) -> None:
    tool = log.partition("-")[2]
    found = sanitizer.read_log(tool, (LOGS / f"{log}.txt").read_text(), ["other_kernel", "main_kernel"])
    assert found is not None
    assert (found.tool, found.errors) == (tool, errors)
    assert bool(found.messages) == bool(first)
    if first:
        text, kernel = found.messages[0]
        assert text.startswith(first)
        assert kernel == "main_kernel"
        assert "Host Frame" not in text


def test_messages_say_which_thread_and_what_memory() -> None:
    found = sanitizer.read_log("memcheck", (LOGS / "out_of_bounds-memcheck.txt").read_text(), ["main_kernel"])
    assert found is not None
    assert "by thread (0,0,0) in block (8,0,0)" in found.messages[0][0]
    assert "1 bytes after the nearest allocation" in found.messages[0][0]


def test_a_log_without_a_summary_is_no_result() -> None:
    text = (LOGS / "out_of_bounds-memcheck.txt").read_text().partition("========= ERROR SUMMARY")[0]
    assert sanitizer.read_log("memcheck", text, ["main_kernel"]) is None


def test_the_kernels_of_a_source_are_found() -> None:
    snapshot = codec.loads((FOLDER / "era" / "annotated_gemm-0.1.15.snapshot.json").read_text())
    assert sanitizer.kernels_in(snapshot.cuda) == ("main_kernel",)
    two = 'extern "C" __global__ void __launch_bounds__(128, 1) one(float* a) {}\n__global__ void two(int b) {}'
    assert sanitizer.kernels_in(two) == ("one", "two")


def test_only_these_kernels_are_instrumented(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = tmp_path / "bin" / "compute-sanitizer"
    tool.parent.mkdir()
    tool.touch(0o755)
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", "")
    command = sanitizer.command("memcheck", tmp_path / "log", ["one", "two"])
    assert command[:3] == [str(tool), "--tool", "memcheck"]
    assert command[-4:] == ["--kernel-name", "kns=one", "--kernel-name", "kns=two"]
    tool.unlink()
    with pytest.raises(UsageError, match="compute-sanitizer is not installed"):
        sanitizer.command("memcheck", tmp_path / "log", [])
