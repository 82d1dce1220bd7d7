"""Kernels that mutants are made of: functions of kernel files, each as a module of its own."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tlcheck.errors import UsageError
from tlcheck.remedy.reduction import bound


@dataclass(frozen=True)
class SeedKernel:
    """A kernel of a file. place: `FILE::FUNCTION`. text: of a module with that function alone."""

    place: str
    function: str
    text: str

    @property
    def weight(self) -> float:
        """Return how often it is drawn: small kernels take less time, and their mutants are easier to read."""
        return float(self.text.count("\n") + 1) ** -2


def seeds(paths: Iterable[str]) -> list[SeedKernel]:
    """Return the kernels of files and folders, `FILE::NAME` for one. Raises UsageError where there is none."""
    found = []
    for path in paths:
        name, _, wanted = path.partition("::")
        place = Path(name)
        files = sorted(place.rglob("*.py")) if place.is_dir() else [place]
        if not all(file.is_file() for file in files):
            raise UsageError(f"{path}: no such file or folder")
        own = [seed for file in files for seed in _of_file(file, wanted)]
        if not own:
            raise UsageError(
                f"{path}: no kernel found: a seed is a function with a T.prim_func in it that needs no argument"
            )
        found += own
    return found


def _of_file(file: Path, wanted: str) -> Iterator[SeedKernel]:
    """The functions of a file that make a kernel without being given anything. wanted: one of them, empty for all."""
    text = file.read_text(encoding="utf-8")
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return
    args = _arguments(tree)
    for stmt in tree.body:
        if not isinstance(stmt, ast.FunctionDef) or not _makes_kernel(stmt) or wanted not in ("", stmt.name):
            continue
        for given in args.get(stmt.name, [{}]):
            try:
                alone = bound(text, stmt.name, given)
            except ValueError:
                continue
            function = next(s for s in ast.parse(alone).body if isinstance(s, ast.FunctionDef) and s.name == stmt.name)
            if len(function.args.args) == len(function.args.defaults):
                yield SeedKernel(f"{file}::{stmt.name}", stmt.name, alone)


def _makes_kernel(function: ast.FunctionDef) -> bool:
    inner = [f for f in ast.walk(function) if isinstance(f, ast.FunctionDef) and f is not function]
    return any("prim_func" in ast.unparse(d) for f in inner for d in f.decorator_list)


def _arguments(tree: ast.Module) -> dict[str, list[dict[str, str]]]:
    """Function -> the arguments of its cases, as source."""
    found: dict[str, list[dict[str, str]]] = {}
    for _, function, given in arguments(tree):
        found.setdefault(function, []).append(given)
    return found


def arguments(tree: ast.Module) -> Iterator[tuple[str, str, dict[str, str]]]:
    """Yield the cases of a module, each with its function and arguments: `name = Case(function, {"m": 16})`."""
    for stmt in tree.body:
        match stmt:
            case ast.Assign(
                targets=[ast.Name(id=name)], value=ast.Call(func=ast.Name(id="Case"), args=[ast.Name(id=f), *rest])
            ):
                given = rest[0] if rest and isinstance(rest[0], ast.Dict) else ast.Dict([], [])
                words = {
                    key.value: ast.unparse(value)
                    for key, value in zip(given.keys, given.values, strict=True)
                    if isinstance(key, ast.Constant) and isinstance(key.value, str)
                }
                yield name, f, words
