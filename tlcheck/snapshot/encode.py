"""The node table of a snapshot file, writing side."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from tlcheck.snapshot.ir import (
    Alloc,
    Assert,
    Attr,
    Bind,
    Block,
    Buffer,
    Evaluate,
    Expr,
    For,
    Function,
    If,
    Launch,
    Layout,
    Seq,
    Store,
    Thread,
    Unknown,
    While,
)

Node = Any  # Expr, Buffer, Layout or Stmt
Entry = list[Any]
T = TypeVar("T")


class Encoder:
    """Numbers nodes in the order in which a walk leaves them, and writes each as one entry of the table."""

    def __init__(self) -> None:
        self.table: list[Entry] = []
        self._index: dict[Node, int] = {}

    def function(self, function: Function) -> dict[str, Any]:
        made = [call for _, call in function.descriptors]
        for node in (*function.params, *function.buffers, function.body, *made):
            self.add(node)
        fields = {
            "name": function.name,
            "params": self.refs(function.params),
            "buffers": self.refs(function.buffers),
            "attrs": [list(pair) for pair in function.attrs],
            "body": self.ref(function.body),
            "descriptors": [self.refs(pair) for pair in function.descriptors],
            "places": [[self.ref(data), place] for data, place in function.places],
        }
        return {key: value for key, value in fields.items() if value or key not in ("descriptors", "places")}

    def add(self, root: Node) -> None:
        """Enter a node and all that it refers to; without recursion."""
        index, stack, entered = self._index, [root], set[Node]()
        while stack:
            node = stack[-1]
            if node in index:
                stack.pop()
                continue
            if node not in entered:  # else all that it refers to is there
                entered.add(node)
                if pending := [n for n in _references(node) if n not in index]:
                    stack.extend(reversed(pending))
                    continue
            if type(node) is Block and (pending := [n for n in self._of_maps(node) if n not in index]):
                stack.extend(reversed(pending))
                continue
            index[node] = len(self.table)
            self.table.append(_WRITERS[type(node)](self, node))
            stack.pop()

    def ref(self, node: Node) -> int:
        return self._index[node]

    def refs(self, nodes: Iterable[Node]) -> list[int]:
        index = self._index
        return [index[n] for n in nodes]

    def _in_order(self, pairs: Iterable[tuple[Expr, T]]) -> list[tuple[Expr, T]]:
        """Sort in an order that does not depend on the process: by name, then by the variable's first use."""
        return sorted(pairs, key=lambda p: (str(p[0].value), self._index.get(p[0], len(self.table))))

    def _of_maps(self, block: Block) -> Iterator[Node]:
        for data, layout in self._in_order(block.layouts):
            yield from (data, layout)
        for data, counts in self._in_order(block.barriers):
            yield from (data, *counts)
        for data, value in self._in_order(block.safe_values):
            yield from (data, value)

    def block(self, s: Block) -> Entry:
        layouts = [self.refs(pair) for pair in self._in_order(s.layouts)]
        entry: Entry = ["Block", s.line, s.name, self.ref(s.body), layouts, _pairs(s.annotations)]
        if s.barriers or s.safe_values or s.threads:
            entry.append([[self.ref(data), self.refs(counts)] for data, counts in self._in_order(s.barriers)])
            entry.append([self.refs(pair) for pair in self._in_order(s.safe_values)])
            entry.append(self.refs(s.threads))
        return entry


def _references(node: Node) -> Iterable[Node]:
    """Return what a node refers to, in order; a block's layouts come after its body and are asked for apart."""
    kind = type(node)
    if kind is Expr:
        computed = [value for _, value in node.computed]
        return (*_some(node.buffer), *node.args, *computed)
    return _REFERENCES[kind](node)


_REFERENCES: dict[type, Callable[[Any], Iterable[Node]]] = {
    Buffer: lambda b: (b.data, *b.shape, *b.strides, *_some(b.elem_offset)),
    Layout: lambda y: (*y.vars, *y.input_shape, *_some(y.replica), *y.index, *_some(y.thread)),
    Seq: lambda s: s.body,
    For: lambda s: (s.var, s.start, s.extent, s.body, *(e for _, e in s.computed), *_some(s.layout)),
    While: lambda s: (s.condition, s.body),
    If: lambda s: (s.condition, s.then, *_some(s.orelse)),
    Bind: lambda s: (s.var, s.value),
    Thread: lambda s: (s.var, s.extent, s.body),
    Attr: lambda s: (*s.node, *_some(s.value), s.body),
    Alloc: lambda s: (s.buffer,),
    Block: lambda s: (*s.threads, s.body),
    Store: lambda s: (s.buffer, *s.indices, s.value, *_some(s.predicate)),
    Assert: lambda s: (s.condition,),
    Launch: lambda s: (*s.params, s.body),
    Evaluate: lambda s: (s.value,),
    Unknown: lambda s: s.body,
}


