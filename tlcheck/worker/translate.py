"""Translate TVM's node graph into a snapshot."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tlcheck.snapshot.ir import Evaluate, Expr, Function, Launch, Seq, Snapshot, Thread, Unknown
from tlcheck.snapshot.walk import statements
from tlcheck.worker.cuda_source import without_places
from tlcheck.worker.expressions import EXPRESSIONS
from tlcheck.worker.graph import GraphError, NodeGraph, read_graph
from tlcheck.worker.graph_buffers import MEMORY
from tlcheck.worker.graph_nodes import Nodes
from tlcheck.worker.parameters import TENSOR_MAPS, descriptors, parameter_copies
from tlcheck.worker.shared_memory import unmerge_all
from tlcheck.worker.statements import ENCLOSED, FRAMES, STATEMENTS

_BUILDERS = {**EXPRESSIONS, **MEMORY, **STATEMENTS}


def translate(text: str, meta: Mapping[str, Any]) -> Snapshot:
    """The snapshot of the modules in `text`, the node graph of checkpoint name -> module.

    meta: case, file, line, toolchain, target, args, pass_configs, cuda and passes, as in `Snapshot`. Among the modules
    there may be one named UNMERGED (see `tlcheck.worker.shared_memory`), which becomes no checkpoint.
    Raises GraphError where the text is no such graph or a module has no function to look at.
    """
    graph = read_graph(text)
    calls = descriptors(graph)
    nodes = Nodes(graph, _lines(graph, meta["file"]), parameter_copies(graph, calls))
    _build(nodes)
    made = {variable: _descriptor(nodes, call) for variable, call in calls.items()}
    modules = {str(name): index for name, index in graph.pairs(graph.root)}
    functions = {name: _device_function(nodes, modules[name]) for name in meta["passes"] if name in modules}
    checkpoints = {name: _with_descriptors(f, made) for name, f in functions.items() if f is not None}
    unmerged = unmerge_all(checkpoints, meta["passes"], nodes)
    return Snapshot(
        case=meta["case"],
        file=meta["file"],
        line=meta["line"],
        toolchain=dict(meta["toolchain"]),
        target=meta["target"],
        args=dict(meta["args"]),
        pass_configs=dict(meta["pass_configs"]),
        checkpoints=checkpoints,
        passes={name: meta["passes"][name] for name in checkpoints},
        cuda=without_places(meta["cuda"]) if unmerged else meta["cuda"],
        headers=meta.get("headers", ""),
    )


def _descriptor(nodes: Nodes, call: int) -> Expr:
    """The host's call that makes a TMA descriptor, as the kernel has it before the split."""
    name, _, *fields = nodes.graph.items(nodes.graph.data[call]["args"])
    args = tuple([nodes.expr(field) for field in fields])
    return nodes.make("call", "handle", args, TENSOR_MAPS[nodes.graph.text(name)])


def _with_descriptors(function: Function, made: Mapping[int, Expr]) -> Function:
    """The function, and how those of its parameters that are TMA descriptors are made."""
    found = [(param, made[param.uid]) for param in function.params if param.uid in made]
    return replace(function, descriptors=tuple(found)) if found else function


def _build(nodes: Nodes) -> None:
    """Build every node; `order` has children first, so nothing recurses however deep the kernel nests."""
    types, data, done = nodes.graph.types, nodes.graph.data, nodes.done
    for index in nodes.graph.order:
        builder = _BUILDERS.get(types[index])
        if builder is not None:
            nodes.index = index
            try:
                done[index] = builder(nodes, data[index])
            except (LookupError, TypeError, ValueError, AttributeError):  # a release that writes other fields
                kind = types[index]
                done[index] = Unknown(kind, line=nodes.line) if kind in STATEMENTS else nodes.unknown(kind)


def _lines(graph: NodeGraph, file: str) -> list[int]:
    """Source line of each statement: its own, else that of the loop or branch around it; 0 where none is in `file`.

    The line of a kernel's launch or of a block is not handed down: it would be every statement's.
    """
    lines = [0] * len(graph.types)
    wanted = os.path.realpath(file)
    sources = {i for i in graph.of("SourceName") if os.path.realpath(graph.text(i)) == wanted}
    spans = ((i, graph.data[i]) for i in graph.of("Span"))
    own = {i: span["line"] for i, span in spans if span["source_name"] in sources}
    for index in reversed(graph.order):
        kind, fields = graph.types[index], graph.data[index]
        if kind not in STATEMENTS:
            continue
        line = own.get(fields.get("span", -1), 0)
        inherited = lines[index] if kind in FRAMES else line or lines[index]
        lines[index] = line or lines[index]
        for enclosed in (fields[key] for key in ENCLOSED if key in fields) if inherited else ():
            for child in graph.items(enclosed) or (enclosed,):
                lines[child] = lines[child] or inherited
    return lines


def _device_function(nodes: Nodes, module: int) -> Function | None:
    """Return what a module runs on the device: the functions that launch threads, several kernels as launches in
    sequence.

    None for a module that has been stripped of its device side.
    """
    graph = nodes.graph
    if graph.types[module] != "IRModule":
        raise GraphError(f"{graph.types[module] or 'nothing'} where a module should be")
    functions = []
    for owner, index in graph.pairs(graph.data[module]["functions"]):
        if isinstance(nodes.done[index], Function) and isinstance(owner, int):
            name = graph.text(graph.data[owner]["name_hint"])
            functions.append(replace(nodes.done[index], name=name))
    device = [f for f in functions if _launches(f)] or _called(functions)
    split = [f for f in functions if "calling_conv" in dict(f.attrs)]
    if not device and (split or not functions):
        return None
    device = device or functions
    if len(device) == len(functions) > max(1, len(split)):
        raise GraphError(f"{len(device)} kernels in one module, expected one: {sorted(f.name for f in device)}")
    return _in_sequence(sorted(device, key=lambda f: (len(f.name), f.name)))


def _launches(function: Function) -> bool:
    return any(isinstance(stmt, Thread) for stmt in statements(function.body))


def _called(functions: list[Function]) -> list[Function]:
    """Return the functions that another one calls: an empty kernel launches no thread once the host is apart."""
    called = {stmt.value.value for f in functions for stmt in statements(f.body) if isinstance(stmt, Evaluate)}
    return [function for function in functions if function.name in called]


def _in_sequence(kernels: list[Function]) -> Function:
    """One function that runs the kernels one after the other."""
    first = kernels[0]
    if len(kernels) == 1:
        return first
    params = {p.uid: p for k in kernels for p in k.params}
    buffers = {b.data.uid: b for k in kernels for b in k.buffers}
    body = Seq(tuple(Launch(k.name, k.params, k.attrs, k.body) for k in kernels))
    return replace(first, params=tuple(params.values()), buffers=tuple(buffers.values()), body=body)
