"""TVM's node graph, as TVM writes it as JSON, in one form for both of its dialects.

One text holds many modules; nodes that they share are there once. Standard library only, no TVM.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

NULL_TYPES = ("", "None")


class GraphError(ValueError):
    """The text is not a graph of nodes in a known dialect."""


@dataclass(frozen=True, slots=True)
class NodeGraph:
    """All nodes by index.

    types: without the namespace, which differs between releases: `Add`, `SBlock`, `IntImm`, `Array`; empty for null.
    data: of an object its fields, name -> index of a node or a plain value (the reader knows which); of an Array the
        indices; of a Map (key, index) pairs, where the key is a text or the index of a node; of a String, Op or
        SourceName the text; of a plain number the number.
    order: every index once, a node after the nodes that it refers to.
    root: index of the root.
    """

    types: list[str]
    data: list[Any]
    order: Sequence[int]
    root: int
    _kinds: dict[str, list[int]] = field(default_factory=dict, compare=False)

    def of(self, kind: str) -> list[int]:
        """The indices of all nodes of a type, ascending."""
        if not self._kinds:
            for index, name in enumerate(self.types):
                self._kinds.setdefault(name, []).append(index)
        return self._kinds.get(kind, [])

    def text(self, index: int) -> str:
        """The text of a String, Op, SourceName or StringImm node; empty for others."""
        value = self.data[index]
        if self.types[index] == "StringImm":
            return self.text(value["value"])
        return value if isinstance(value, str) else ""

    def pairs(self, index: int) -> list[tuple[str | int, int]]:
        """The entries of a Map node; none for null."""
        return self.data[index] if self.types[index] == "Map" else []

    def items(self, index: int) -> list[int]:
        """The elements of an Array node; none for null."""
        return self.data[index] if self.types[index] == "Array" else []


def read_graph(text: str) -> NodeGraph:
    """Read the text of a graph. Raises GraphError."""
    try:
        whole = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _no_graph(error) from None
    return as_graph(whole)


def as_graph(whole: dict[str, Any]) -> NodeGraph:
    """The graph in either dialect: tvm_ffi's (0.1.7 and later) or the one of 0.1.6.post2. Raises GraphError."""
    try:
        if "root_index" in whole:
            return _read_ffi(whole["nodes"], whole["root_index"])
        return _read_attrs(whole["nodes"], whole["root"])
    except (KeyError, TypeError, IndexError, ValueError, RecursionError) as error:
        raise _no_graph(error) from None


def _no_graph(error: Exception) -> GraphError:
    return GraphError(f"not a graph of TVM nodes: {type(error).__name__}: {error}")


def _read_ffi(nodes: list[Mapping[str, Any]], root: int) -> NodeGraph:
    """`{"type", "data"}`: plain values are typed nodes, children come first."""
    types = [_short(node["type"]) for node in nodes]
    data: list[Any] = [node.get("data") for node in nodes]
    graph = NodeGraph(types, data, range(len(nodes)), root)
    for index in graph.of("Map"):
        pairs = zip(data[index][::2], data[index][1::2], strict=True)
        data[index] = [(k if types[k] != "String" else data[k], v) for k, v in pairs]
    return graph


def _read_attrs(nodes: list[Mapping[str, Any]], root: int) -> NodeGraph:
    """`{"type_key", "attrs" | "data" | "repr_str", "keys"}`: every field is a text, parents come first."""
    types = [_short(node["type_key"]) for node in nodes]
    data: list[Any] = []
    for node, kind in zip(nodes, types, strict=True):
        if "repr_str" in node:
            data.append(node["repr_str"])
        elif kind == "Map":
            data.append(_pairs(node.get("keys"), node.get("data", [])))
        elif kind == "Array":
            data.append(node.get("data", []))
        elif kind in ("String", "Op"):
            data.append("")
        else:
            fields = {k: _plain(v) for k, v in node.get("attrs", {}).items()}
            data.append(fields.get("v_int64", fields.get("v_float64", fields)))
    for kind, value in zip(types, data, strict=True):
        if kind == "Map":  # texts may be keys by reference too
            value[:] = [(data[k] if isinstance(k, int) and types[k] == "String" else k, v) for k, v in value]
    return NodeGraph(types, data, _children_first(types, data), root)


def _pairs(keys: list[str] | None, data: list[int]) -> list[tuple[str | int, int]]:
    if keys is not None:
        return list(zip(keys, data, strict=True))
    return list(zip(data[::2], data[1::2], strict=True))


def _plain(value: str) -> int | float | str:
    """A field of the older dialect: an index or a number where it reads as one; null is node 0."""
    if value == "null":
        return 0
    try:
        return int(value)
    except ValueError:
        pass
    try:
        return float(value)
    except ValueError:
        return value


@cache
def _short(name: str) -> str:
    kind = name.rpartition(".")[2]
    return "" if kind in NULL_TYPES else kind


def _children_first(types: list[str], data: list[Any]) -> list[int]:
    """Indices in post-order, without recursion."""
    order: list[int] = []
    state = bytearray(len(types))  # 0 new, 1 entered, 2 done
    for start in range(len(types)):
        stack = [start]
        while stack:
            node = stack[-1]
            if state[node]:
                stack.pop()
                if state[node] == 1:
                    state[node] = 2
                    order.append(node)
                continue
            state[node] = 1
            stack.extend(c for c in _references(types[node], data[node], len(types)) if not state[c])
    return order


# Fields that hold a number, not an index, and nodes that refer to nothing.
_NUMBERS = frozenset(("kind", "data_alignment", "offset_factor", "buffer_type", "ndim", "iter_type"))
_LEAVES = frozenset(("IntImm", "FloatImm", "Span", "int", "bool", "float"))


def _references(kind: str, value: Any, count: int) -> list[int]:
    """Indices that a node of the older dialect refers to, last first so that the first is visited first."""
    if kind == "Array":
        found = value
    elif kind == "Map":
        found = [i for pair in value for i in pair if isinstance(i, int)]
    elif isinstance(value, dict) and kind not in _LEAVES:
        found = [v for k, v in value.items() if k not in _NUMBERS and isinstance(v, int)]
    else:
        return []
    return [i for i in reversed(found) if 0 <= i < count]
