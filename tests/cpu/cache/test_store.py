"""Entries are whole or not there, whatever happens."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tlcheck.cache.store import Cache, key_of, open_cache

WRITER = """
import sys
from pathlib import Path
from tlcheck.cache.store import Cache, key_of
cache = Cache(Path(sys.argv[1]))
print("begin", flush=True)
while True:
    for number in range(20):
        cache.put("kind", key_of(number), str(number).encode() * 50_000)
"""


def test_what_was_put_is_got(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    assert cache.get("kind", key_of("a")) is None
    cache.put("kind", key_of("a"), b"one")
    cache.put("kind", key_of("a"), b"two")
    assert cache.get("kind", key_of("a")) == b"two"
    assert cache.get("other", key_of("a")) is None


@pytest.mark.parametrize(
    "damage", [lambda c: c[:-1], lambda c: b"", lambda c: c[:70] + b"?" + c[71:], lambda c: c + b"x"]
)
def test_a_damaged_entry_is_none(tmp_path: Path, damage: object) -> None:
    cache = Cache(tmp_path)
    cache.put("kind", key_of(1), b"content" * 100)
    (file,) = (path for path in tmp_path.rglob("*") if path.is_file())
    file.write_bytes(damage(file.read_bytes()))  # type: ignore[operator]
    assert cache.get("kind", key_of(1)) is None


@pytest.mark.slow
def test_writers_killed_at_any_time_leave_whole_entries(tmp_path: Path) -> None:
    """Two at once, while a third process trims and reads."""
    cache, moments = Cache(tmp_path), random.Random(7)
    found = 0
    for _ in range(10):
        writers = [
            subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE) for _ in range(2)
        ]
        for writer in writers:
            assert writer.stdout is not None
            assert writer.stdout.readline() == b"begin\n"
        time.sleep(moments.uniform(0, 0.05))
        cache.trim(100_000_000)
        for writer in writers:
            with writer:
                writer.send_signal(signal.SIGKILL)
        contents = {number: cache.get("kind", key_of(number)) for number in range(20)}
        assert all(content in (None, str(number).encode() * 50_000) for number, content in contents.items())
        found += sum(content is not None for content in contents.values())
    assert found > 20


def test_what_was_not_used_for_longest_goes_first(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    for number in range(4):
        cache.put("kind", key_of(number), os.urandom(1000))
        os.utime(cache._file(tmp_path, "kind", key_of(number)), (number, number))
    assert cache.get("kind", key_of(0)) is not None  # used now
    cache.trim(2200)
    left = [number for number in range(4) if cache.get("kind", key_of(number)) is not None]
    assert left == [0, 3]
    assert cache.size()[0] == 2


def test_temporary_files_of_the_dead_are_removed(tmp_path: Path) -> None:
    old, new = tmp_path / ".tlcheck-old", tmp_path / ".tmp-new"
    for file in (old, new):
        file.write_bytes(b"half")
    os.utime(old, (1, 1))
    Cache(tmp_path).trim()
    assert (old.exists(), new.exists()) == (False, True)


def test_a_folder_that_cannot_be_written_keeps_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    cache = Cache(tmp_path / "file")
    cache.put("kind", key_of(1), b"content")
    assert cache.get("kind", key_of(1)) is None


def test_switched_off(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert open_cache().folder is None  # TLCHECK_NO_CACHE, in all tests
    monkeypatch.delenv("TLCHECK_NO_CACHE")
    assert open_cache().folder == cache / "results"
    assert open_cache(wanted=False).folder is None
