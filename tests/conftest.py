"""Define what all tests share: no test reads or writes the user's own cache unless it asks for an installed toolchain,
and none keeps results unless it asks for that.
"""

from __future__ import annotations

import os

# Before NumPy is imported. There is a test process for each processor, and in each of them several threads for products
# of small matrices would take twice the time; judging processes have one too.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")  # of torch

import gc
import signal
import sys
from collections.abc import Generator, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests import warm
from tlcheck.cli import checking, progress
from tlcheck.files import cache_root

# A shell without job control starts what runs in the background with Ctrl-C ignored, and programs started here would
# inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Until all tests are collected: hardly anything of what is read then is ever left.
gc.disable()

# Tests start hundreds of interpreters: where byte code is never kept, compiling the same files is a part of their work.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# The same examples in every run, on a busy machine too. A random number generator as input is a large one.
_SLOW = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example, HealthCheck.filter_too_much)
settings.register_profile("same", derandomize=True, deadline=None, suppress_health_check=_SLOW)
settings.load_profile("same")


_USERS_CACHE = cache_root()  # before a test names another


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache of the test's own."""
    root = tmp_path / "cache"
    monkeypatch.setenv("TLCHECK_CACHE", str(root))
    return root


@pytest.fixture(scope="session", autouse=True)
def _plain_environment() -> Iterator[None]:
    """Results must not depend on the environment that is active where the tests run, nor on how busy it is.

    Commands of one test process after the other use the same workers and judging processes.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(progress, "PAUSE", 1e6)
        patch.setattr(checking, "WHY_SECONDS", -1.0)  # a history takes workers of other releases
        patch.setenv("TLCHECK_NO_CACHE", "1")
        for variable in ("VIRTUAL_ENV", "CONDA_PREFIX", "PYTHONPATH", "FORCE_COLOR"):
            patch.delenv(variable, raising=False)
        warm.install(patch)
        yield
    warm.end()


@pytest.fixture
def fresh_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands start workers and judging processes of their own, see warm.py."""
    warm.uninstall(monkeypatch)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Fail what is skipped where TESTS_WHOLE is set (in CI), unless a GPU is what is missing, or is there."""
    report = yield
    if report.skipped and os.environ.get("TESTS_WHOLE") and "GPU" not in str(report.longrepr):
        report.outcome, report.longrepr = "failed", f"skipped: {report.longrepr}"
    return report


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run those tests of a folder that need a toolchain in one process: they share workers and what is set up once.

    All of them are slow: a real compiler takes seconds to start, and a file's kernels are lowered for all of its tests.
    Those in a browser are slow, too.
    """
    for item in items:
        if "browser" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.slow)
        if item.get_closest_marker("toolchain"):
            item.add_marker(pytest.mark.slow)
            if not item.get_closest_marker("xdist_group"):
                item.add_marker(pytest.mark.xdist_group(item.nodeid.partition("::")[0].rpartition("/")[0]))


def pytest_collection_finish() -> None:
    """Collect garbage again, but leave out what stays for the whole session: that is most of what there is."""
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session")
def _shared_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The user's toolchains and an empty place for results, the same for all of xdist's processes."""
    base = tmp_path_factory.getbasetemp()
    root = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "shared-cache"
    root.mkdir(exist_ok=True)
    for name in ("toolchains", "torch"):
        with suppress(FileExistsError):
            (root / name).symlink_to(_USERS_CACHE / name)
    return root


@pytest.fixture
def kept_results(_shared_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lower each kernel once in this run of the tests: who comes next takes the answer, in whichever process.

    For tests of what is made of a snapshot; those of lowering itself do without.
    """
    monkeypatch.delenv("TLCHECK_NO_CACHE")
    monkeypatch.setenv("TLCHECK_CACHE", str(_shared_cache))
