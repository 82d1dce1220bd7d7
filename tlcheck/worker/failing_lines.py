"""The line of a kernel that a failing pass is about: of a buffer that it names, or of the operator that it lowers."""

from __future__ import annotations

import re

from tlcheck.snapshot.ir import Evaluate, Function, Store
from tlcheck.snapshot.walk import expressions, postorder, statements

# TileLang keeps each tile operator in files of its name: `src/cuda/op/gemm.cc`, `tileop/gemm/gemm_mma.py`.
_OPERATOR_FRAME = re.compile(r'File "[^"]*/(?:tile)?op/(?:\w+/)*([a-z]+)\w*\.\w+"')


def line_of_buffer(message: str, function: Function) -> int:
    """The line of the first statement that accesses a buffer that a message names; 0 if it names none."""
    words = set(re.findall(r"\w+", message))
    for stmt in statements(function.body):
        own = [stmt.buffer] if isinstance(stmt, Store) else []
        used = own + [e.buffer for e in postorder(expressions(stmt)) if e.buffer is not None]
        if stmt.line and any(buffer.name in words for buffer in used):
            return stmt.line
    return 0


def line_of_operator(trace: str, function: Function) -> int:
    """The line of the tile operator in whose code a pass failed; 0 if the kernel has none or several of its kind."""
    lines: dict[str, set[int]] = {}
    for stmt in statements(function.body):
        if isinstance(stmt, Evaluate) and stmt.line:
            lines.setdefault(str(stmt.value.value).partition("_")[0], set()).add(stmt.line)
    inside = [name for name in _OPERATOR_FRAME.findall(trace) if name in lines]
    (line,) = lines[inside[-1]] if inside and len(lines[inside[-1]]) == 1 else (0,)
    return line
