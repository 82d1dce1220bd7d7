"""From TVM's node graph to a snapshot."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tlcheck.snapshot.ir import Function, Seq, Snapshot
from tlcheck.worker.expressions import EXPRESSIONS
from tlcheck.worker.graph import Graph, GraphError, read_graph
from tlcheck.worker.memory import MEMORY
from tlcheck.worker.nodes import Nodes
from tlcheck.worker.statements import ENCLOSED, STATEMENTS

_BUILDERS = {**EXPRESSIONS, **MEMORY, **STATEMENTS}
_DEVICE = "2"  # calling_conv of a function that was split off for the device


def translate(text: str, meta: Mapping[str, Any]) -> Snapshot:
    """The snapshot of the modules in `text`, a `tvm.ir.save_json` of checkpoint name -> module.

    meta: case, file, line, toolchain, target, args, pass_configs, cuda, passes (checkpoint -> pass, in pipeline order)
    and atomic_lines (source lines of the atomics in program order, or none), as in `Snapshot`.
    Raises GraphError where the text is no such graph or a module has no function to look at.
    """
    graph = read_graph(text)
    nodes = Nodes(graph, _lines(graph, meta["file"]))
    _build(nodes)
    modules = {str(name): index for name, index in graph.pairs(graph.root)}
    checkpoints = {name: _device_function(nodes, modules[name]) for name in meta["passes"] if name in modules}
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
        cuda=meta["cuda"],
    )


def _build(nodes: Nodes) -> None:
    """Build every node; `order` has children first, so nothing recurses however deep the kernel nests."""
    types, data, done = nodes.graph.types, nodes.graph.data, nodes.done
    for index in nodes.graph.order:
        builder = _BUILDERS.get(types[index])
        if builder is not None:
            nodes.index = index
            done[index] = builder(nodes, data[index])


def _lines(graph: Graph, file: str) -> list[int]:
    """Source line of each statement: its own, else that of what encloses it; 0 where none is in the kernel's file."""
    lines = [0] * len(graph.types)
    own = os.path.realpath(file)
    for index in reversed(graph.order):
        fields = graph.data[index]
        if graph.types[index] not in STATEMENTS:
            continue
        span = fields["span"]
        if graph.types[span] == "Span" and os.path.realpath(graph.text(graph.data[span]["source_name"])) == own:
            lines[index] = graph.data[span]["line"]
        if lines[index]:
            for enclosed in (fields[key] for key in ENCLOSED if key in fields):
                for child in graph.items(enclosed) or (enclosed,):
                    lines[child] = lines[child] or lines[index]
    return lines


def _device_function(nodes: Nodes, module: int) -> Function:
    """The device function of a module: one that was split off, or the only one; kernels in sequence put together."""
    graph = nodes.graph
    if graph.types[module] != "IRModule":
        raise GraphError(f"{graph.types[module] or 'nothing'} where a module should be")
    functions = [nodes.done[index] for _, index in graph.pairs(graph.data[module]["functions"])]
    functions = [f for f in functions if isinstance(f, Function)]
    device = [f for f in functions if dict(f.attrs).get("calling_conv") == _DEVICE] or functions
    if len(device) > 1 and device is functions:
        raise GraphError(f"several functions in one module: {', '.join(sorted(f.name for f in functions))}")
    if not device:
        raise GraphError("no function in the module")
    return _in_sequence(sorted(device, key=lambda f: (len(f.name), f.name)))


def _in_sequence(kernels: list[Function]) -> Function:
    """One function that runs the kernels one after the other."""
    first = kernels[0]
    if len(kernels) == 1:
        return first
    params = {p.uid: p for k in kernels for p in k.params}
    buffers = {b.data.uid: b for k in kernels for b in k.buffers}
    body = Seq(tuple(k.body for k in kernels))
    return replace(first, params=tuple(params.values()), buffers=tuple(buffers.values()), body=body)