def _some(node: Node | None) -> tuple[Node, ...]:
    return () if node is None else (node,)


def _pairs(pairs: Iterable[tuple[str, str]]) -> list[list[str]]:
    return [list(pair) for pair in pairs]


def _expr(t: Encoder, e: Expr) -> Entry:
    if e.op == "var":  # its uid is its number among the variables of the table
        return ["var", e.dtype, e.value]
    entry: Entry = [e.op, e.dtype]
    if e.op == "load":
        entry.append(t.ref(e.buffer))
    elif e.value is not None:
        plain = not isinstance(e.value, float) or math.isfinite(e.value)
        entry.append(e.value if plain else str(e.value))
    entry.extend(t.refs(e.args))
    if e.annotations or e.computed:
        entry.append(_pairs(e.annotations))
    if e.computed:
        entry.append(_computed(t, e.computed))
    return entry


def _computed(t: Encoder, pairs: Iterable[tuple[str, Expr]]) -> list[Entry]:
    return [[key, t.ref(value)] for key, value in pairs]


def _loop(t: Encoder, s: For) -> Entry:
    entry = ["For", s.line, *t.refs((s.var, s.start, s.extent)), s.kind, t.ref(s.body), _pairs(s.annotations)]
    return [*entry, _computed(t, s.computed), _optional(t, s.layout)] if s.computed or s.layout else entry


def _lists(t: Encoder, nodes: Iterable[Node]) -> list[list[int]]:
    """The nodes as a list in a list; nothing where there are none."""
    refs = t.refs(nodes)
    return [refs] if refs else []


def _optional(t: Encoder, node: Node | None) -> int | None:
    return None if node is None else t.ref(node)


_WRITERS: dict[type, Callable[[Encoder, Any], Entry]] = {
    Expr: _expr,
    Buffer: lambda t, b: [
        "buffer",
        b.name,
        b.dtype,
        b.scope,
        t.ref(b.data),
        t.refs(b.shape),
        t.refs(b.strides),
        _optional(t, b.elem_offset),
    ],
    Layout: lambda t, y: [
        "layout",
        t.refs(y.vars),
        t.refs(y.input_shape),
        t.refs(y.index),
        _optional(t, y.thread),
        _optional(t, y.replica),
        y.replicas,
        y.thread_start,
    ],
    Seq: lambda t, s: ["Seq", s.line, *t.refs(s.body)],
    For: _loop,
    While: lambda t, s: ["While", s.line, t.ref(s.condition), t.ref(s.body)],
    If: lambda t, s: ["If", s.line, t.ref(s.condition), t.ref(s.then), _optional(t, s.orelse)],
    Bind: lambda t, s: ["Bind", s.line, t.ref(s.var), t.ref(s.value)],
    Thread: lambda t, s: ["Thread", s.line, t.ref(s.var), s.tag, t.ref(s.extent), t.ref(s.body)],
    Attr: lambda t, s: ["Attr", s.line, s.key, _optional(t, s.value), t.ref(s.body), *_lists(t, s.node)],
    Alloc: lambda t, s: ["Alloc", s.line, t.ref(s.buffer)],
    Block: lambda t, s: t.block(s),
    Store: lambda t, s: [
        "Store",
        s.line,
        t.ref(s.buffer),
        t.ref(s.value),
        *t.refs(s.indices),
        *_lists(t, _some(s.predicate)),
    ],
    Assert: lambda t, s: ["Assert", s.line, t.ref(s.condition), s.message],
    Launch: lambda t, s: ["Launch", s.line, s.name, t.refs(s.params), _pairs(s.attrs), t.ref(s.body)],
    Evaluate: lambda t, s: ["Evaluate", s.line, t.ref(s.value)],
    Unknown: lambda t, s: ["Unknown", s.line, s.what, *t.refs(s.body)],
}
