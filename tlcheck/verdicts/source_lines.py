"""The lines of the user's file that claims name, as they are now: snapshots know numbers alone.

Releases up to 0.1.9 do not tell lines of tile operators. Where the file has one copy into a claim's buffer, that is
its line. Of operators that TileLang writes as macros, such as T.reduce_max, releases tell the line of the loop or block
around them: there the one call that names the buffer is looked for.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import msgspec

from tlcheck.verdicts.claim import Claim
from tlcheck.witness import Accesses, Act

_FILES = 64  # that are remembered: thousands of kernels may be in one


@dataclass(frozen=True)
class _Call:
    """A call in a loop, a branch or a block. name: the last part of the function's. names: of its arguments. around:
    the first lines of the statements around it.
    """

    line: int
    name: str
    names: frozenset[str]
    around: frozenset[int]


@dataclass(frozen=True)
class _Function:
    """A record of where a function stands, and its copies: buffer and line of each."""

    first: int
    last: int
    copies: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class _File:
    """A file's lines, its functions, and its calls."""

    lines: tuple[str, ...] = ()
    functions: tuple[_Function, ...] = ()
    calls: tuple[_Call, ...] = ()


def with_lines(claims: Sequence[Claim]) -> tuple[Claim, ...]:
    """The claims with the text of their lines."""
    files = {name: _now(name) for name in {claim.source.file for claim in claims}}
    return tuple(_with_line(claim, files[claim.source.file]) for claim in claims)


def text_at(file: str, line: int) -> str:
    """The text of a line as it is now; empty for 0 and where there is none."""
    lines = _now(file).lines
    return lines[line - 1].strip() if 0 < line <= len(lines) else ""


def _with_line(claim: Claim, file: _File) -> Claim:
    if claim.kind == "source" and claim.call:
        claim = _with_line_of_call(claim, file)
    source, lines = claim.source, file.lines
    copied = [] if source.exact else _copies(file.functions, source.line, claim.buffer)
    known = len(copied) == 1
    number = copied[0] if known else source.line
    text, above = (lines[n - 1].strip() if 0 < n <= len(lines) else "" for n in (number, number - 1))
    copies = known or source.copied
    return replace(claim, source=replace(source, line=number, copied=copies, text=text, above=above))


def _with_line_of_call(claim: Claim, file: _File) -> Claim:
    """The claim at the line of its operator, where its line is that of a statement around it."""
    line, stem = claim.source.line, claim.call.removesuffix("_with_msg")
    if not 0 < line <= len(file.lines) or stem in file.lines[line - 1]:
        return claim
    inside = [call for call in file.calls if line in call.around and call.name.startswith(stem)]
    named = {call.line for call in inside if claim.buffer in call.names or claim.buffer.startswith("T.")}
    if len(named) != 1 or claim.finding is None or not isinstance(claim.finding.witness, Accesses):
        return claim
    moved, found = named.pop(), claim.finding.witness
    first = _at(found.first, line, moved)
    witness = Accesses(found.index, first, None if found.second is None else _at(found.second, line, moved))
    finding = replace(claim.finding, witness=witness, words=witness.words(claim.buffer))
    return replace(claim, source=replace(claim.source, line=moved), finding=finding)


def _at(act: Act, line: int, moved: int) -> Act:
    """An access at another line of the source."""
    return msgspec.structs.replace(act, source=moved) if act.source == line else act


def _copies(functions: Sequence[_Function], line: int, buffer: str) -> list[int]:
    """The lines that copy into a buffer, in the function around a line."""
    around = [function for function in functions if function.first <= line <= function.last]
    kernel = min(around, key=lambda function: function.last - function.first, default=None)
    return [] if kernel is None else [at for target, at in kernel.copies if target == buffer]


def _now(name: str) -> _File:
    """A file as it is now."""
    try:
        state = Path(name).stat()
        return _read(name, state.st_mtime_ns, state.st_size, state.st_ino)
    except (OSError, UnicodeDecodeError):
        return _File()


@lru_cache(maxsize=_FILES)
def _read(name: str, *_state: int) -> _File:
    """Return what is in a file. Raises OSError and UnicodeDecodeError."""
    text = Path(name).read_text(encoding="utf-8")
    lines = tuple(text.splitlines())
    try:
        tree = ast.parse("\n".join(lines))
    except (SyntaxError, ValueError):
        return _File(lines)
    return _File(lines, tuple(_functions(tree)), tuple(_calls(tree)))


def _calls(tree: ast.Module) -> Iterator[_Call]:
    left: list[tuple[ast.AST, frozenset[int]]] = [(tree, frozenset())]
    while left:
        node, around = left.pop()
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and around:
            given = [*node.args, *(keyword.value for keyword in node.keywords)]
            yield _Call(node.lineno, node.func.attr, frozenset(map(_name, given)), around)
        if isinstance(node, (ast.With, ast.For, ast.If, ast.While)):
            around = around | {node.lineno}
        left.extend((child, around) for child in ast.iter_child_nodes(node))


def _functions(tree: ast.Module) -> Iterator[_Function]:
    found: list[tuple[ast.FunctionDef, list[tuple[str, int]]]] = []
    left: list[tuple[ast.AST, tuple[list[tuple[str, int]], ...]]] = [(tree, ())]  # with the copies of those around it
    while left:
        node, around = left.pop()
        if isinstance(node, ast.FunctionDef):
            around = (*around, [])
            found.append((node, around[-1]))
        elif isinstance(node, ast.Call):
            for copies in around:
                copies.extend((target, node.lineno) for target in _targets(node))
        left.extend((child, around) for child in ast.iter_child_nodes(node))
    for function, copies in found:
        first = min([function.lineno, *(decorator.lineno for decorator in function.decorator_list)])
        yield _Function(first, function.end_lineno or 0, tuple(copies))


def _targets(call: ast.Call) -> set[str]:
    """The buffers that a call copies into; nothing for one that is no copy."""
    if not (isinstance(call.func, ast.Attribute) and call.func.attr.endswith("copy")):
        return set()
    given = [*call.args[1:2], *(keyword.value for keyword in call.keywords if keyword.arg == "dst")]
    return {_name(target) for target in given} - {""}


def _name(target: ast.expr) -> str:
    while isinstance(target, ast.Subscript):
        target = target.value
    return target.id if isinstance(target, ast.Name) else ""
