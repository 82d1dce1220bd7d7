"""The normal form of a function: what a golden holds of it.

The readable TIR with each buffer's layout below its declaration, one statement a line, after a header that holds what
determines the IR and nothing else. It depends on the snapshot alone: not on the machine, the process, the time or the
order in which kernels were lowered.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tlcheck.golden.text_document import LAYOUT
from tlcheck.lower.runs import release_of
from tlcheck.snapshot.ir import Alloc, Block, Function, Snapshot
from tlcheck.snapshot.text import render, render_layout
from tlcheck.snapshot.walk import statements

_HEAD = "# "


def normal_text(snapshot: Snapshot, checkpoint: str) -> str:
    """The golden's text of one checkpoint."""
    lines = [*_header(snapshot, checkpoint), "", *normal_lines(snapshot.checkpoints[checkpoint])]
    return "".join(f"{_one_line(line)}\n" for line in lines)


def normal_lines(function: Function) -> list[str]:
    """The function's lines, with layouts."""
    text, layouts = render(function), _layouts(function)
    below = {1: [function_param.uid for function_param in function.params]}
    for stmt in statements(function.body):
        if isinstance(stmt, Alloc):
            below.setdefault(text.line_of(stmt), []).append(stmt.buffer.data.uid)
    lines = []
    for number, line in enumerate(text.lines, 1):
        lines.append(line)
        indent = " " * (4 if number == 1 else len(line) - len(line.lstrip()))
        found = [layout for uid in below.get(number, ()) for layout in layouts.pop(uid, ())]
        lines += [f"{indent}{LAYOUT}{layout}" for layout in found]
    rest = sorted(layout for found in layouts.values() for layout in found)
    return [*lines[:1], *(f"    {LAYOUT}{layout}" for layout in rest), *lines[1:]]


def _layouts(function: Function) -> dict[int, list[str]]:
    """Return layouts in words by the buffer's pointer, each once. Every block that encloses its uses has a map."""
    found: dict[int, dict[str, None]] = {}
    for stmt in statements(function.body):
        for data, layout in stmt.layouts if isinstance(stmt, Block) else ():
            found.setdefault(data.uid, {})[render_layout(layout, str(data.value))] = None
    return {uid: list(texts) for uid, texts in found.items()}


def _header(snapshot: Snapshot, checkpoint: str) -> Iterator[str]:
    yield f"{_HEAD}tilelang: {release_of(snapshot.toolchain)}"
    yield f"{_HEAD}target: {snapshot.target}"
    yield f"{_HEAD}checkpoint: {checkpoint}"
    yield from _entries("argument", snapshot.args)
    yield from _entries("pass config", dict(sorted(snapshot.pass_configs.items())))


def _entries(what: str, values: Mapping[str, str]) -> Iterator[str]:
    for name, value in values.items():
        yield f"{_HEAD}{what} {name}: {value if value.isprintable() else json.dumps(value)}"


def _one_line(line: str) -> str:
    """A name in a kernel may hold anything."""
    return line if line.isprintable() else json.dumps(line, ensure_ascii=False)[1:-1]


@dataclass(frozen=True)
class Parts:
    """A golden's text taken apart. header: `tilelang` -> `0.1.15`, `argument heads` -> `64`."""

    header: Mapping[str, str]
    lines: Sequence[str]


def parse(text: str) -> Parts:
    """Any text: without a header it is all lines."""
    lines = text.splitlines()
    size = next((n for n, line in enumerate(lines) if not line.startswith(_HEAD)), len(lines))
    header = dict(line[len(_HEAD) :].partition(": ")[::2] for line in lines[:size])
    body = lines[size:]
    return Parts(header, body[1:] if body[:1] == [""] else body)
