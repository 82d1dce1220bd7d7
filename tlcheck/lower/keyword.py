"""`-k EXPR`: which kernels are wanted, by words of their names."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path

from tlcheck.errors import UsageError

_GRAMMAR = "words with `and`, `or`, `not` and parentheses, such as 'sparse and not fp8'"


@dataclass(frozen=True)
class Keyword:
    """An expression over words, each of which a name has or has not. Case does not matter."""

    text: str
    tree: ast.expr

    def holds(self, case: str) -> bool:
        """Whether `FILE::NAME` is wanted. Folders do not count."""
        file, _, name = case.partition("::")
        return _holds(self.tree, f"{Path(file).name}::{name}".lower())


def parse_keyword(text: str) -> Keyword:
    """Read an expression. Raises UsageError."""
    try:
        tree = ast.parse(text.strip(), mode="eval").body
        _holds(tree, "")
    except (SyntaxError, ValueError):
        raise UsageError(f"-k {text}: expected {_GRAMMAR}") from None
    return Keyword(text, tree)


def _holds(node: ast.expr, name: str) -> bool:
    """Raises ValueError for what is no such expression."""
    if isinstance(node, ast.BoolOp):
        parts = [_holds(part, name) for part in node.values]
        return all(parts) if isinstance(node.op, ast.And) else any(parts)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return not _holds(node.operand, name)
    if isinstance(node, ast.Name):
        return node.id.lower() in name
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return str(node.value) in name
    raise ValueError(ast.dump(node))
