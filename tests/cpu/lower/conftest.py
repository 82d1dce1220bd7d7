"""A toolchain that is a stand-in, a project with one kernel file, and a cache of results that is on."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cpu.lower.test_session import Watcher
from tests.cpu.worker.processes import WORKER
from tlcheck.lower import session
from tlcheck.lower.client import Worker
from tlcheck.lower.runs import Lowered
from tlcheck.lower.selection import Selection
from tlcheck.lower.session import Session, Settings
from tlcheck.toolchain.resolve import Toolchain

KERNEL = """
import os
from pathlib import Path

import tilelang
from tilelang.tvm import PrimFunc

import helper

try:
    import optional
except ImportError:
    optional = None

@tilelang.jit
def kernel(n=1):
    said = [n, helper.SIZE, Path("data.txt").read_text(), os.environ.get("BLOCK"), optional and optional.NAME]
    raise ValueError(f"{said}")
"""


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """Return where the stand-in is installed."""
    folder = tmp_path / "site"
    shutil.copytree(WORKER[1]["PYTHONPATH"], folder)
    (folder / "tilelang-0.0.1.dist-info").mkdir()
    (folder / "tilelang-0.0.1.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: tilelang\nVersion: 0.0.1"
    )
    (folder / "tilelang" / "lib").mkdir()
    (folder / "tilelang" / "lib" / "libtilelang.so").write_text("native\n")
    return folder


@pytest.fixture
def project(tmp_path: Path, cache: Path, site: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder: k.py, which says in its error all that it read."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "k.py").write_text(KERNEL)
    (folder / "helper.py").write_text("SIZE = 64\n")
    (folder / "data.txt").write_text("data")
    toolchain = Toolchain("here", "interpreter", Path(sys.executable), {"PYTHONPATH": str(site)})
    monkeypatch.chdir(folder)
    monkeypatch.delenv("TLCHECK_NO_CACHE")
    monkeypatch.setattr(session, "resolve", lambda name, requirements: toolchain)
    return folder


@pytest.fixture
def starts(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """One entry for each worker that was started."""
    started: list[str] = []

    class Counted(Worker):
        def start(self) -> None:
            started.append("worker")
            super().start()

    monkeypatch.setattr(session, "Worker", Counted)
    return started


@pytest.fixture
def lower(tmp_path: Path) -> Callable[..., list[Lowered]]:
    """Lower `k.py::kernel` with these settings."""

    def run(name: str = "kernel", **settings: object) -> list[Lowered]:
        made = Session(Settings(**{"arch": ("sm_90",), **settings}), tmp_path, Watcher())  # type: ignore[arg-type]
        return list(made.lower([Selection(Path("k.py"), name)]))

    return run
