"""The picture in the README is what the command prints now."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

MAKE = Path(__file__).parents[3] / "docs" / "pictures" / "make.py"


def test_the_finding_is_as_the_command_shows_it() -> None:
    spec = importlib.util.spec_from_file_location("make_pictures", MAKE)
    assert spec is not None
    assert spec.loader is not None
    make = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(make)
    drawn = make.finding()
    assert "TLA001" in drawn
    assert "element&#160;B[0,&#160;1]" in drawn
    assert re.findall(r"https?://[^\"]+", drawn) == ["http://www.w3.org/2000/svg"]
    assert make.FINDING.read_text() == drawn, "run `make docs`"
    assert f"docs/pictures/{make.FINDING.name}" in (MAKE.parents[2] / "README.md").read_text()
