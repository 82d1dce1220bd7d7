"""The names that a kernel file binds, read without running it: a misspelt one is told at once."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tlcheck.errors import UsageError, did_you_mean

_DYNAMIC = ("globals", "setattr", "exec", "vars", "__getattr__")  # may bind names that no statement shows


def require_name(file: Path, name: str) -> None:
    """Raise UsageError if no statement of the file binds a name.

    A file that may bind names without a statement, as `from x import *` does, is left to Python.
    """
    tree = _parsed(file)
    bound = set(_bound(tree)) if tree is not None else set()
    if tree is None or not list(_definitions(tree)) or name in bound or _is_dynamic(tree):
        return
    hint = did_you_mean(name, sorted(bound)) or f"; it has: {', '.join(_definitions(tree))}"
    raise UsageError(f"{file}: no {name!r} in {file.name}{hint}")


def name_at(file: Path, line: int) -> str:
    """Return the name of the module-level function or variable whose statement a line is in. Raises UsageError."""
    tree = _parsed(file)
    if tree is None:
        raise UsageError(f"{file}:{line}: the file is not Python that can be read: name the kernel, as in FILE::NAME")
    for statement in tree.body:
        first = min([statement.lineno, *(d.lineno for d in getattr(statement, "decorator_list", ()))])
        if first <= line <= (statement.end_lineno or first):
            if isinstance(statement, ast.FunctionDef):
                return statement.name
            if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
                return statement.targets[0].id
    raise UsageError(f"{file}:{line}: no function and no case is at this line: name one, as in FILE::NAME")


def _parsed(file: Path) -> ast.Module | None:
    try:
        return ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return None


def _bound(tree: ast.Module) -> Iterator[str]:
    """Yield every name that any statement binds, at whatever depth: too many rather than too few."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.alias):
            yield node.asname or node.name.partition(".")[0]
        elif isinstance(node, ast.ExceptHandler) and node.name:
            yield node.name


def _is_dynamic(tree: ast.Module) -> bool:
    for node in ast.walk(tree):
        if isinstance(node, ast.alias) and node.name == "*":
            return True
        if isinstance(node, ast.Name) and node.id in _DYNAMIC:
            return True
        if isinstance(node, ast.FunctionDef) and node.name in _DYNAMIC:
            return True
        if isinstance(node, (ast.MatchAs, ast.MatchStar)) and node.name:
            return True
    return False


def _definitions(tree: ast.Module) -> list[str]:
    functions = (node.name for node in tree.body if isinstance(node, ast.FunctionDef))
    return [name for name in functions if not name.startswith("_")]
