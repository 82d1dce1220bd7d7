"""`check --watch` and `check --format html`, on saved snapshots."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.cpu.checking import RIGHT, SAVED, WRONG
from tests.cpu.page.pages import unpacked
from tlcheck.cli.main import main

NO_ATOMIC = SAVED.parent / "wrong" / "sums-0.1.9.snapshot.json"


def test_what_an_edit_touches_is_checked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copyfile(WRONG, "k.json")
    shutil.copyfile(RIGHT, "other.json")
    said: list[str] = []

    def edit(_: float) -> None:
        said.append(capsys.readouterr().out)
        if len(said) == 2:
            raise KeyboardInterrupt
        Path("k.json").write_bytes(RIGHT.read_bytes())

    monkeypatch.setattr("time.sleep", edit)
    assert main(["check", "k.json", "other.json", "--watch", "--quick"]) == 0
    assert ": TLA001 lanes-not-contiguous: " in said[0]
    assert "2 changed" in said[0]
    assert "ok  k.json  sm_90  1 atomic proved" in said[1]
    assert "other.json" not in said[1]
    assert "1 changed" in said[1]


def test_proofs_do_not_tell_of_kernels_that_only_executing_decides(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def leave(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("time.sleep", leave)
    assert main(["check", str(NO_ATOMIC), "--watch"]) == 1
    said = capsys.readouterr().out
    assert said.startswith("proofs ")
    assert ": 0 changed\n" in said
    assert "not decided" not in said
    assert "1 bug in TileLang" in said


def test_watching_has_no_report_to_keep(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(RIGHT), "--watch", "-o", "report"]) == 2
    assert "--watch reports on the terminal" in capsys.readouterr().err


def test_checked_kernels_as_a_page(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    assert main(["check", str(WRONG), str(RIGHT), "--quick", "--format", "html", "-o", str(page)]) == 1
    data = unpacked(page.read_text())
    wrong, right = data["entries"]
    assert [[word for word, _ in entry["tags"]] for entry in (wrong, right)] == [["refuted"], ["proved"]]
    assert "TLA001 lanes-not-contiguous" in json.dumps(wrong["remarks"])
    assert {"lower-tile-op", "device-tir", "cuda"} <= {view["name"] for view in wrong["views"]}
