"""A function as text to read and to compare: TVM's script without what says nothing about the program.

Left out are blocks, lists of reads and writes, layouts (see `render_layout`), attributes of the function and hints for
unrolling. Every statement has one line.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tlcheck.snapshot.expression_text import render_access, render_expression, render_layout
from tlcheck.snapshot.ir import (
    Alloc,
    Assert,
    Attr,
    Bind,
    Block,
    Evaluate,
    Expr,
    For,
    Function,
    If,
    Launch,
    Seq,
    Stmt,
    Store,
    Thread,
    Unknown,
    While,
)
from tlcheck.snapshot.names import Names, ViewKey

__all__ = ["Text", "render", "render_layout"]

_HINTS = ("pragma_unroll_explicit", "lexical_alloc_scope")
_LOOPS = {"serial": "T.serial", "parallel": "T.parallel", "vectorized": "T.vectorized", "unrolled": "T.unroll"}


@dataclass(frozen=True, slots=True)
class Text:
    """lines: without line ends. numbers: id of a statement -> number of its line, from 1 on."""

    lines: tuple[str, ...]
    numbers: dict[int, int]

    def __str__(self) -> str:
        return "\n".join(self.lines) + "\n"

    def line_of(self, stmt: Stmt) -> int:
        """The line on which a statement stands, or starts; 0 if it is not in this text."""
        return self.numbers.get(id(stmt), 0)


def render(function: Function) -> Text:
    """The whole function."""
    return _Printer(function).text()


class _Printer:
    """Writes line by line. What is still to be written is a stack of steps: kernels nest deeper than Python's stack."""

    def __init__(self, function: Function) -> None:
        self._function = function
        self._names = Names(function)
        self._lines: list[str] = []
        self._numbers: dict[int, int] = {}
        self._steps: list[Callable[[], None]] = []

    def text(self) -> Text:
        function = self._function
        params = [self._parameter(p) for p in function.params]
        self._line(0, f"def {function.name}({', '.join(params)}):")
        for param in function.params:
            self._other_views(param, 1)
        self._steps.append(lambda: self._statement(function.body, 1))
        while self._steps:
            self._steps.pop()()
        return Text(tuple(self._lines), self._numbers)

    def _parameter(self, param: Expr) -> str:
        name, views = self._names.declare(param), self._names.views(param)
        declared = [b for b in self._function.buffers if b.data is param]
        if declared:
            shape = ", ".join(self._expression(e) for e in declared[0].shape)
            return f'{name}: T.Buffer([{shape}], "{declared[0].dtype}")'
        return f"{name}: {_view(*views[0]) if views else f'T.{param.dtype}'}"

    def _line(self, depth: int, text: str) -> None:
        self._lines.append("    " * depth + text)

    def _then(self, *steps: Callable[[], None]) -> None:
        """Do these next, in this order."""
        self._steps.extend(reversed(steps))

    def _inside(self, stmt: Stmt, depth: int) -> None:
        """`stmt` in a scope of its own."""
        self._names.open()
        self._then(lambda: self._statement(stmt, depth), self._names.close)

    def _statement(self, stmt: Stmt, depth: int) -> None:
        self._numbers.setdefault(id(stmt), len(self._lines) + 1)
        _PRINTERS[type(stmt)](self, stmt, depth)

    def _expression(self, e: Expr) -> str:
        return render_expression(e, self._names.of, self._view)

    def _view(self, load: Expr) -> str:
        assert load.buffer is not None
        return self._names.view(load.buffer)

    def _other_views(self, data: Expr, depth: int) -> None:
        for number, key in enumerate(self._names.views(data)):
            if number:
                self._line(depth, f"{self._names.of(data)}.{number} = {_view(*key)}")

    def seq(self, s: Seq, depth: int) -> None:
        self._names.open()
        parts = [(lambda part=part: self._statement(part, depth)) for part in s.body]
        self._then(*parts, self._names.close)
        if not s.body:
            self._line(depth, "pass")

    def loop(self, s: For, depth: int) -> None:
        bounds = self._bounds(s)
        notes = [f"{key}={value}" for key, value in s.annotations if key not in _HINTS]
        self._names.open()
        head = f"{_LOOPS.get(s.kind, 'T.' + s.kind)}({', '.join([*bounds, *notes])})"
        self._line(depth, f"for {self._names.declare(s.var)} in {head}:")
        self._then(lambda: self._statement(s.body, depth + 1), self._names.close)

    def _bounds(self, s: For) -> list[str]:
        if s.start.op == "int" and s.start.value == 0:
            return [self._expression(s.extent)]
        if s.start.op == "int" and s.extent.op == "int":
            return [str(s.start.value), str(int(s.start.value or 0) + int(s.extent.value or 0))]
        return [self._expression(s.start), self._expression(Expr("add", s.start.dtype, (s.start, s.extent)))]

    def repeat(self, s: While, depth: int) -> None:
        self._line(depth, f"while {self._expression(s.condition)}:")
        self._inside(s.body, depth + 1)

    def branch(self, s: If, depth: int, word: str = "if") -> None:
        self._line(depth, f"{word} {self._expression(s.condition)}:")
        steps: list[Callable[[], None]] = [lambda: self._inside(s.then, depth + 1)]
        other = s.orelse
        if isinstance(other, If):
            steps.append(lambda: self._otherwise(other, depth))
        elif other is not None:
            steps += [lambda: self._line(depth, "else:"), lambda: self._inside(other, depth + 1)]
        self._then(*steps)

    def _otherwise(self, s: If, depth: int) -> None:
        self._numbers.setdefault(id(s), len(self._lines) + 1)
        self.branch(s, depth, "elif")

    def bind(self, s: Bind, depth: int) -> None:
        value = self._expression(s.value)
        self._line(depth, f"{self._names.declare(s.var)} = {value}")
        self._other_views(s.var, depth)

    def thread(self, s: Thread, depth: int) -> None:
        extent = self._expression(s.extent)
        self._names.open()
        self._line(depth, f'{self._names.declare(s.var)} = T.launch_thread("{s.tag}", {extent})')
        self._then(lambda: self._statement(s.body, depth), self._names.close)

    def attr(self, s: Attr, depth: int) -> None:
        if s.key in _HINTS:
            self._inside(s.body, depth)
            return
        if s.key == "tl.assume" and s.value is not None:
            self._line(depth, f"T.assume({self._expression(s.value)})")
            self._inside(s.body, depth)
            return
        value = "" if s.value is None else f", {self._expression(s.value)}"
        self._line(depth, f'with T.attr("{s.key}"{value}):')
        self._inside(s.body, depth + 1)

    def alloc(self, s: Alloc, depth: int) -> None:
        name = self._names.declare(s.buffer.data)
        shape = ", ".join(self._expression(e) for e in s.buffer.shape)
        self._line(depth, f'{name} = T.alloc_buffer([{shape}], "{s.buffer.dtype}", scope="{s.buffer.scope}")')
        self._other_views(s.buffer.data, depth)

    def store(self, s: Store, depth: int) -> None:
        target = render_access(self._names.view(s.buffer), s.indices, self._names.of, self._view)
        where = "" if s.predicate is None else f" where {self._expression(s.predicate)}"
        self._line(depth, f"{target} = {self._expression(s.value)}{where}")

    def evaluate(self, s: Evaluate, depth: int) -> None:
        self._line(depth, self._expression(s.value))

    def block(self, s: Block, depth: int) -> None:
        self._inside(s.body, depth)

    def demand(self, s: Assert, depth: int) -> None:
        self._line(depth, f"assert {self._expression(s.condition)}, {json.dumps(s.message)}")

    def launch(self, s: Launch, depth: int) -> None:
        self._statement(s.body, depth)

    def unknown(self, s: Unknown, depth: int) -> None:
        self._line(depth, f"with T.unknown({s.what!r}):" if s.body else f"T.unknown({s.what!r})")
        self._then(*[(lambda part=part: self._inside(part, depth + 1)) for part in s.body])


def _view(dtype: str, shape: ViewKey | tuple[int, ...]) -> str:
    return f'T.Buffer([{", ".join(map(str, shape))}], "{dtype}")'


_PRINTERS: dict[type, Callable[[_Printer, Any, int], None]] = {
    Seq: _Printer.seq,
    For: _Printer.loop,
    While: _Printer.repeat,
    If: _Printer.branch,
    Bind: _Printer.bind,
    Thread: _Printer.thread,
    Attr: _Printer.attr,
    Alloc: _Printer.alloc,
    Block: _Printer.block,
    Store: _Printer.store,
    Evaluate: _Printer.evaluate,
    Assert: _Printer.demand,
    Launch: _Printer.launch,
    Unknown: _Printer.unknown,
}
