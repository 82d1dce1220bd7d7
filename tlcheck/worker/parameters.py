"""Parameters of the device functions: splitting them off gives each fresh variables of the old names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from tlcheck.worker.graph import Graph


def parameter_copies(graph: Graph) -> dict[int, int]:
    """Variable node -> the node of the variable that it was before the split.

    A parameter of a function without declared buffers is the pointer, or the symbolic size, of that name in a function
    that declares some; parameters of several kernels that are neither, such as TMA descriptors, are one by their name.
    """
    first: dict[str, int] = {}
    for function in _functions(graph):
        for name, node in _declared(graph, function):
            first.setdefault(name, node)
    copies: dict[int, int] = {}
    for function in _functions(graph):
        if not graph.pairs(graph.data[function]["buffer_map"]):
            for node in graph.items(graph.data[function]["params"]):
                copies[node] = first.setdefault(_name(graph, node), node)
    return copies


def _functions(graph: Graph) -> Iterator[int]:
    return (index for index, kind in enumerate(graph.types) if kind == "PrimFunc")


def _name(graph: Graph, variable: int) -> str:
    return graph.text(graph.data[variable]["name"])


def _declared(graph: Graph, function: int) -> Iterator[tuple[str, int]]:
    """Name and node of the pointers and symbolic sizes of a function's buffers; not of names that it has twice."""
    buffers = [graph.data[buffer] for _, buffer in graph.pairs(graph.data[function]["buffer_map"])]
    nodes = {b["data"] for b in buffers} | {extent for b in buffers for extent in graph.items(b["shape"])}
    variables = sorted(node for node in nodes if graph.types[node] in ("Var", "SizeVar"))
    names = Counter(_name(graph, v) for v in variables)
    return ((_name(graph, v), v) for v in variables if names[_name(graph, v)] == 1)
