"""The pictures of the README and of docs/finding.md are what the commands make now."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

MAKE = Path(__file__).parents[3] / "docs" / "pictures" / "make.py"


@pytest.fixture(scope="module")
def make() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_pictures", MAKE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_finding_is_as_the_command_shows_it(make: ModuleType) -> None:
    drawn = make.finding()
    assert "TLA001" in drawn
    assert "element&#160;B[0,&#160;1]" in drawn
    assert re.findall(r"https?://[^\"]+", drawn) == ["http://www.w3.org/2000/svg"]
    assert make.FINDING.read_text() == drawn, "run `make docs`"
    assert f"pictures/{make.FINDING.name}" in (MAKE.parents[1] / "finding.md").read_text()


def test_the_page_is_as_the_command_makes_it(make: ModuleType) -> None:
    """Browsers draw differently, so that what is compared is all that the page shows."""
    picture = make.PAGE.read_bytes()
    assert picture.startswith(b"\x89PNG\r\n")
    assert tuple(int.from_bytes(picture[at : at + 4], "big") for at in (16, 20)) == make.SIZE
    assert make.shown_by(picture) == make.digest(make.page()), "run `make docs` where there is a Chromium"
    assert f"docs/pictures/{make.PAGE.name}" in (MAKE.parents[2] / "README.md").read_text()
