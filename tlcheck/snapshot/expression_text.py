"""Expressions as text, in the manner of TVM's script, with no more parentheses than their structure needs."""

from __future__ import annotations

import json
from collections.abc import Callable

from tlcheck.snapshot.ir import Expr, Layout
from tlcheck.snapshot.operators import OPERATORS, named
from tlcheck.snapshot.walk import postorder

# Python's precedence: a higher number binds tighter.
_OR, _AND, _NOT, _COMPARE, _SUM, _PRODUCT, _ATOM = range(7)
_LEVELS = {
    "or": _OR,
    "and": _AND,
    **dict.fromkeys(named("comparison"), _COMPARE),
    **dict.fromkeys(("add", "sub"), _SUM),
    **dict.fromkeys(("mul", "div", "floordiv", "floormod"), _PRODUCT),
}
_PREFIX = {"min": "T.min", "max": "T.max", "truncdiv": "T.truncdiv", "truncmod": "T.truncmod", "mod": "T.mod"}
_NAMED = {"select": "T.Select", "let": "T.Let", "predicated": "T.predicated"}
_NEEDS_DTYPE = ("call_extern", "call_pure_extern", "type_annotation", "reinterpret", "infinity")

Name = Callable[[Expr], str]
Piece = tuple[str, int]


def render_expression(e: Expr, name: Name, view: Name) -> str:
    """`e` as text. `name` gives the display name of a variable, `view` that of the buffer of a load."""
    return _pieces([e], name, view)[e][0]


def render_access(buffer_name: str, indices: tuple[Expr, ...], name: Name, view: Name) -> str:
    """`buffer_name` with indices; vectors of consecutive elements as slices."""
    pieces = _pieces(indices, name, view)
    return f"{buffer_name}[{', '.join(_index(i, pieces) for i in indices)}]"


def render_layout(layout: Layout, buffer: str = "") -> str:
    """An index map in words: `dQ: (i, j) -> (i // 8, j % 2)`; of a fragment, `c: (i, j) -> thread ..., local ...`."""

    def name(v: Expr) -> str:
        return str(v.value)

    pieces = _pieces([*layout.index, *(e for e in (layout.thread,) if e is not None)], name, name)
    index = ", ".join(pieces[e][0] for e in layout.index)
    head = f"{buffer}: " if buffer else ""
    domain = ", ".join(name(v) for v in layout.vars)
    if layout.thread is None:
        return f"{head}({domain}) -> ({index})"
    text = f"{head}({domain}) -> thread {pieces[layout.thread][0]}, local {index}"
    if layout.thread_start:
        text += f", from thread {layout.thread_start} on"
    return text if layout.replicas == 1 else f"{text}, {layout.replicas} replicas"


def _pieces(roots: list[Expr] | tuple[Expr, ...], name: Name, view: Name) -> dict[Expr, Piece]:
    """Text and precedence of every expression under `roots`."""
    pieces: dict[Expr, Piece] = {}
    for e in postorder(roots):
        pieces[e] = _piece(e, pieces, name, view)
    return pieces


def _piece(e: Expr, pieces: dict[Expr, Piece], name: Name, view: Name) -> Piece:
    if e.op in _LEVELS:
        # operators of one precedence group from the left; comparisons do not chain
        symbol, level = OPERATORS[e.op].symbol, _LEVELS[e.op]
        left, right = (pieces[a] for a in e.args)
        first = level + 1 if level == _COMPARE else level
        return f"{_inside(left, first)} {symbol} {_inside(right, level + 1)}", level
    if e.op == "not":
        return f"not {_inside(pieces[e.args[0]], _NOT)}", _NOT
    if e.op == "var":
        return name(e), _ATOM
    if e.op in ("int", "float", "str"):
        return _constant(e), _ATOM
    if e.op == "load":
        return f"{view(e)}[{', '.join(_index(i, pieces) for i in e.args)}]", _ATOM
    return _call(e, [pieces[a][0] for a in e.args]), _ATOM


def _inside(piece: Piece, level: int) -> str:
    return piece[0] if piece[1] >= level else f"({piece[0]})"


def _index(e: Expr, pieces: dict[Expr, Piece]) -> str:
    if e.op != "ramp" or e.args[1].op != "int" or e.args[1].value != 1:
        return pieces[e][0]
    start, lanes = e.args[0], int(e.value or 0)
    if start.op == "int":
        return f"{start.value}:{int(start.value or 0) + lanes}"
    base = pieces[start]
    return f"{base[0]}:{_inside(base, _SUM)} + {lanes}"


def _constant(e: Expr) -> str:
    if e.op == "str":
        return json.dumps(e.value)
    if e.dtype == "bool":
        return str(bool(e.value))
    return str(e.value) if e.dtype in ("int32", "int64", "float32") else f"T.{e.dtype}({e.value})"


def _call(e: Expr, args: list[str]) -> str:
    if e.op == "cast":
        return f'T.Cast("{e.dtype}", {args[0]})'
    if e.op in _PREFIX:
        return f"{_PREFIX[e.op]}({', '.join(args)})"
    if e.op in ("ramp", "broadcast"):
        return f"T.{e.op.capitalize()}({', '.join([*args, str(e.value)])})"
    if e.op == "shuffle":
        vectors = int(e.value or 0)
        return f"T.Shuffle([{', '.join(args[:vectors])}], [{', '.join(args[vectors:])}])"
    if e.op in _NAMED:
        return f"{_NAMED[e.op]}({', '.join(args)})"
    if e.op == "unknown":
        return f"T.unknown({', '.join([json.dumps(e.value), *args])})"
    dtype = [json.dumps(e.dtype)] if e.value in _NEEDS_DTYPE else []
    return f"T.{e.value}({', '.join([*dtype, *args, *(f'{k}={v}' for k, v in e.annotations)])})"
