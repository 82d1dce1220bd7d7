"""Parameters of the device functions: splitting them off gives each fresh variables of the old names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator

from tlcheck.worker.graph import NodeGraph

# What the host calls to make a descriptor -> what the kernel calls it before host and device are split.
TENSOR_MAPS = {
    "__tvm_tensormap_create_tiled": "create_tma_descriptor",
    "__tvm_tensormap_create_im2col": "create_tma_im2col_descriptor",
}


def parameter_copies(graph: NodeGraph, made: Collection[int]) -> dict[int, int]:
    """Variable node -> the node of the variable that it was before the split.

    A parameter of a function without declared buffers is the pointer, or the symbolic size, of that name in a function
    that declares some. A TMA descriptor is the variable that the host passes: several may have one name. What is none
    of these is one by its name in all kernels. made: variables of `descriptors`.
    """
    passed = {node: host for node, host in _arguments(graph) if host in made}
    first: dict[str, int] = {}
    for function in graph.of("PrimFunc"):
        for name, node in _declared(graph, function):
            first.setdefault(name, node)
    copies: dict[int, int] = {}
    for function in graph.of("PrimFunc"):
        if not graph.pairs(graph.data[function]["buffer_map"]):
            for node in graph.items(graph.data[function]["params"]):
                copies[node] = passed.get(node) or first.setdefault(_name(graph, node), node)
    return copies


def descriptors(graph: NodeGraph) -> dict[int, int]:
    """Variable node of a TMA descriptor on the host -> the node of the call that makes it."""
    found: dict[int, int] = {}
    for index in graph.of("Call"):
        args = graph.items(graph.data[index]["args"])
        if len(args) > 1 and graph.text(args[0]) in TENSOR_MAPS and graph.types[args[1]] == "Var":
            found[args[1]] = index
    return found


def _arguments(graph: NodeGraph) -> Iterator[tuple[int, int]]:
    """Node of each parameter of a kernel, with the node that the host passes for it."""
    kernels: dict[str, list[list[int]]] = {}
    for index in graph.of("IRModule"):
        for owner, function in graph.pairs(graph.data[index]["functions"]):
            if isinstance(owner, int) and graph.types[function] == "PrimFunc":
                name = graph.text(graph.data[owner]["name_hint"])
                kernels.setdefault(name, []).append(graph.items(graph.data[function]["params"]))
    for index in graph.of("Call"):
        if graph.types[graph.data[index]["op"]] == "GlobalVar":
            args = graph.items(graph.data[index]["args"])
            for params in kernels.get(graph.text(graph.data[graph.data[index]["op"]]["name_hint"]), ()):
                if len(params) == len(args):
                    yield from zip(params, args, strict=True)


def _name(graph: NodeGraph, variable: int) -> str:
    return graph.text(graph.data[variable]["name"])


def _declared(graph: NodeGraph, function: int) -> Iterator[tuple[str, int]]:
    """Name and node of the pointers and symbolic sizes of a function's buffers; not of names that it has twice."""
    buffers = [graph.data[buffer] for _, buffer in graph.pairs(graph.data[function]["buffer_map"])]
    nodes = {b["data"] for b in buffers} | {extent for b in buffers for extent in graph.items(b["shape"])}
    variables = sorted(node for node in nodes if graph.types[node] in ("Var", "SizeVar"))
    names = Counter(_name(graph, v) for v in variables)
    return ((_name(graph, v), v) for v in variables if names[_name(graph, v)] == 1)
