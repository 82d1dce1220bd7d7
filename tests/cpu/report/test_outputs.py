"""Test where reports go."""

from __future__ import annotations

from pathlib import Path
from typing import TextIO

import pytest

from tlcheck.errors import UsageError
from tlcheck.report.outputs import Outputs, Writer, formats


def writer(text: str) -> Writer:
    def write(file: TextIO) -> None:
        file.write(text)

    return write


WRITERS = {name: writer(f"<{name} \ud800>") for name in ("text", "json", "github", "sarif")}


def test_one_format_goes_to_standard_output_or_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Outputs(("json",), None).deliver("gate", {"json": writer("<json>")})
    assert capsys.readouterr().out == "<json>"
    Outputs(("json",), tmp_path / "report").deliver("gate", WRITERS)
    assert (tmp_path / "report").read_text() == "<json \\ud800>"
    assert capsys.readouterr().out == ""


def test_several_go_into_a_folder_and_what_is_read_live_is_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = {**WRITERS, "text": writer("<text>"), "github": writer("<github>")}
    Outputs(formats("text, json,github,json"), tmp_path / "a" / "b").deliver("gate", shown)
    names = sorted(file.name for file in (tmp_path / "a" / "b").iterdir())
    assert names == ["gate.annotations.txt", "gate.json", "gate.txt"]
    assert capsys.readouterr().out == "<text><github>"


def test_an_existing_folder_takes_one_format_too(tmp_path: Path) -> None:
    Outputs(("sarif",), tmp_path).deliver("gate", WRITERS)
    assert (tmp_path / "gate.sarif").is_file()


@pytest.mark.parametrize(
    ("text", "path", "words"),
    [
        ("text,pdf", None, "unknown format 'pdf'"),
        ("text,json", None, "several formats need a folder"),
        ("json", "file/report", "Not a directory"),
        ("text,json", "file", "File exists"),
    ],
)
def test_what_cannot_be_written_is_said_before_anything_runs(
    tmp_path: Path, text: str, path: str | None, words: str
) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match=words):
        Outputs(formats(text), tmp_path / path if path else None)
