"""Folders that are complete or do not count."""

from __future__ import annotations

from pathlib import Path

import pytest

from tlcheck.toolchain import store


def test_a_stamp_is_read_back(tmp_path: Path) -> None:
    store.write_stamp(tmp_path, {"name": "0.1.7"})
    assert store.read_stamp(tmp_path) == {"name": "0.1.7"}


@pytest.mark.parametrize("text", ["", '{"name": ', "[]"])
def test_a_damaged_stamp_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / store.STAMP).write_text(text)
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
