"""The projects of examples/: each command of their pages does what it should."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest

from tests.cpu.checking import installed
from tlcheck.cli.main import main
from tlcheck.toolchain.releases import PINNED

EXAMPLES = Path(__file__).parents[2] / "examples"
NAMES = ("gate", "goldens", "kernel", "library", "reference")
ENDS = {  # of each command's output, in turn
    "gate": ["PASS"],
    "goldens": ["1 as approved"],
    "kernel": ["1 ok"],
    "library": ["2 ok", "1 ok"],
    "reference": ["1 ok", "agrees"],
}


def commands(name: str) -> list[list[str]]:
    """The words of each command of a page."""
    text = (EXAMPLES / name / "README.md").read_text(encoding="utf-8")
    return [shlex.split(line) for line in re.findall(r"^\$ tlcheck (.*)$", text, re.MULTILINE)]


def test_each_project_has_a_page_and_is_in_the_index() -> None:
    index = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    folders = sorted(folder.name for folder in EXAMPLES.iterdir() if folder.is_dir())
    assert folders == sorted(NAMES) == sorted(re.findall(r"\((\w+)/README\.md\)", index))
    assert all(commands(name) for name in NAMES)


@pytest.mark.slow
@pytest.mark.toolchain
@pytest.mark.usefixtures("kept_results")
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.xdist_group("0.1.14") if name == "gate" else ()) for name in NAMES]
)
def test_its_commands_end_well(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for release in ("0.1.14", PINNED) if name == "gate" else (PINNED,):
        installed(release)
    shutil.copytree(EXAMPLES / name, tmp_path / name)
    monkeypatch.chdir(tmp_path / name)
    for words, end in zip(commands(name), ENDS[name], strict=True):
        assert main(words) == 0
        assert end in capsys.readouterr().out.splitlines()[-1]
