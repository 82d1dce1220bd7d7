"""What all tests share: no test reads or writes the user's own cache unless it asks for an installed toolchain, and
none keeps results unless it asks for that.
"""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# A shell without job control starts what runs in the background with Ctrl-C ignored, and programs started here would
# inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

# The same examples in every run, on a busy machine too. A random number generator as input is a large one.
_SLOW = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example, HealthCheck.filter_too_much)
settings.register_profile("same", derandomize=True, deadline=None, suppress_health_check=_SLOW)
settings.load_profile("same")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache of the test's own."""
    root = tmp_path / "cache"
    monkeypatch.setenv("TLCHECK_CACHE", str(root))
    return root


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Results must not depend on the environment that is active where the tests run."""
    monkeypatch.setenv("TLCHECK_NO_CACHE", "1")
    for variable in ("VIRTUAL_ENV", "CONDA_PREFIX", "PYTHONPATH", "FORCE_COLOR"):
        monkeypatch.delenv(variable, raising=False)
