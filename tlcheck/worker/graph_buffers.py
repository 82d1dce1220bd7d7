"""Buffers and layouts of the node graph."""

from __future__ import annotations

from tlcheck.snapshot.ir import Buffer, Expr, Layout
from tlcheck.snapshot.walk import postorder, substitute
from tlcheck.worker.graph_nodes import Builder, Fields, Nodes

REPLICA = "_rep"


def _buffer(nodes: Nodes, fields: Fields) -> Buffer:
    data = nodes.expr(fields["data"])
    shape, strides = nodes.exprs(fields["shape"]), nodes.exprs(fields["strides"])
    offset: Expr | None = nodes.expr(fields["elem_offset"]) if nodes.graph.types[fields["elem_offset"]] else None
    if offset is not None and offset.op == "int" and offset.value == 0:
        offset = None
    if strides and _is_compact(shape, strides):
        strides = ()
    name = nodes.graph.text(fields["name"])
    key = (name, fields["dtype"], shape, scope_of(nodes, fields["data"]), data, strides, offset)
    return nodes.unique(key, Buffer)


def _is_compact(shape: tuple[Expr, ...], strides: tuple[Expr, ...]) -> bool:
    """Whether constant strides are those of a compact row-major buffer."""
    if len(shape) != len(strides):
        return False
    expected = 1
    for extent, stride in zip(reversed(shape), reversed(strides), strict=True):
        if stride.op != "int" or stride.value != expected or extent.op != "int":
            return False
        expected *= int(extent.value or 0)
    return True


def scope_of(nodes: Nodes, index: int) -> str:
    """The memory that a pointer variable's type names; `global` where it names none."""
    graph = nodes.graph
    if graph.types[index] not in ("Var", "SizeVar"):
        return "global"
    kind = graph.data[index]["type_annotation"]
    if graph.types[kind] != "PointerType":
        return "global"
    return graph.text(graph.data[kind]["storage_scope"]) or "global"


def _layout(nodes: Nodes, fields: Fields) -> Layout:
    shape, index = nodes.exprs(fields["input_size"]), nodes.exprs(fields["forward_index"])
    thread = nodes.expr(fields["forward_thread"]) if "forward_thread" in fields else None
    replicas = nodes.expr(fields["replicate_size"]) if "replicate_size" in fields else None
    count = int(replicas.value or 1) if replicas is not None and replicas.op == "int" else 1
    return nodes.unique((nodes, shape, index, thread, count, _thread_start(nodes, fields)), _with_own_variables)


def _thread_start(nodes: Nodes, fields: Fields) -> int:
    """First thread of the branch that uses a fragment: releases that specialize warps before lowering record it."""
    span = fields.get("thread_range")
    if span is None or nodes.graph.types[span] != "Range":
        return 0
    start = nodes.expr(nodes.graph.data[span]["min"])
    return int(start.value or 0) if start.op == "int" else 0


def _with_own_variables(
    nodes: Nodes, shape: tuple[Expr, ...], index: tuple[Expr, ...], thread: Expr | None, replicas: int, start: int
) -> Layout:
    """All layouts of a process share TileLang's placeholders: `_i`, `_j`, ... by position, `_rep` for the replica."""
    names = [chr(ord("i") + d) for d in range(len(shape))]
    own = {f"_{name}": nodes.variable(name, "int32") for name in names}
    roots = index if thread is None else (*index, thread)
    placeholders = {str(e.value): e for e in postorder(roots) if e.op == "var"}
    if replicas > 1 or REPLICA in placeholders:
        own[REPLICA] = nodes.variable("rep", "int32")
    new = substitute(roots, {placeholders[n].uid: v for n, v in own.items() if n in placeholders}, nodes.remake)
    return Layout(
        tuple(own[f"_{name}"] for name in names),
        shape,
        tuple(new[: len(index)]),
        None if thread is None else new[-1],
        own.get(REPLICA),
        replicas,
        start,
    )


MEMORY: dict[str, Builder] = {"Buffer": _buffer, "Layout": _layout, "Fragment": _layout}
