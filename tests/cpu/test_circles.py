"""Modules that import one another in a circle: none, those for the type checker included."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "tlcheck"


def _modules(room: str) -> dict[str, Path]:
    """The files of a room, by the module's name."""
    paths = (PACKAGE / room).rglob("*.py")
    names = {path: ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts) for path in paths}
    return {name.removesuffix(".__init__"): path for path, name in names.items()}


def _imported(tree: ast.AST) -> Iterator[str]:
    """Yield what a module imports, wherever in it: of a package each name, since that may be a module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
            yield str(node.module)


def _graph(room: str) -> dict[str, set[str]]:
    modules = _modules(room)
    found = {name: set(_imported(ast.parse(path.read_text(encoding="utf-8")))) for name, path in modules.items()}
    packages = {name for name, path in modules.items() if path.name == "__init__.py"}
    return {name: (imported & modules.keys()) - packages - {name} for name, imported in found.items()}


@pytest.mark.parametrize("room", ["execute", "cluster"])
def test_no_modules_import_one_another_in_a_circle(room: str) -> None:
    graph = _graph(room)
    assert len(graph) > 5
    assert sum(map(len, graph.values())) > 5
    TopologicalSorter(graph).prepare()  # raises CycleError, which names the circle


def test_a_circle_is_seen() -> None:
    tree = ast.parse("if TYPE_CHECKING:\n    from tlcheck.execute.memory import cells\nimport tlcheck.execute.events")
    assert {"tlcheck.execute.memory.cells", "tlcheck.execute.events"} <= set(_imported(tree))
