"""Test where a run took place."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tlcheck.run import circumstances


def git(folder: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=a", "-c", "user.email=a@b")
    command = ["git", "-C", str(folder), *identity, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def test_the_commit_of_a_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GIT_COMMIT", raising=False)
    assert circumstances.commit(tmp_path) == ""
    git(tmp_path, "init", "-q")
    (tmp_path / "kernel.py").write_text("1")
    git(tmp_path, "add", "kernel.py")
    git(tmp_path, "commit", "-q", "-m", "one")
    head = git(tmp_path, "rev-parse", "HEAD")
    assert circumstances.commit(tmp_path) == head
    (tmp_path / "kernel.py").write_text("2")
    assert circumstances.commit(tmp_path) == f"{head}+"
    monkeypatch.setenv("GIT_COMMIT", "abc")
    assert circumstances.commit(tmp_path) == "abc"


def test_clocks_as_nvidia_smi_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert circumstances.clocks() == {}
    tool = tmp_path / "nvidia-smi"
    tool.write_text("#!/bin/sh\necho '580.159.04, P0, 1980 MHz, 3201 MHz, 1980 MHz, 40, 122.88 W'\n")
    tool.chmod(0o755)
    assert circumstances.clocks()["clocks.sm"] == "1980 MHz"
    assert circumstances.clocks()["driver_version"] == "580.159.04"
