"""Fixtures of the toolchain tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cpu.toolchain.stand_ins import Index, Steps
from tlcheck.toolchain.releases import TORCH


@pytest.fixture
def index(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> Index:
    """An index with nothing but the torch that every toolchain shares, and an empty cache to install into."""
    folder = tmp_path / "index"
    folder.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    index = Index(folder)
    index.wheel("torch", TORCH, {"torch/__init__.py": "answer = 42\n"})
    return index


@pytest.fixture
def reporter() -> Steps:
    return Steps()
