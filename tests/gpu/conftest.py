"""Tests on a GPU. They are skipped where there is none, or where a toolchain is not installed.

A toolchain may be given as a path in an environment variable, such as `TLCHECK_GPU_0_1_14=/opt/tilelang/bin/python`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tlcheck.errors import UsageError
from tlcheck.toolchain.releases import PINNED
from tlcheck.toolchain.resolve import resolve

ROOT = Path(__file__).parents[2]
NO_GPU = 3


def find_toolchain(release: str) -> str:
    """Return what to give as a toolchain for a release. Skips the test where it is not there."""
    given = os.environ.get(f"TLCHECK_GPU_{release.replace('.', '_')}", release)
    try:
        resolve(given)
    except UsageError as error:
        pytest.skip(str(error))
    return given


def tlcheck_run(output: Path, *arguments: str | Path, release: str = PINNED) -> tuple[int, dict[str, Any]]:
    """`tlcheck run`: its exit code and report."""
    toolchain = () if "--from" in arguments else ("--toolchain", find_toolchain(release))
    command = [sys.executable, "-m", "tlcheck", "run", *map(str, arguments), *toolchain, "-o", str(output)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode == NO_GPU and "no GPU" in done.stderr:
        pytest.skip(done.stderr.strip())
    assert output.exists(), done.stdout + done.stderr
    return done.returncode, json.loads(output.read_text())


Runner = Callable[..., tuple[int, dict[str, Any]]]


@pytest.fixture
def run(tmp_path: Path) -> Runner:
    """`tlcheck run`, as a function of the arguments."""
    return lambda *arguments, **options: tlcheck_run(tmp_path / "report.json", *arguments, **options)
