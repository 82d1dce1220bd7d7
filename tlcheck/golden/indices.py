"""Index expressions of a text in a simpler form that means the same: for comparing lines, never for what is kept."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache

from tlcheck.snapshot.operators import Scalars, exact

_WORTH = re.compile(r"%|//")  # without one of these there is nothing that a release would leave in two forms
_BRACKET = re.compile(r"[\[\]]")
_DIVIDED, _REST = (exact(name, Scalars()) for name in ("floordiv", "floormod"))
_KNOWN = 1 << 16  # texts whose simpler form is remembered


def simpler(line: str) -> str:
    """The line with each index in brackets simplified: `A[k % 2 % 2 * 4096 + 0]` is `A[k % 2 * 4096]`.

    Numbers are integers of any size, % and // those of Python, as in TIR.
    """
    if not _WORTH.search(line) or "[" not in line:
        return line
    parts, done = [], 0
    for start, end in _brackets(line):
        parts += [line[done:start], _simpler_indices(line[start:end])]
        done = end
    return "".join([*parts, line[done:]])


def _brackets(line: str) -> Iterator[tuple[int, int]]:
    """Yield where the content of each outermost pair of brackets stands."""
    depth = start = 0
    for found in _BRACKET.finditer(line):
        if found[0] == "[":
            start = start if depth else found.end()
            depth += 1
        elif depth:
            depth -= 1
            if not depth:
                yield start, found.start()


@lru_cache(_KNOWN)
def _simpler_indices(text: str) -> str:
    """Indices with commas between them, and ranges; as they are where they are no Python."""
    if not _WORTH.search(text):
        return text
    try:
        tree = ast.parse(f"_[{text}]", mode="eval")
    except (SyntaxError, ValueError, RecursionError):
        return text
    return ast.unparse(_Simplified().visit(tree))[2:-1]


@dataclass
class _IndexSum:
    """terms: text of an atom -> its factor, and the atom; in the order in which they came."""

    constant: int = 0
    terms: dict[str, tuple[int, ast.expr]] = field(default_factory=dict)

    def add(self, other: _IndexSum, times: int = 1) -> _IndexSum:
        """The sum of this and a multiple of another one."""
        terms = dict(self.terms)
        for text, (factor, atom) in other.terms.items():
            terms[text] = (terms.get(text, (0, atom))[0] + times * factor, atom)
        return _IndexSum(self.constant + times * other.constant, {t: (f, a) for t, (f, a) in terms.items() if f})

    def split(self, by: int) -> tuple[_IndexSum, _IndexSum]:
        """The quotient of what a number divides, and the rest."""
        divided = {text: (factor // by, atom) for text, (factor, atom) in self.terms.items() if factor % by == 0}
        rest = {text: term for text, term in self.terms.items() if text not in divided}
        return _IndexSum(_DIVIDED(self.constant, by), divided), _IndexSum(_REST(self.constant, by), rest)

    def is_below(self, limit: int) -> bool:
        """Whether its value is surely from 0 on and less than the limit."""
        tops = [_top(atom) for _, atom in self.terms.values()]
        if self.constant < 0 or any(factor < 0 for factor, _ in self.terms.values()) or None in tops:
            return False
        factors = [factor for factor, _ in self.terms.values()]
        return self.constant + sum(f * t for f, t in zip(factors, tops, strict=True) if t is not None) < limit

    def node(self) -> ast.expr:
        """The sum as an expression."""
        made: ast.expr | None = None
        for factor, atom in self.terms.values():
            size = abs(factor)
            term = atom if size == 1 else ast.BinOp(atom, ast.Mult(), ast.Constant(size))
            if made is None:
                made = term if factor > 0 else ast.UnaryOp(ast.USub(), term)
            else:
                made = ast.BinOp(made, ast.Add() if factor > 0 else ast.Sub(), term)
        if made is None:
            return ast.Constant(self.constant)
        if not self.constant:
            return made
        return ast.BinOp(made, ast.Add() if self.constant > 0 else ast.Sub(), ast.Constant(abs(self.constant)))


def _top(atom: ast.expr) -> int | None:
    """The largest value of `x % n`; None for anything else."""
    if isinstance(atom, ast.BinOp) and isinstance(atom.op, ast.Mod) and (limit := _number(atom.right)):
        return limit - 1
    return None


def _number(node: ast.expr) -> int:
    """A positive integer in the code; 0 for anything else."""
    value = node.value if isinstance(node, ast.Constant) else 0
    return value if type(value) is int and value > 0 else 0


def _atom(node: ast.expr) -> _IndexSum:
    return _IndexSum(0, {ast.unparse(node): (1, node)})


class _Simplified(ast.NodeTransformer):
    """Rewrites every sum, and what is divided, from the inside out."""

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        return self.sum_of(node).node()

    def sum_of(self, node: ast.expr) -> _IndexSum:
        """A node as a sum, simplified."""
        if isinstance(node, ast.Constant) and type(node.value) is int:
            return _IndexSum(node.value)
        if isinstance(node, ast.BinOp):
            left, right = self.sum_of(node.left), self.sum_of(node.right)
            match node.op:
                case ast.Add():
                    return left.add(right)
                case ast.Sub():
                    return left.add(right, -1)
                case ast.Mult() if not right.terms:
                    return _IndexSum().add(left, right.constant)
                case ast.Mult() if not left.terms:
                    return _IndexSum().add(right, left.constant)
                case ast.Mod() if not right.terms and right.constant > 0:
                    return _modulo(left, right.constant)
                case ast.FloorDiv() if not right.terms and right.constant > 0:
                    quotient, rest = left.split(right.constant)
                    if rest.is_below(right.constant):
                        return quotient
                    return quotient.add(_atom(ast.BinOp(rest.node(), ast.FloorDiv(), ast.Constant(right.constant))))
            return _atom(ast.BinOp(left.node(), node.op, right.node()))
        found: ast.expr = self.generic_visit(node)  # type: ignore[assignment]
        return _atom(found)


def _modulo(value: _IndexSum, by: int) -> _IndexSum:
    _, rest = value.split(by)
    if rest.is_below(by):
        return rest
    rest = _without_modulo(rest, by)
    return rest if rest.is_below(by) else _atom(ast.BinOp(rest.node(), ast.Mod(), ast.Constant(by)))


def _without_modulo(value: _IndexSum, by: int) -> _IndexSum:
    """The same modulo a number, with factors less than that; of `x % n` only x where it divides n."""
    found = _IndexSum(value.constant)
    for factor, atom in value.terms.values():
        top = _top(atom)
        if top is not None and (top + 1) % by == 0 and isinstance(atom, ast.BinOp):
            found = found.add(_without_modulo(_Simplified().sum_of(atom.left), by), factor)
        else:
            found = found.add(_atom(atom), factor)
    _, rest = found.split(by)
    return _IndexSum(rest.constant, {text: (factor % by, atom) for text, (factor, atom) in rest.terms.items()})
