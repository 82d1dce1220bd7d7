"""The lines of the user's file that claims name, read anew each time: snapshots know numbers alone.

Releases up to 0.1.9 do not tell lines of tile operators. Where the file has one copy into a claim's buffer, that is
its line.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from tlcheck.verdicts.claim import Claim


def with_lines(claims: Sequence[Claim]) -> tuple[Claim, ...]:
    """The claims with the text of their lines."""
    files = {claim.source.file: _read_lines(claim.source.file) for claim in claims}
    return tuple(_with_line(claim, files[claim.source.file]) for claim in claims)


def _with_line(claim: Claim, lines: Sequence[str]) -> Claim:
    source = claim.source
    if not source.exact and lines:
        copied = _copies("\n".join(lines), source.line, claim.buffer)
        source = replace(source, line=copied[0], copied=True) if len(copied) == 1 else source
    number = source.line
    text, above = (lines[n - 1].strip() if 0 < n <= len(lines) else "" for n in (number, number - 1))
    return replace(claim, source=replace(source, text=text, above=above))


def _copies(text: str, line: int, buffer: str) -> list[int]:
    """The lines that copy into a buffer, in the function around a line."""
    around = [f for f in _functions(text) if _first(f) <= line <= (f.end_lineno or 0)]
    kernel = min(around, key=lambda f: (f.end_lineno or 0) - _first(f), default=None)
    return (
        []
        if kernel is None
        else [c.lineno for c in ast.walk(kernel) if isinstance(c, ast.Call) and _is_copy(c, buffer)]
    )


@lru_cache(maxsize=4)
def _functions(text: str) -> tuple[ast.FunctionDef, ...]:
    try:
        return tuple(node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef))
    except (SyntaxError, ValueError):
        return ()


def _first(function: ast.FunctionDef) -> int:
    return min([function.lineno, *(decorator.lineno for decorator in function.decorator_list)])


def _is_copy(call: ast.Call, buffer: str) -> bool:
    copies = isinstance(call.func, ast.Attribute) and call.func.attr.endswith("copy")
    return copies and any(_name(target) == buffer for target in _targets(call))


def _targets(call: ast.Call) -> Iterator[ast.expr]:
    yield from call.args[1:2]
    yield from (keyword.value for keyword in call.keywords if keyword.arg == "dst")


def _name(target: ast.expr) -> str:
    while isinstance(target, ast.Subscript):
        target = target.value
    return target.id if isinstance(target, ast.Name) else ""


def _read_lines(file: str) -> Sequence[str]:
    try:
        return Path(file).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return ()
