"""`-k EXPR`: which kernels are wanted, by words of their names."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tlcheck.errors import UsageError

_TOKENS = re.compile(r"\s*(?:([()])|([\w:+\-.\[\]\\/]+))\s*")  # pytest's words: `gemm[64-fp8]` is one
_OPERATORS = ("and", "or", "not")
_GRAMMAR = "words with `and`, `or`, `not` and parentheses, such as 'sparse and not fp8'"


@dataclass(frozen=True)
class Keyword:
    """An expression over words, each of which a name has or has not. Case does not matter.

    tree: of the expression, in which `_3` stands for the fourth of the words.
    """

    text: str
    tree: ast.expr
    words: tuple[str, ...]

    def holds(self, case: str) -> bool:
        """Whether `FILE::NAME` is wanted. Folders do not count."""
        file, _, name = case.partition("::")
        return _holds(self.tree, self.words, f"{Path(file).name}::{name}".lower())


def parse_keyword(text: str) -> Keyword:
    """Read an expression. Raises UsageError."""
    words: list[str] = []
    try:
        tree = ast.parse(_numbered(text.strip(), words), mode="eval").body
        _holds(tree, words, "")
    except (SyntaxError, ValueError):
        raise UsageError(f"-k {text}: expected {_GRAMMAR}") from None
    return Keyword(text, tree, tuple(words))


def _numbered(text: str, words: list[str]) -> str:
    """Return the expression as Python reads it, and put its words into `words`. Raises ValueError for other signs."""
    parts, place = [], 0
    while place < len(text):
        token = _TOKENS.match(text, place)
        if token is None:
            raise ValueError(text[place:])
        place = token.end()
        if token[1] or token[2] in _OPERATORS:
            parts.append(token[1] or token[2])
        else:
            parts.append(f"_{len(words)}")
            words.append(token[2].lower())
    return " ".join(parts)


def _holds(node: ast.expr, words: Sequence[str], name: str) -> bool:
    """Raises ValueError for what is no such expression."""
    if isinstance(node, ast.BoolOp):
        parts = [_holds(part, words, name) for part in node.values]
        return all(parts) if isinstance(node.op, ast.And) else any(parts)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return not _holds(node.operand, words, name)
    if isinstance(node, ast.Name):
        return words[int(node.id[1:])] in name
    raise ValueError(ast.dump(node))
