"""Find where the imports of a user's file are found: in its package, its folder, its project."""

from __future__ import annotations

import ast
import os
import pkgutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_MARKS = ("pyproject.toml", "setup.py", "setup.cfg", ".git")  # of a project's folder


@dataclass(frozen=True)
class ModulePlace:
    """Says how a file is imported. root: the folder to import from. name: dotted, from there.

    relative: the file has relative imports, so that it is run as `python -m` does and not by its path.
    """

    root: Path
    name: str
    relative: bool

    @property
    def package(self) -> str:
        """The package that relative imports start from, empty without one."""
        return self.name.rpartition(".")[0]


def place_of(file: Path) -> ModulePlace:
    """Find the package of a file: folders with an `__init__.py`, and as many more as its relative imports climb."""
    file = file.resolve()
    levels = _levels(file)
    root, names = file.parent, [file.stem]
    while root != root.parent and ((root / "__init__.py").is_file() or len(names) <= levels):
        names.insert(0, root.name)
        root = root.parent
    return ModulePlace(root, ".".join(names), levels > 0)


def project_folders(file: Path) -> list[Path]:
    """Find the folder of the project that holds a file, and its `src`: what an installed project would have."""
    for folder in file.resolve().parents:
        if any((folder / mark).exists() for mark in _MARKS):
            return [f for f in (folder, folder / "src") if f.is_dir()]
    return []


def import_path(file: Path) -> tuple[list[Path], list[Path]]:
    """The folders that come first when a file is run, and those that come after all others."""
    place, file = place_of(file), file.resolve()
    first = place.root if place.relative else file.parent
    return [first], [folder for folder in dict.fromkeys([place.root, *project_folders(file)]) if folder != first]


def import_straight() -> None:
    """Name modules found through a folder of `sys.path` such as `cases/..` by their own place, without the detour."""
    if _straight not in sys.path_hooks:
        sys.path_hooks.insert(0, _straight)


def _straight(folder: str) -> Any:
    """Return the finder of the folder that a detour leads to. Raises ImportError for a folder without one."""
    finder = pkgutil.get_importer(os.path.realpath(folder)) if os.pardir in Path(folder).parts else None
    if finder is None:
        raise ImportError
    return finder


def _levels(file: Path) -> int:
    """Return how many folders up the file's relative imports climb; 0 without one, or where it cannot be read."""
    try:
        tree = ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return 0
    return max((node.level for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)), default=0)
