"""A command that is killed at any moment, and two at once: the next run is right."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cpu.worker.processes import children_of, wait_until_gone
from tlcheck.cache.store import Cache

KERNELS = """
import tilelang
import helper

def kernel(n):
    @tilelang.jit
    def made():
        sum(range(300_000))
        raise ValueError(f"{n} {helper.SIZE}")
    return made

from tlcheck.case import Case
""" + "".join(f"case_{n} = Case(kernel({n}))\n" for n in range(6))


@pytest.fixture
def command(project: Path, site: Path, tmp_path: Path) -> list[str]:
    """Check 12 runs with the stand-in, which is an interpreter of its own; no progress, however busy the machine is."""
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH={site} exec {sys.executable} "$@"\n')
    python.chmod(0o755)
    (project / "k.py").write_text(KERNELS)
    return [sys.executable, "-m", "tlcheck", "check", "k.py", "--toolchain", str(python), "--format", "json", "--quiet"]


def report(command: list[str]) -> list[str]:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (3, "")
    return [run["failure"]["message"] for run in json.loads(done.stdout)["runs"]]


def expected(size: int) -> list[str]:
    return [f"ValueError: {n} {size}" for n in range(6) for _ in range(2)]


@pytest.mark.slow
def test_kills(command: list[str], project: Path, cache: Path) -> None:
    """Before the first, between and after the last of its 13 answers were kept."""
    jobs = Cache(cache / "results" / "jobs")
    for number, wanted in enumerate((0, 5, 12)):
        Cache(cache / "results").clear()
        (project / "helper.py").write_text(f"SIZE = {number}\n")
        with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
            while jobs.size()[0] < wanted:
                assert process.poll() is None
                time.sleep(0.002)
            left = children_of(process.pid)
            process.send_signal(signal.SIGKILL)
        assert process.returncode == -signal.SIGKILL
        assert report(command) == expected(number)
        assert not wait_until_gone(left)


@pytest.mark.slow
def test_two_at_once(command: list[str], project: Path) -> None:
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, env={**os.environ}) for _ in range(2)]
    for process in both:
        out, _ = process.communicate(timeout=120)
        assert [run["failure"]["message"] for run in json.loads(out)["runs"]] == expected(64)
    assert report(command) == expected(64)
