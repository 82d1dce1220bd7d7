"""A gate and an install of real releases, killed at ten random moments each: the next run is right."""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from tlcheck.files import cache_root
from tlcheck.toolchain.releases import PINNED

ROOT = Path(__file__).parents[2]
TLCHECK = [sys.executable, "-m", "tlcheck"]
GATE = ["gate", "--from", "0.1.7", "--to", PINNED, "cases/attention_sink_bwd.py", "--arch", "sm_90", "--format", "json"]
KILLS = 10


def run(*argv: str, env: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*TLCHECK, *argv], cwd=ROOT, env={**os.environ, **env}, capture_output=True, text=True, check=False
    )


def kill(*argv: str, env: Mapping[str, str], after: float) -> None:
    """End tlcheck, and only it, at some moment."""
    with subprocess.Popen(
        [*TLCHECK, *argv],
        cwd=ROOT,
        env={**os.environ, **env},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        time.sleep(after)
        process.send_signal(signal.SIGKILL)


def without_progress(text: str) -> str:
    """Return what else was said: a slow machine is told after each 30 s how far the command is."""
    return re.sub(r"^tlcheck: (.*, )?\d+ s: .*\n", "", text, flags=re.MULTILINE)


def without_times(report: str) -> str:
    """A report without what differs from run to run."""
    return re.sub(r"lowering takes [^\"]* of processor time|\"seconds\": [0-9.]+", "", report)


def test_a_gate(tmp_path: Path) -> None:
    """The results of the user's toolchains are kept in a cache of the test's own."""
    home = tmp_path / "cache"
    home.mkdir()
    (home / "toolchains").symlink_to(cache_root() / "toolchains")
    (home / "torch").symlink_to(cache_root() / "torch")
    env = {"TLCHECK_CACHE": str(home), "TLCHECK_NO_CACHE": ""}
    started = time.monotonic()
    reference = run(*GATE, "--no-cache", env=env)
    took = time.monotonic() - started
    expected = without_times(reference.stdout)
    moments = random.Random(1)
    for number in range(KILLS):
        if number % 3 == 0:
            run("cache", "clean", env=env)
        kill(*GATE, env=env, after=moments.uniform(0.2, 1.1) * took)
        done = run(*GATE, env=env)
        assert (done.returncode, without_progress(done.stderr)) == (reference.returncode, "")
        assert without_times(done.stdout) == expected


def test_an_install(tmp_path: Path) -> None:
    """From nothing, torch included; then of the release alone."""
    env = {"TLCHECK_CACHE": str(tmp_path / "cache")}
    install, moments = ("toolchain", "install", "0.1.7"), random.Random(2)
    took = 60.0  # seconds: about what an install without a download takes
    for _ in range(KILLS):
        kill(*install, env=env, after=moments.uniform(0.5, took))
        if run("toolchain", "path", "0.1.7", env=env).returncode == 0:
            _lowers(env)
            run("toolchain", "remove", "0.1.7", env=env)
    assert run(*install, env=env).returncode == 0
    _lowers(env)


def _lowers(env: Mapping[str, str]) -> None:
    done = run("check", "cases/atomics.py::tile_x2@0.1.7", "--arch", "sm_90", env=env)
    assert done.returncode == 0, done.stdout + done.stderr
