"""docs/pages.md says what is so: its keys are those of the page."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path

PAGE = (Path(__file__).parents[3] / "docs" / "pages.md").read_text(encoding="utf-8")


def test_its_keys_are_those_of_the_page() -> None:
    script = (files("tlcheck.page") / "assets" / "page.js").read_text(encoding="utf-8")
    handled = set(re.findall(r'(?:[{,]|^)\s*"?([a-z/?])"?: (?:\(\)|help|flip)', script, re.MULTILINE))
    table = PAGE.partition("| key |")[2].partition("\n\n")[0]
    told = {key for key in re.findall(r"`(.)`", table) if not key.isdigit()}
    assert told == handled
