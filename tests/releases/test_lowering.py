"""Every known release lowers the reference kernels, and finds in them what they expect. `make test-releases`."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tlcheck.toolchain.releases import RELEASES

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("release", RELEASES)
def test_it_lowers_the_atomics(release: str) -> None:
    command = [sys.executable, "-m", "tlcheck", "check", f"cases/atomics.py@{release}", "--format", "json"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads(done.stdout)
    assert report["summary"]["not_checked"] == report["summary"]["expected_errors"] == 0
    assert {run["toolchain"]["versions"]["tilelang"].partition("+")[0] for run in report["runs"]} == {release}
    counts = Counter(run["target"] for run in report["runs"])
    assert counts["sm_80"] == counts["sm_90"] > 50
