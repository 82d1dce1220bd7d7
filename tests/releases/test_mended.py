"""Bugs of TileLang on sm_100 and in clusters: refuted in a release that has them, accepted in one that has not."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.releases.test_execution import said

ROOT = Path(__file__).parents[2]
FILE = "tests/releases/mended.py"
AGREED: dict[str, Any] = {"verdict": "agreed"}
ILLEGAL = {"verdict": "refuted", "rules": ["TLL001"]}
RACE = {"verdict": "refuted", "rules": ["TLR001"]}


@pytest.mark.parametrize(
    ("name", "release", "expected"),
    [
        ("ts", "0.1.9", ILLEGAL),
        ("ts", "0.1.12", AGREED),
        ("zeros", "0.1.12", RACE),
        ("zeros", "0.1.14", AGREED),
        ("odd", "0.1.12", ILLEGAL),
        ("odd", "0.1.14", AGREED),
        ("phases", "0.1.14", {"verdict": "refuted", "rules": ["TLL002", "TLO002", "TLR001"]}),
        ("words", "0.1.12", {"verdict": "refuted", "rules": ["TLO001"]}),
        ("words", "0.1.14", AGREED),
        ("columns", "0.1.13", {"verdict": "refuted", "rules": ["TLL002"]}),
        ("columns", "0.1.14", AGREED),
        ("bytes_", "0.1.12", {"verdict": "undecided"}),
        ("bytes_", "0.1.14", AGREED),
        ("tail", "0.1.12", ILLEGAL),
        ("tail", "0.1.14", AGREED),
        ("tile", "0.1.12", ILLEGAL),
        ("tile", "0.1.14", AGREED),
        ("rows_", "0.1.12", {"verdict": "refuted", "rules": ["TLO002"]}),
        ("rows_", "0.1.14", AGREED),
        ("stages", "0.1.12", ILLEGAL),
        ("stages", "0.1.14", AGREED),
        ("half", "0.1.12", {"verdict": "refuted", "rules": ["TLL002"]}),
        ("half", "0.1.14", AGREED),
        ("halves", "0.1.12", {"verdict": "refuted", "rules": ["TLO002"]}),
        ("halves", "0.1.14", AGREED),
        ("lower", "0.1.14", {"verdict": "refuted", "rules": ["TLO001"]}),
        ("lower", "0.1.15", AGREED),
        ("stored", "0.1.12", {"verdict": "refuted", "rules": ["TLR002"]}),
        ("stored", "0.1.15", AGREED),
        ("early", "0.1.9", {"verdict": "refuted", "rules": ["TLO002", "TLR001"]}),
        ("early", "0.1.12", AGREED),
        ("behind", "0.1.11", {"verdict": "refuted", "rules": ["TLO001"]}),
        ("behind", "0.1.12", AGREED),
        ("pair", "0.1.15", AGREED),
        ("pairs", "0.1.15", {"verdict": "refuted", "rules": ["TLL002"]}),
    ],
)
def test_a_release_with_the_bug_is_refuted_and_no_other(name: str, release: str, expected: dict[str, Any]) -> None:
    assert verdicts(release)[name] == expected


@cache
def verdicts(release: str) -> dict[str, dict[str, Any]]:
    """Return the verdicts on a release's kernels, by case; `none` of one that it does not build."""
    command = [sys.executable, "-m", "tlcheck", "check", FILE, "--toolchain", release, "--no-why", "--format", "json"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return {run["case"].partition("::")[2]: said(run["claims"]) for run in json.loads(done.stdout)["runs"]}
