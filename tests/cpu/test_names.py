"""Names that a reader meets once."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "tlcheck"


def test_no_two_classes_have_one_name() -> None:
    places = defaultdict(list)
    for file in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ClassDef):
                places[node.name].append(str(file.relative_to(PACKAGE)))
    assert not {name: files for name, files in places.items() if len(files) > 1}
    assert len(places) > 300
