"""With a real toolchain: what was kept is what would be made again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cpu.checking import installed
from tlcheck.cache.store import Cache
from tlcheck.cli import lowered
from tlcheck.cli.main import main
from tlcheck.lower import session
from tlcheck.toolchain.releases import PINNED

pytestmark = pytest.mark.toolchain

KERNEL = """
import tilelang.language as T
from size import SIZE

@T.prim_func
def kernel(A: T.Tensor((SIZE,), "float32"), B: T.Tensor((SIZE,), "float32")):
    with T.Kernel(1, threads=64) as _:
        for i in T.Parallel(SIZE):
            T.atomic_add(B[i], A[i])
"""


@pytest.fixture(autouse=True)
def _project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel with a helper, and results of its own for the user's toolchains."""
    installed(PINNED)
    (tmp_path / "k.py").write_text(KERNEL)
    (tmp_path / "size.py").write_text("SIZE = 256\n")
    monkeypatch.chdir(tmp_path)
    for module in (session, lowered):
        monkeypatch.setattr(module, "open_cache", lambda wanted: Cache(tmp_path / "results") if wanted else Cache(None))


def report(capsys: pytest.CaptureFixture[str], folder: str, *options: str) -> tuple[str, bytes]:
    """The report, and the snapshot that was saved."""
    argv = ["check", "k.py::kernel", "--arch", "sm_90", "--format", "json", "--save", folder]
    assert main([*argv, *options]) == 0
    (saved,) = Path(folder).iterdir()
    return capsys.readouterr().out, saved.read_bytes()


def test_a_warm_run_starts_no_worker_and_says_the_same(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*args: object) -> None:
        raise AssertionError("started")

    plain = report(capsys, "plain", "--no-cache")
    assert report(capsys, "cold") == plain
    with monkeypatch.context() as warm:
        warm.setattr("tlcheck.lower.session.Worker.start", refuse)
        warm.setattr("tlcheck.verdicts.judge._Process.__init__", refuse)
        assert report(capsys, "warm") == plain
    Path("size.py").write_text("SIZE = 512\n")
    changed = report(capsys, "changed")
    assert changed == report(capsys, "fresh", "--no-cache")
    assert changed[1] != plain[1]
    assert json.loads(changed[0])["summary"]["proved"] == 1
