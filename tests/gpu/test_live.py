"""`tlcheck capture --live` on a GPU: a script runs as it would without tlcheck, and other releases repeat its calls."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.gpu.conftest import NO_GPU, ROOT, find_toolchain, tlcheck_run
from tlcheck.toolchain.releases import PINNED

SCRIPT = "tests/gpu/kernels/live.py"
CASES = {"add_case", "count_case", "twice_case", "add_case_2"}


def tlcheck(command: str, *options: str | Path) -> subprocess.CompletedProcess[str]:
    """Return what a command does with the script. Skips the test where there is no GPU."""
    arguments = [command, SCRIPT, "--live", *map(str, options), "--toolchain", find_toolchain(PINNED)]
    done = subprocess.run(
        [sys.executable, "-m", "tlcheck", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if done.returncode == NO_GPU and "no GPU" in done.stderr:
        pytest.skip(done.stderr.strip())
    return done


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return what `capture --live` writes; the script has come to its end."""
    folder = tmp_path_factory.mktemp("kept")
    done = tlcheck("capture", "-o", folder)
    assert done.returncode == 0, done.stdout + done.stderr
    ends = [line.rpartition(", ")[2] for line in done.stdout.splitlines()]
    assert [end.partition(" (")[0] for end in ends] == ["a call recorded"] * len(CASES)
    return folder


def statuses(report: Any) -> dict[str, str]:
    """Case -> status; each run is one set of inputs, the recorded ones."""
    (examination,) = report["examinations"]
    return {run["case"].rpartition("::")[2]: run["status"] for run in examination["runs"]}


@pytest.mark.parametrize("release", [PINNED, "0.1.14"])
def test_a_release_repeats_the_recorded_calls(kept: Path, tmp_path: Path, release: str) -> None:
    code, report = tlcheck_run(tmp_path / "report.json", kept / "live_cases.py", release=release)
    assert (code, statuses(report)) == (0, dict.fromkeys(CASES, "passed"))


def test_another_kernel_is_told(kept: Path, tmp_path: Path) -> None:
    """The recorded call is of a script that has changed since."""
    changed = tmp_path / "live.py"
    changed.write_text((ROOT / SCRIPT).read_text().replace("+ 1.0", "+ 1.5"))
    cases = (kept / "live_cases.py").read_text().splitlines()
    place = next(number for number, line in enumerate(cases) if line.startswith("sys.path"))
    cases[place] = f"sys.path.insert(0, {str(tmp_path)!r})"
    (kept / "changed_cases.py").write_text("\n".join(cases))
    code, report = tlcheck_run(tmp_path / "report.json", f"{kept / 'changed_cases.py'}::add_case")
    assert (code, statuses(report)) == (1, {"add_case": "failed"})


def test_a_script_that_reads_values_is_checked_to_its_end() -> None:
    done = tlcheck("check")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "live.py::add[n=16384,block=" in done.stdout
    assert "4 ok (3 outputs proved)" in done.stdout
