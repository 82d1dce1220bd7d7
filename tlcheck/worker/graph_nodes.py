"""Describe what the nodes of a graph became, and the parts of a snapshot that equal nodes share.

Equal expressions become one object, so that whoever reads them can remember what he found by identity.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from tlcheck.snapshot.ir import Buffer, Expr
from tlcheck.worker.graph import NodeGraph

Fields = Mapping[str, Any]
T = TypeVar("T")


class Nodes:
    """A record of what the nodes of one graph became. Builders are called children first."""

    def __init__(self, graph: NodeGraph, lines: Sequence[int], same: Mapping[int, int]) -> None:
        """lines: source line of each node. same: variable node -> the node of the variable that it is a copy of."""
        self.graph = graph
        self.lines = lines
        self.same = same
        self.index = 0  # of the node that is being built
        self.done: list[Any] = [None] * len(graph.types)
        self._uid = len(graph.types)
        self._unique: dict[tuple[Any, ...], Any] = {}
        self._unknown: dict[str, Expr] = {}
        self._names: dict[str, str] = {}

    @property
    def line(self) -> int:
        """Source line of the statement that is being built."""
        return self.lines[self.index]

    def make(
        self,
        op: str,
        dtype: str,
        args: tuple[Expr, ...] = (),
        value: int | float | str | None = None,
        buffer: Buffer | None = None,
        annotations: tuple[tuple[str, str], ...] = (),
        computed: tuple[tuple[str, Expr], ...] = (),
    ) -> Expr:
        """The one expression of this form."""
        key = (op, dtype, args, repr(value) if op == "float" else value, buffer, annotations, computed)
        found: Expr | None = self._unique.get(key)
        if found is None:
            found = self._unique[key] = Expr(op, dtype, args, value, 0, buffer, annotations, computed)
        return found

    def remake(self, e: Expr, args: tuple[Expr, ...]) -> Expr:
        """`e` with other arguments."""
        return self.make(e.op, e.dtype, args, e.value, e.buffer, e.annotations, e.computed)

    def variable(self, name: str, dtype: str) -> Expr:
        """A variable that no other node refers to."""
        self._uid += 1
        return Expr("var", dtype, (), name, self._uid)

    def unique(self, key: tuple[Any, ...], create: Callable[..., T]) -> T:
        """The one object that `create(*key)` gives."""
        found: T | None = self._unique.get((create, key))
        if found is None:
            found = self._unique[create, key] = create(*key)
        return found

    def expr(self, index: int) -> Expr:
        """The expression at a node; `unknown` where it is none that is known."""
        found = self.done[index]
        return found if type(found) is Expr else self.unknown(self.graph.types[index])

    def exprs(self, index: int) -> tuple[Expr, ...]:
        """The expressions of an Array node."""
        return tuple([self.expr(i) for i in self.graph.items(index)])

    def unknown(self, what: str, args: tuple[Expr, ...] = ()) -> Expr:
        """An expression that is not understood; `args` are the understood ones in it."""
        return self.make("unknown", "", args, what)

    def operator(self, index: int) -> str:
        """The name of a call's operator without the namespace of the release."""
        kind = self.graph.types[index]
        name = self.graph.text(index)
        if kind == "GlobalVar":
            name = self.graph.text(self.graph.data[index]["name_hint"])
        short = self._names.get(name)
        if short is None:
            short = self._names[name] = name.rpartition(".")[2]
        return short

    def constant(self, index: int) -> str | None:
        """A plain value as text; None for what is none, such as a layout."""
        kind, value = self.graph.types[index], self.graph.data[index]
        if kind in ("IntImm", "FloatImm"):
            return str(bool(value["value"])) if value["dtype"] == "bool" else str(value["value"])
        if kind in ("String", "StringImm"):
            return self.graph.text(index)
        if kind in ("int", "float"):
            return str(value)
        if kind == "bool":
            return str(bool(value))
        if kind == "Array":
            parts = [self.constant(i) for i in value]
            return None if None in parts else f"[{', '.join(p for p in parts if p is not None)}]"
        if kind == "Map":
            return "{" + ", ".join(f"{k}: {v}" for k, v in self.constants(index)) + "}"
        return None

    def constants(self, index: int) -> tuple[tuple[str, str], ...]:
        """The plain values of a Map node, sorted by key."""
        found = [(self._key(key), self.constant(value)) for key, value in self.graph.pairs(index)]
        return tuple(sorted((key, value) for key, value in found if value is not None))

    def computed(self, index: int) -> tuple[tuple[str, Expr], ...]:
        """The expressions among the values of a Map node, sorted by key; those of an array as `key[0]`, `key[1]`."""
        pairs = [(self._key(key), value) for key, value in self.graph.pairs(index) if self.constant(value) is None]
        found = []
        for key, value in sorted(pairs):
            parts = [(f"{key}[{number}]", part) for number, part in enumerate(self.graph.items(value))]
            found += [(name, self.done[part]) for name, part in (parts or [(key, value)])]
        return tuple((name, made) for name, made in found if type(made) is Expr)

    def _key(self, key: str | int) -> str:
        """A Map's key as text; a variable or buffer by its name."""
        if isinstance(key, str):
            return key
        made = self.done[key]
        return made.name if isinstance(made, Buffer) else str(getattr(made, "value", self.graph.types[key]))


Builder = Callable[[Nodes, Fields], Any]
