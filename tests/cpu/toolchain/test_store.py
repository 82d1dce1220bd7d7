"""Folders that are complete or do not count, and their locks."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tlcheck.toolchain import store

# Holds the lock of argv[1] while a command that inherits it, as pip does, writes until argv[2]/stop is there.
HOLDER = """
import subprocess, sys
from pathlib import Path
from tlcheck.toolchain import store
writer = "echo writing; until [ -e stop ]; do sleep 0.02; done; touch stopped"
with store.locked(Path(sys.argv[1])) as lock:
    subprocess.run(["sh", "-c", writer], cwd=sys.argv[2], pass_fds=[lock])
"""


def test_cache_root_prefers_its_own_variable(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    monkeypatch.delenv("TLCHECK_CACHE", raising=False)
    assert store.cache_root() == tmp_path / "xdg" / "tlcheck"
    monkeypatch.setenv("TLCHECK_CACHE", str(tmp_path / "own"))
    assert store.cache_root() == tmp_path / "own"


def test_cache_root_ignores_a_relative_xdg_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TLCHECK_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert store.cache_root() == Path.home() / ".cache" / "tlcheck"


def test_a_stamp_is_read_back(tmp_path: Path) -> None:
    store.write_stamp(tmp_path, {"name": "0.1.7"})
    assert store.read_stamp(tmp_path) == {"name": "0.1.7"}


@pytest.mark.parametrize("text", ["", '{"name": ', "[]"])
def test_a_damaged_stamp_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / store.STAMP).write_text(text)
    assert store.read_stamp(tmp_path) is None


def test_a_stamp_written_halfway_is_none(tmp_path: Path) -> None:
    (tmp_path / f"{store.STAMP}.partial").write_text('{"name": "0.1.7"}')
    assert store.read_stamp(tmp_path) is None


def test_discard_takes_the_stamp_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "toolchain"
    folder.mkdir()
    store.write_stamp(folder, {})

    def interrupted(_: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("shutil.rmtree", interrupted)
    with pytest.raises(KeyboardInterrupt):
        store.discard(folder)
    assert folder.exists()
    assert store.read_stamp(folder) is None


def test_discard_of_nothing(tmp_path: Path) -> None:
    store.discard(tmp_path / "nothing")


@pytest.mark.parametrize("kill", [False, True], ids=["ends", "is killed"])
def test_a_lock_is_held_until_the_last_writer_ends(tmp_path: Path, kill: bool) -> None:
    """Even when its holder is killed: the command that it started goes on writing."""
    folder = tmp_path / "toolchain"
    command = [sys.executable, "-c", HOLDER, str(folder), str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "writing\n"
        if kill:
            holder.send_signal(signal.SIGKILL)
            holder.wait()
        with store.locked(folder, (tmp_path / "stop").touch):  # only a wait lets the writer stop
            assert (tmp_path / "stopped").exists()


def test_a_free_lock_is_taken_without_waiting(tmp_path: Path) -> None:
    for _ in range(2):
        with store.locked(tmp_path / "toolchain", lambda: pytest.fail("waited for nobody")):
            pass
