"""Silent bugs of releases, seen by executing kernels: refuted in the releases that have them, agreed in the others."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tlcheck.execute.run import Execution, execute
from tlcheck.snapshot.codec import loads
from tlcheck.toolchain.releases import RELEASES

ROOT = Path(__file__).parents[2]
CASES = ("gemm", "truncated", "guard", "invariant", "twice", "softmax")
# A pipeline that waits for too few copies; a loop that loses iterations; a vectorized loop whose last lane wins.
REFUTED = {
    "gemm": {"0.1.9"},
    "truncated": set(RELEASES),
    "invariant": set(RELEASES) - {"0.1.7.post3", "0.1.8", "0.1.14", "0.1.15"},
}
OUT_OF_BOUNDS = {"guard": {"0.1.7.post3"}}
NOT_MODELLED = {"gemm": {"0.1.6.post2"}}  # the library's own gemm


@pytest.fixture(scope="module", params=RELEASES)
def executions(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, dict[str, Execution]]:
    """The release, and what came of each case."""
    release, folder = request.param, tmp_path_factory.mktemp("snapshots")
    file = Path(__file__).with_name("silent.py")
    command = [sys.executable, "-m", "tlcheck", "check", f"{file}@{release}", "--arch", "sm_80", "--save", str(folder)]
    subprocess.run(command, cwd=ROOT, capture_output=True, check=False)
    found = {case: next(folder.glob(f"silent-{case}-*.json")) for case in CASES}
    return release, {case: execute(loads(path.read_text())) for case, path in found.items()}


@pytest.mark.parametrize("case", CASES)
def test_verdicts(executions: tuple[str, dict[str, Execution]], case: str) -> None:
    release, found = executions
    (output,) = found[case].outputs
    expected = "refuted" if release in REFUTED.get(case, ()) else "agreed"
    if release in OUT_OF_BOUNDS.get(case, ()):
        assert found[case].illegal is not None
        expected = "undecided"
    if release in NOT_MODELLED.get(case, ()):
        expected = "undecided"
    assert output.verdict == expected, (release, output.reason)
