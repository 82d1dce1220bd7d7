"""Test where reports go that cannot go there: a full disk, a folder that cannot be written, names with blanks."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.cpu.checking import RIGHT, WRONG
from tlcheck.cli.main import main
from tlcheck.errors import UsageError
from tlcheck.files import make_folder, require_place, save

PYTHON = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
# Every command that prints something without a toolchain, with saved snapshots.
PRINTS: Sequence[Sequence[str]] = (
    ("check", "{wrong}", "--quick"),
    ("check", "{wrong}", "--quick", "--format", "json"),
    ("dump", "{wrong}"),
    ("diff", "{wrong}", "{right}"),
    ("layout", "{right}"),
    ("explain", "TLA001"),
    ("explain",),
    ("cache", "info"),
    ("toolchain", "list"),
    ("doctor",),
)
# Every command that writes a file from them.
REPORTS: Sequence[Sequence[str]] = (
    ("check", "{wrong}", "--quick", "-o", "{place}"),
    ("check", "{wrong}", "--quick", "--format", "sarif", "-o", "{place}"),
)
WRITES: Sequence[Sequence[str]] = (
    *REPORTS,
    ("dump", "{wrong}", "--at", "intent", "-o", "{place}"),
)


def filled(argv: Sequence[str], place: object = "") -> list[str]:
    return [word.format(wrong=WRONG, right=RIGHT, place=place) for word in argv]


def into(place: str, argv: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Run a command with its standard output there."""
    with Path(place).open("w") as stdout:
        return subprocess.run(
            [sys.executable, "-m", "tlcheck", *argv], stdout=stdout, stderr=subprocess.PIPE, text=True, env=PYTHON
        )


def one_line(said: str) -> str:
    """The line that is said; a loaded machine says how far it is as well."""
    said = re.sub(r"^tlcheck: (.*, )?\d+ s(: .*)?\n", "", said, flags=re.MULTILINE)
    assert said.count("\n") == 1, said
    assert said.startswith("tlcheck: error: ")
    return said


@pytest.mark.slow
@pytest.mark.parametrize("argv", PRINTS, ids=" ".join)
def test_a_full_disk_is_one_line_and_2(argv: Sequence[str], cache: Path) -> None:
    done = into("/dev/full", filled(argv))
    assert (done.returncode, one_line(done.stderr)) == (2, "tlcheck: error: cannot write: No space left on device\n")


@pytest.mark.slow
def test_help_into_a_full_disk(cache: Path) -> None:
    for argv in (["--version"], ["golden", "check", "--help"]):
        done = into("/dev/full", argv)
        assert (done.returncode, one_line(done.stderr)) == (
            2,
            "tlcheck: error: cannot write: No space left on device\n",
        ), argv


@pytest.mark.parametrize("argv", WRITES, ids=" ".join)
def test_files_are_whole_or_not_there(argv: Sequence[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(filled(argv, "/dev/full")) == 2
    assert one_line(capsys.readouterr().err) == "tlcheck: error: /dev/full: No space left on device\n"
    assert not Path("/dev/full").is_file()
    place = tmp_path / "ein Ordner" / "Bericht für Müller.txt"
    place.parent.mkdir()
    assert main(filled(argv, place)) in (0, 1)
    assert place.stat().st_size > 0
    assert [file.name for file in place.parent.iterdir()] == [place.name]


@pytest.mark.parametrize("argv", REPORTS, ids=" ".join)
def test_a_folder_that_cannot_be_written(
    argv: Sequence[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(filled(argv, tmp_path / "missing" / "report")) == 2
    assert "missing" in one_line(capsys.readouterr().err)
    monkeypatch.setattr(os, "access", lambda path, mode: not (mode & os.W_OK))  # as root too
    assert main(filled(argv, tmp_path / "report")) == 2
    assert "Permission denied" in one_line(capsys.readouterr().err)
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_fills_up_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A small file system, made of a limit on the size of files."""
    (tmp_path / "report").write_text("before")
    code = "\n".join(
        [
            "import resource, signal, sys",
            "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)",
            "resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))",
            "from pathlib import Path; from tlcheck.files import save",
            "save(Path(sys.argv[1]), 'x' * 1000)",
        ]
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "report")], capture_output=True, text=True, env=PYTHON
    )
    assert "UsageError" in done.stderr
    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [("report", "before")]


def test_links_and_folders(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real" / "report")
    save(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real" / "report").read_text() == "new"
    require_place(tmp_path / "link")
    make_folder(tmp_path / "a" / "b")
    with pytest.raises(UsageError, match="no folder"):
        require_place(tmp_path / "c" / "report")
    with pytest.raises(UsageError, match="File exists"):
        make_folder(tmp_path / "real" / "report")


SETTLED = """
check
gate --to pinned
golden check
golden page -o r.html
capture k.py -o o
run
dump k.py
layout k.py
bisect k.py --passes
diff k.py k.py
init
toolchain install
"""


@pytest.mark.parametrize("command", SETTLED.strip().splitlines())
def test_a_broken_configuration_is_one_line(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], cache: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("k.py").write_text("import tilelang\n")
    for text in "[tool.tlcheck", '[tool.tlcheck]\ntoolchian = "1"', "[tool.tlcheck]\nblocks = 0":
        Path("pyproject.toml").write_text(text)
        assert main(command.split()) == 2, text
        assert "pyproject.toml" in one_line(capsys.readouterr().err)
