"""Pages that show what `tlcheck check` says of a saved snapshot show what it says now."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tlcheck.cli.main import main

ROOT = Path(__file__).parents[3]
BLOCK = re.compile(r"^```\w*\n\$ tlcheck (check [^\n]*\.snapshot\.json[^\n]*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
SHOWN = [
    pytest.param(command, output, id=f"{page.relative_to(ROOT)}: {command}")
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "docs").glob("rules/*.md"))]
    for command, output in BLOCK.findall(page.read_text(encoding="utf-8"))
]


def test_there_are_some() -> None:
    assert len(SHOWN) >= 2


@pytest.mark.slow
@pytest.mark.usefixtures("kept_results")
@pytest.mark.parametrize(("command", "output"), SHOWN)
def test_the_output_is_what_the_command_says(
    command: str, output: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The time that it took is left out."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("COLUMNS", "100")
    main(shlex.split(command))
    said = re.sub(r"  \d+\.\d s$", "", capsys.readouterr().out, flags=re.MULTILINE)
    assert said == output
