"""A result that is kept is found again only while the code is the same that made it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import grimp
import pytest

from tlcheck.cache import code

PACKAGE = Path(code.__file__).parents[1]
MEANING = frozenset(
    "algebra cost errors execute facts program prove reasons scope signatures snapshot targets verdicts witness".split()
)
NOTHING_RUNS = {"proofs": {"cost", "execute", "scope"}}  # verdicts/ names them, for where a kernel is executed


@pytest.fixture(scope="module")
def imports() -> grimp.ImportGraph:
    return grimp.build_graph("tlcheck", cache_dir=None)


def _rooms(parts: tuple[str, ...]) -> set[str]:
    return {part.removesuffix(".py") for part in parts} & MEANING


def _imported(room: str, imports: grimp.ImportGraph) -> Iterator[str]:
    """Yield the rooms that the modules of a room import."""
    for module in {f"tlcheck.{room}", *imports.find_descendants(f"tlcheck.{room}")}:
        yield from (name.split(".")[1] for name in imports.find_modules_directly_imported_by(module) if "." in name)


@pytest.mark.parametrize("result", code.PARTS)
def test_what_a_part_imports_is_a_part(result: str, imports: grimp.ImportGraph) -> None:
    """Only packages that say what a kernel means count; the others bring it there."""
    parts = code.PARTS[result]
    assert [part for part in parts if not (PACKAGE / part).exists()] == []
    rooms = _rooms(parts)
    needed = {name for room in rooms for name in _imported(room, imports)} & MEANING
    assert needed - rooms - NOTHING_RUNS.get(result, set()) == set()


def test_each_result_has_a_key_of_its_own() -> None:
    assert len({code.code_of(result) for result in code.PARTS}) == len(code.PARTS)
