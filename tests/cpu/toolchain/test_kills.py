"""Installs that are killed at any moment, and several at once: what is believed is whole."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cpu.toolchain.stand_ins import Index, Steps
from tlcheck.toolchain import environment
from tlcheck.toolchain.environment import release_recipe
from tlcheck.toolchain.install import install
from tlcheck.toolchain.releases import TORCH

MANY = {f"tilelang/part{number}.py": f"value = {number}\n" for number in range(200)}
ALL_THERE = "import tilelang, torch, importlib\n" + "".join(
    f"importlib.import_module('tilelang.part{number}')\n" for number in range(200)
)


def start(*releases: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tlcheck", "toolchain", "install", *releases]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)


def wait_for(condition: Callable[[], bool]) -> None:
    """Return as soon as it holds, or fail after a minute."""
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.002)


@pytest.fixture
def release(index: Index) -> str:
    """One of many files, so that a kill finds some written and others not."""
    index.wheel("tilelang", "9.1", {"tilelang/__init__.py": "import torch\n", **MANY}, ("torch",))
    return "9.1"


@pytest.mark.slow
def test_kills_at_random_moments(release: str, reporter: Steps) -> None:
    """Half of them with pip, which goes on without tlcheck otherwise. The first one finds the folder just made."""
    moments = random.Random(3)
    started = time.monotonic()
    install(release_recipe(release), reporter)
    took = time.monotonic() - started
    seen = set[str]()
    for number in range(10 if os.environ.get("EVERY_MOMENT") else 2):
        folder = release_recipe(release).folder
        if environment.find(release_recipe(release)):
            subprocess.run([sys.executable, "-m", "tlcheck", "toolchain", "remove", release], check=True)
        with start(release) as killed:
            if number:
                time.sleep(moments.uniform(0.1, 1.1 * took))
            else:
                wait_for(folder.is_dir)
            (os.killpg if number % 2 else os.kill)(killed.pid, signal.SIGKILL)
        made = environment.find(release_recipe(release))
        seen.add("whole" if made else "partial" if folder.is_dir() else "nothing")
        if made:
            subprocess.run([made.python, "-c", ALL_THERE], check=True)
        made = install(release_recipe(release), reporter)
        subprocess.run([made.python, "-c", ALL_THERE], check=True)
    assert "partial" in seen


@pytest.mark.slow
def test_several_at_once(index: Index, release: str) -> None:
    """Two of the same, and one that shares the torch which neither has yet."""
    index.tilelang("9.2")
    installs = [start(release), start(release), start("9.2")]
    said = [process.communicate(timeout=120) for process in installs]
    assert [process.returncode for process in installs] == [0, 0, 0]
    steps = b"".join(err for _, err in said).decode()
    assert steps.count(f"install torch {TORCH}, shared by all toolchains") == 1
    assert steps.count("make the environment") == 2
    for name in (release, "9.2"):
        made = environment.find(release_recipe(name))
        assert made is not None
        subprocess.run([made.python, "-c", ALL_THERE if name == release else "import tilelang"], check=True)


@pytest.mark.slow
def test_removing_while_another_installs(index: Index, release: str, cache: Path) -> None:
    """Whoever comes second waits: the end is a whole environment or none."""
    with start(release) as installing:
        while not release_recipe(release).folder.is_dir():
            time.sleep(0.01)
        subprocess.run([sys.executable, "-m", "tlcheck", "toolchain", "remove", release], check=True)
        installing.communicate(timeout=60)
    assert not release_recipe(release).folder.exists()
