"""Wrong code of releases, seen by executing kernels: each case has the verdict that `expected.toml` names."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tlcheck.toolchain.releases import RELEASES

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "tests" / "wrong_code"
FILES = sorted(str(file.relative_to(ROOT)) for file in FOLDER.glob("*.py"))  # not `grown`: nobody expects of these
EXPECTED = msgspec.toml.decode((FOLDER / "expected.toml").read_text())
WORST = ("refuted", "undecided", "agreed", "proved")


@pytest.mark.timeout(1800)  # a hundred kernels, on a machine that does other things too
@pytest.mark.parametrize("release", RELEASES)
def test_verdicts(release: str) -> None:
    command = [sys.executable, "-m", "tlcheck", "check", *FILES, "--arch", "sm_80,sm_90"]
    done = subprocess.run(
        [*command, "--toolchain", release, "--format", "json"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    found = {
        (run["case"].partition("::")[2], run["target"]): said(run["claims"]) for run in json.loads(done.stdout)["runs"]
    }
    expected = {
        (case, arch): {key: of[release][key] for key in ("verdict", "rules") if key in of[release]}
        for case, archs in EXPECTED.items()
        for arch, of in archs.items()
    }
    assert found == expected


def said(claims: list[dict[str, Any]]) -> dict[str, Any]:
    """The verdict of a run, the worst of its claims' (none where the release does not lower it), and the rules, also of
    what another claim explains.
    """
    verdicts = {claim["verdict"] for claim in claims}
    every = [one for claim in claims for one in (claim, *claim["also"])]
    rules = sorted({claim["finding"]["rule"] for claim in every if claim["finding"]})
    worst = next((verdict for verdict in WORST if verdict in verdicts), "none")
    return {"verdict": worst, "rules": rules} if rules else {"verdict": worst}
