"""Finds the tests of a project whose imports lead to TileLang, by their text: nothing is imported."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

_WORD = b"tilelang"


@dataclass
class Reach:
    """The imports of a project's files, each read once. root: the project's folder."""

    root: Path
    _known: dict[Path, tuple[bool, tuple[Path, ...]]] = field(default_factory=dict)

    def nearest(self, tests: Sequence[Path]) -> list[Path]:
        """Return the tests from which imports lead to a file that names TileLang, those with the fewest steps first."""
        steps = {test: self._steps(test) for test in tests}
        found = [(number, place, test) for place, (test, number) in enumerate(steps.items()) if number is not None]
        return [test for _, _, test in sorted(found)]

    def _steps(self, test: Path) -> int | None:
        """Return how many imports lie between a test and TileLang; None if none leads there."""
        seen, edge, steps = {test}, [test], 0
        while edge:
            if any(self._read(file)[0] for file in edge):
                return steps
            edge = [*dict.fromkeys(other for file in edge for other in self._read(file)[1] if other not in seen)]
            seen.update(edge)
            steps += 1
        return None

    def _read(self, file: Path) -> tuple[bool, tuple[Path, ...]]:
        """Return whether a file names TileLang, and the files of the project that it imports."""
        if file not in self._known:
            try:
                content = file.read_bytes()
                imported = () if _WORD in content else tuple(dict.fromkeys(self._imported(file, ast.parse(content))))
            except (OSError, SyntaxError, ValueError):
                content, imported = b"", ()
            self._known[file] = _WORD in content, imported
        return self._known[file]

    def _imported(self, file: Path, tree: ast.Module) -> Iterator[Path]:
        folders = (file.parent, self.root, self.root / "src")
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    yield from _files(folders, alias.name.split("."))
            elif isinstance(node, ast.ImportFrom):
                package = [*file.parents][node.level - 1 : node.level] if node.level else folders
                for alias in node.names:
                    yield from _files(package, [*(node.module or "").split("."), alias.name])
        if file.name.startswith("test_") or file.stem.endswith("_test"):
            yield from (folder / "conftest.py" for folder in file.parents if (folder / "conftest.py").is_file())


def _files(folders: Sequence[Path], names: Sequence[str]) -> Iterator[Path]:
    """Yield the modules on the way to a dotted name, as far as they are below one of the folders."""
    for folder in folders:
        place = folder
        for name in filter(None, names):
            place = place / name
            yield from (file for file in (place.with_suffix(".py"), place / "__init__.py") if file.is_file())
