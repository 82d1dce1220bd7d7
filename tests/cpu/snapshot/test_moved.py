"""A snapshot whose kernel has moved in its file."""

from __future__ import annotations

import pytest

from tests.cpu.snapshot.recorded import RECORDED, snapshot
from tlcheck.snapshot.codec import dumps, loads
from tlcheck.snapshot.ir import Snapshot
from tlcheck.snapshot.moved import moved
from tlcheck.snapshot.walk import statements


def lines_of(found: Snapshot) -> list[int]:
    """Of all statements in order, 0 where it is not known."""
    return [s.line for function in found.checkpoints.values() for s in statements(function.body)]


@pytest.mark.parametrize("name", RECORDED)
def test_it_has_its_lines_of_now_and_nothing_else_has_changed(name: str) -> None:
    there = snapshot(name)
    then, now = (
        {"file": there.file, "line": there.line, "args": there.args},
        {"file": "other.py", "line": 7, "args": {}},
    )
    lines = {line: 3 * line for line in lines_of(there) if line}
    text = moved(dumps(there), now, lines)
    assert text is not None
    found = loads(text)
    assert (found.file, found.line, found.args) == ("other.py", 7, {})
    assert lines_of(found) == [3 * line for line in lines_of(there)]
    assert moved(text, then, {new: old for old, new in lines.items()}) == dumps(there)
    assert (moved(text, then, {}) is None) == bool(lines)
