"""Single kernels of tests/wrong_code/kernels.py.

TileLang rewrites each of its sixty kernels when the file is imported: a second of the processor for each job.
"""

from __future__ import annotations

import ast
from pathlib import Path

FILE = Path(__file__).parents[1] / "wrong_code" / "kernels.py"


def alone(name: str) -> str:
    """Return the file with one case or kernel and what it uses, each on its own line; the others are empty lines."""
    text = FILE.read_text(encoding="utf-8")
    statements = ast.parse(text).body
    wanted, kept = {name}, set()
    for statement in reversed(statements):  # what a statement uses comes before it
        if isinstance(statement, (ast.Import, ast.ImportFrom)) or names(statement) & wanted:
            wanted |= {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)}
            kept |= set(range(first_line(statement), (statement.end_lineno or 0) + 1))
    lines = enumerate(text.splitlines(), 1)
    return "".join(f"{line if number in kept else ''}\n" for number, line in lines)


def first_line(statement: ast.stmt) -> int:
    """Return its line, with that of its decorators."""
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    return min([statement.lineno, *(decorator.lineno for decorator in decorators)])


def names(statement: ast.stmt) -> set[str]:
    """Return the names that a statement of a module defines."""
    match statement:
        case ast.FunctionDef():
            return {statement.name}
        case ast.Assign():
            return {node.id for target in statement.targets for node in ast.walk(target) if isinstance(node, ast.Name)}
    return set()


def written(name: str, folder: Path) -> Path:
    """Write it into a folder, and return the file."""
    file = folder / FILE.name
    file.write_text(alone(name), encoding="utf-8")
    return file
