"""Folders that are complete or do not count."""

from __future__ import annotations

from pathlib import Path

import pytest

from tlcheck.toolchain import stamped_folders


def test_a_stamp_is_read_back(tmp_path: Path) -> None:
    stamped_folders.write_stamp(tmp_path, {"name": "0.1.7"})
    assert stamped_folders.read_stamp(tmp_path) == {"name": "0.1.7"}


@pytest.mark.parametrize("text", ["", '{"name": ', "[]"])
def test_a_damaged_stamp_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / stamped_folders.STAMP).write_text(text)
    assert stamped_folders.read_stamp(tmp_path) is None


def test_discard_takes_the_stamp_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "toolchain"
    folder.mkdir()
    stamped_folders.write_stamp(folder, {})

    def interrupted(_: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("shutil.rmtree", interrupted)
    with pytest.raises(KeyboardInterrupt):
        stamped_folders.discard(folder)
    assert folder.exists()
    assert stamped_folders.read_stamp(folder) is None


def test_discard_of_nothing(tmp_path: Path) -> None:
    stamped_folders.discard(tmp_path / "nothing")
