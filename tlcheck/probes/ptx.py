"""PTX text as instructions: entries, labels, predicates, operands. Follows "Syntax" of the PTX ISA manual."""

from __future__ import annotations

import re
from dataclasses import dataclass

_ENTRY = re.compile(r"\.entry\s+(\w+)\s*\(")
_LABEL = re.compile(r"^(\$?\w+):\s*")
_PREDICATE = re.compile(r"^@(!?)(%?\w+)\s+")
_COMMENT = re.compile(r"//[^\n]*")


@dataclass(frozen=True, slots=True)
class PtxInstruction:
    """One instruction. opcode: its parts, `("atom", "global", "add", "f32")`. predicate: register, empty if always.

    operands: a register, number, symbol, `[address]` or a vector `{a, b}`. line: from 1 in the text.
    """

    opcode: tuple[str, ...]
    operands: tuple[str, ...]
    predicate: str
    negated: bool
    line: int

    @property
    def name(self) -> str:
        """The opcode as it is written."""
        return ".".join(self.opcode)


@dataclass(frozen=True, slots=True)
class PtxEntry:
    """A kernel of a PTX text. labels: label -> number of the instruction that it stands before."""

    name: str
    instructions: tuple[PtxInstruction, ...]
    labels: dict[str, int]
    first_line: int
    last_line: int


def entries(text: str) -> dict[str, PtxEntry]:
    """The kernels of a PTX text by name."""
    plain = _COMMENT.sub("", text)
    found: dict[str, PtxEntry] = {}
    for match in _ENTRY.finditer(plain):
        start = plain.index("{", plain.index(")", match.end()))
        end = _closing(plain, start)
        found[match[1]] = _entry(match[1], plain, start + 1, end)
    return found


def _closing(text: str, start: int) -> int:
    depth = 0
    for found in re.compile(r"[{}]").finditer(text, start):
        depth += 1 if found[0] == "{" else -1
        if depth == 0:
            return found.start()
    raise ValueError("a PTX entry without an end")


def _entry(name: str, text: str, start: int, end: int) -> PtxEntry:
    instructions: list[PtxInstruction] = []
    labels: dict[str, int] = {}
    line = text.count("\n", 0, start) + 1
    first = line
    for piece in text[start:end].split(";"):
        stripped = piece.lstrip("{} \t\n")
        begins = line + piece[: len(piece) - len(stripped)].count("\n")
        line += piece.count("\n")
        while match := _LABEL.match(stripped):
            labels[match[1]] = len(instructions)
            rest = stripped[match.end() :].lstrip("{} \t\n")
            begins += stripped[: len(stripped) - len(rest)].count("\n")
            stripped = rest
        if stripped and not stripped.startswith("."):
            instructions.append(_instruction(stripped.strip(), begins))
    return PtxEntry(name, tuple(instructions), labels, first, line)


def _instruction(text: str, line: int) -> PtxInstruction:
    predicate, negated = "", False
    if match := _PREDICATE.match(text):
        predicate, negated = match[2], bool(match[1])
        text = text[match.end() :]
    opcode, *rest = text.split(None, 1)
    return PtxInstruction(tuple(opcode.split(".")), _operands(rest[0] if rest else ""), predicate, negated, line)


def _operands(text: str) -> tuple[str, ...]:
    """Operands, split at the commas outside of brackets."""
    found, depth, current = [], 0, ""
    for char in text:
        depth += (char in "[{(") - (char in "]})")
        if char == "," and depth == 0:
            found.append(current.strip())
            current = ""
        else:
            current += char
    return tuple([*found, current.strip()] if current.strip() else found)
