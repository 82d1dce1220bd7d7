"""What all tests share: no test reads or writes the user's own cache unless it asks for an installed toolchain."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache of the test's own."""
    root = tmp_path / "cache"
    monkeypatch.setenv("TLCHECK_CACHE", str(root))
    return root


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Results must not depend on the environment that is active where the tests run."""
    for variable in ("VIRTUAL_ENV", "CONDA_PREFIX", "PYTHONPATH", "FORCE_COLOR"):
        monkeypatch.delenv(variable, raising=False)
