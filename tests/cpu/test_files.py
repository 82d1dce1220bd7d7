"""Files that are whole or not there, and places that one process changes at a time."""

from __future__ import annotations

import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tlcheck.errors import UsageError
from tlcheck.files import cache_root, held, replace_all, save

# Holds the lock of argv[1] while a command that inherits it, as pip does, writes until argv[2]/stop is there.
HOLDER = """
import subprocess, sys
from pathlib import Path
from tlcheck.files import held
writer = "echo writing; until [ -e stop ]; do sleep 0.02; done; touch stopped"
with held(Path(sys.argv[1])) as lock:
    subprocess.run(["sh", "-c", writer], cwd=sys.argv[2], pass_fds=[lock])
"""


def test_cache_root_prefers_its_own_variable(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    monkeypatch.delenv("TLCHECK_CACHE", raising=False)
    assert cache_root() == tmp_path / "xdg" / "tlcheck"
    monkeypatch.setenv("TLCHECK_CACHE", str(tmp_path / "own"))
    assert cache_root() == tmp_path / "own"


def test_cache_root_ignores_a_relative_xdg_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TLCHECK_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert cache_root() == Path.home() / ".cache" / "tlcheck"


@pytest.mark.parametrize("kill", [False, True], ids=["ends", "is killed"])
def test_a_lock_is_held_until_the_last_writer_ends(tmp_path: Path, kill: bool) -> None:
    """Even when its holder is killed: the command that it started goes on writing."""
    place = tmp_path / "lock"
    command = [sys.executable, "-c", HOLDER, str(place), str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "writing\n"
        if kill:
            holder.send_signal(signal.SIGKILL)
            holder.wait()
        with held(place, (tmp_path / "stop").touch):  # only a wait lets the writer stop
            assert (tmp_path / "stopped").exists()


def test_a_free_lock_is_taken_without_waiting(tmp_path: Path) -> None:
    for _ in range(2):
        with held(tmp_path / "lock", lambda: pytest.fail("waited for nobody")):
            pass


def test_a_place_in_use_is_given_up_after_a_while(tmp_path: Path) -> None:
    with held(tmp_path), pytest.raises(UsageError, match="in use by another tlcheck"), held(tmp_path, patience=0.1):
        pytest.fail("held twice")


def test_a_lock_that_cannot_be_made_is_a_line_of_text(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="file: File exists"), held(tmp_path / "file" / "lock"):
        pytest.fail("held nothing")


def test_a_file_that_is_overwritten_keeps_its_mode(tmp_path: Path) -> None:
    file = tmp_path / "pyproject.toml"
    file.write_text("old")
    file.chmod(0o750)
    save(file, "new")
    assert (file.read_text(), file.stat().st_mode & 0o777) == ("new", 0o750)


def test_all_files_change_or_none(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("old")
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="nothing was changed"):
        replace_all({tmp_path / "a": "new", tmp_path / "file" / "b": "new"})
    assert (tmp_path / "a").read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "file"]


def test_a_write_that_finds_no_room_leaves_no_half_file(tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    file.write_text("old")
    with pytest.raises(UsageError, match=f"{file}: File too large; nothing was changed"), _room_for(10):
        replace_all({tmp_path / "small": "new", file: "x" * 100})
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("report.json", "old")]


@contextmanager
def _room_for(size: int) -> Iterator[None]:
    """Have writes beyond `size` bytes of a file fail, after those before."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
