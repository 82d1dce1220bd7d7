"""Names that a reader meets once."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "tlcheck"


def test_no_two_classes_have_one_name() -> None:
    places = defaultdict(list)
    for file in PACKAGE.rglob("*.py"):
        for name in re.findall(r"^ *class (\w+)[:(]", file.read_text(), re.MULTILINE):
            places[name].append(str(file.relative_to(PACKAGE)))
    assert not {name: files for name, files in places.items() if len(files) > 1}
    assert len(places) > 300
