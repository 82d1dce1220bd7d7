"""Statements and functions of the node graph, in the snapshot's one spelling.

Nested lets and allocations of the older releases become entries of a `Seq`, as the newer releases have them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

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
    Layout,
    Seq,
    Stmt,
    Store,
    Thread,
    Unknown,
    While,
)
from tlcheck.worker.graph_buffers import scope_of
from tlcheck.worker.graph_nodes import Builder, Fields, Nodes

_LOOPS = ("serial", "parallel", "vectorized", "unrolled", "thread_binding")
_TVM = re.compile(r"\btirx?\.")
_TYPED = ("layout_map", "barrier_init", "safe_value_map", "tl.launch_threads")  # annotations of a block
_FIRST = "tl.local_var_init"  # what variables begin with, up to 0.1.9
_THREAD_ATTRS = ("thread_extent", "virtual_thread")


def _stmt(nodes: Nodes, index: int) -> Stmt:
    """The statement at a node; `Unknown` where it is none that is known."""
    found = nodes.done[index]
    return found if isinstance(found, Stmt) else Unknown(nodes.graph.types[index], line=nodes.line)


def _seq(parts: Iterable[Stmt], line: int) -> Stmt:
    """Statements in order, without needless nesting; a Seq that declares something keeps its scope unless last."""
    flat: list[Stmt] = []
    pending = list(parts)
    for position, part in enumerate(pending):
        if type(part) is Seq and (position == len(pending) - 1 or not _declares(part)):
            flat.extend(part.body)
        else:
            flat.append(part)
    return flat[0] if len(flat) == 1 else Seq(tuple(flat), line=line)


def _declares(seq: Seq) -> bool:
    return any(type(part) in (Bind, Alloc) for part in seq.body)


def _sequence(nodes: Nodes, fields: Fields) -> Stmt:
    return _seq([_stmt(nodes, i) for i in nodes.graph.items(fields["seq"])], nodes.line)


def _bind(nodes: Nodes, fields: Fields) -> Stmt:
    bind = Bind(nodes.expr(fields["var"]), nodes.expr(fields["value"]), line=nodes.line)
    return _seq((bind, _stmt(nodes, fields["body"])), nodes.line) if "body" in fields else bind


def _allocate(nodes: Nodes, fields: Fields) -> Stmt:
    data = nodes.expr(fields["buffer_var"])
    scope = scope_of(nodes, fields["buffer_var"])
    buffer = Buffer(str(data.value), fields["dtype"], nodes.exprs(fields["extents"]), scope, data)
    notes = dict(nodes.graph.pairs(fields["annotations"])) if "annotations" in fields else {}
    first = _first_values(nodes, buffer, {data.uid: notes[_FIRST]} if _FIRST in notes else {})
    return _seq((Alloc(buffer, line=nodes.line), *first, _stmt(nodes, fields["body"])), nodes.line)


def _first_values(nodes: Nodes, buffer: Buffer, values: Mapping[int, int]) -> list[Stmt]:
    """The store of what a variable begins with, by the uids of pointers: releases from 0.1.11 on have it there."""
    if buffer.data.uid not in values:
        return []
    zero, value = nodes.make("int", "int32", (), 0), _number(nodes, values[buffer.data.uid])
    if value.dtype != buffer.dtype and isinstance(value.value, (int, float)):  # a number of Python's in 0.1.6
        op, kind = ("float", float) if "float" in buffer.dtype else ("int", int)
        value = nodes.make(op, buffer.dtype, (), kind(value.value))
    return [Store(buffer, (zero,), value, line=nodes.line)]


def _alloc_buffer(nodes: Nodes, fields: Fields) -> Stmt:
    alloc = Alloc(nodes.done[fields["buffer"]], line=nodes.line)
    return _seq((alloc, _stmt(nodes, fields["body"])), nodes.line) if "body" in fields else alloc


def _decl_buffer(nodes: Nodes, fields: Fields) -> Stmt:
    """A view of memory that is there already: each access carries its buffer, so nothing is left."""
    return _stmt(nodes, fields["body"]) if "body" in fields else Seq((), line=nodes.line)


def _for(nodes: Nodes, fields: Fields) -> Stmt:
    var, start, extent = (nodes.expr(fields[k]) for k in ("loop_var", "min", "extent"))
    body, kind = _stmt(nodes, fields["body"]), _LOOPS[int(fields["kind"])]
    binding = fields["thread_binding"]
    if kind == "thread_binding" and nodes.graph.types[binding] == "IterVar":
        return Thread(var, nodes.graph.text(nodes.graph.data[binding]["thread_tag"]), extent, body, line=nodes.line)
    # how a parallel loop is spread over threads, where that is decided
    annotations = fields["annotations"]
    found = [nodes.done[value] for key, value in nodes.graph.pairs(annotations) if key == "parallel_loop_layout"]
    loop = For(
        var,
        start,
        extent,
        kind,
        body,
        nodes.constants(fields["annotations"]),
        nodes.computed(fields["annotations"]),
        next((layout for layout in found if isinstance(layout, Layout)), None),
        line=nodes.line,
    )
    step = nodes.expr(fields["step"]) if "step" in fields and nodes.graph.types[fields["step"]] else None
    if step is None or (step.op == "int" and step.value == 1):
        return loop
    # a loop with a step counts its iterations and binds the variable
    if step.op != "int" or not isinstance(step.value, int) or step.value <= 0:
        return Unknown("loop with a step", (loop,), line=loop.line)
    dtype = loop.var.dtype
    count = nodes.variable(str(loop.var.value), dtype)
    last = nodes.make("add", dtype, (loop.extent, nodes.make("int", dtype, (), step.value - 1)))
    trips = nodes.make("floordiv", dtype, (last, step))
    value = nodes.make("add", dtype, (loop.start, nodes.make("mul", dtype, (count, step))))
    body = _seq((Bind(loop.var, value, line=loop.line), loop.body), loop.line)
    zero = nodes.make("int", dtype, (), 0)
    return replace(loop, var=count, start=zero, extent=trips, body=body)


def _while(nodes: Nodes, fields: Fields) -> Stmt:
    return While(nodes.expr(fields["condition"]), _stmt(nodes, fields["body"]), line=nodes.line)


def _if(nodes: Nodes, fields: Fields) -> Stmt:
    orelse = _stmt(nodes, fields["else_case"]) if nodes.graph.types[fields["else_case"]] else None
    return If(nodes.expr(fields["condition"]), _stmt(nodes, fields["then_case"]), orelse, line=nodes.line)


def _attr(nodes: Nodes, fields: Fields) -> Stmt:
    graph, node = nodes.graph, fields["node"]
    key, body = graph.text(fields["attr_key"]), _stmt(nodes, fields["body"])
    if key in _THREAD_ATTRS and graph.types[node] == "IterVar":
        axis = graph.data[node]
        tag = graph.text(axis["thread_tag"])
        return Thread(nodes.expr(axis["var"]), tag, nodes.expr(fields["value"]), body, line=nodes.line)
    if key == "tl.assume":
        return Attr(key, nodes.expr(node), body, line=nodes.line)
    return Attr(key, nodes.expr(fields["value"]), body, _about(nodes, key, node), line=nodes.line)


_REDUCER = ("lhs", "rhs", "result", "identity_element")


def _about(nodes: Nodes, key: str, node: int) -> tuple[Expr, ...]:
    """The node of an attribute: of a reducer its two variables, what it makes of them, and what changes nothing.

    Not a plain number, which says nothing, and not the loop that a pragma stands in.
    """
    if nodes.graph.types[node] == "Array":
        return nodes.exprs(node)
    if nodes.graph.types[node] == "CommReducer":
        parts = nodes.graph.data[node]
        return tuple([e for name in _REDUCER for e in nodes.exprs(parts[name])])
    found = nodes.done[node]
    if key.startswith("pragma_") or type(found) is not Expr or found.op == "int":
        return ()
    return (found,)


def _assert(nodes: Nodes, fields: Fields) -> Stmt:
    graph = nodes.graph
    parts = graph.items(fields["message_parts"]) if "message_parts" in fields else [fields["message"]]
    found = Assert(nodes.expr(fields["condition"]), "".join(graph.text(part) for part in parts), line=nodes.line)
    return _seq((found, _stmt(nodes, fields["body"])), nodes.line) if "body" in fields else found


def _store(nodes: Nodes, fields: Fields) -> Stmt:
    buffer, indices = nodes.done[fields["buffer"]], nodes.exprs(fields["indices"])
    predicate = nodes.expr(fields["predicate"]) if nodes.graph.types[fields["predicate"]] else None
    return Store(buffer, indices, nodes.expr(fields["value"]), predicate, line=nodes.line)


def _evaluate(nodes: Nodes, fields: Fields) -> Stmt:
    return Evaluate(nodes.expr(fields["value"]), line=nodes.line)


def _block(nodes: Nodes, fields: Fields) -> Stmt:
    graph = nodes.graph
    notes = fields["annotations"]
    values = {d.uid: v for key, value in graph.pairs(notes) if key == _FIRST for d, v in _by_pointer(nodes, value)}
    allocs: list[Stmt] = []
    for buffer in [nodes.done[i] for i in graph.items(fields["alloc_buffers"])]:
        allocs += [Alloc(buffer, line=nodes.line), *_first_values(nodes, buffer, values)]
    body = _seq((*allocs, _stmt(nodes, fields["body"])), nodes.line)
    if graph.types[fields["init"]] or graph.items(fields["match_buffers"]):
        body = Unknown("block with init or match_buffer", (body,), line=nodes.line)
    typed = {key: value for key, value in graph.pairs(notes) if key in _TYPED}
    maps = {key: _by_pointer(nodes, value) for key, value in typed.items()}
    return Block(
        graph.text(fields["name_hint"]),
        body,
        tuple([(d, nodes.done[v]) for d, v in maps.get("layout_map", ()) if isinstance(nodes.done[v], Layout)]),
        tuple([(key, value) for key, value in nodes.constants(notes) if key not in _TYPED]),
        tuple([(d, nodes.exprs(v)) for d, v in maps.get("barrier_init", ())]),
        tuple([(d, _number(nodes, v)) for d, v in maps.get("safe_value_map", ())]),
        nodes.exprs(typed["tl.launch_threads"]) if "tl.launch_threads" in typed else (),
        line=nodes.line,
    )


def _by_pointer(nodes: Nodes, mapping: int) -> list[tuple[Expr, int]]:
    """A map from buffers or pointers to nodes, by the pointer's name: TVM's maps have no stable order."""
    found: dict[int, tuple[Expr, int]] = {}
    for owner, value in nodes.graph.pairs(mapping):
        data = nodes.done[owner] if isinstance(owner, int) else None
        data = data.data if isinstance(data, Buffer) else data
        if isinstance(data, Expr):
            found[data.uid] = (data, value)
    return sorted(found.values(), key=lambda entry: (str(entry[0].value), entry[0].uid))


def _number(nodes: Nodes, index: int) -> Expr:
    """A constant; the script leaves Python's numbers as they are."""
    kind, value = nodes.graph.types[index], nodes.graph.data[index]
    if kind == "float":
        return nodes.make("float", "float32", (), float(value))
    if kind in ("int", "bool"):
        return nodes.make("int", "int32", (), int(value))
    return nodes.expr(index)


def _block_realize(nodes: Nodes, fields: Fields) -> Stmt:
    graph, block = nodes.graph, _stmt(nodes, fields["block"])
    axes = graph.items(graph.data[fields["block"]]["iter_vars"])
    binds = [
        Bind(nodes.expr(graph.data[axis]["var"]), nodes.expr(value), line=nodes.line)
        for axis, value in zip(axes, graph.items(fields["iter_values"]), strict=True)
    ]
    predicate = nodes.expr(fields["predicate"])
    if not (predicate.op == "int" and predicate.value):
        block = If(predicate, block, line=nodes.line)
    return _seq((*binds, block), nodes.line)


def _function(nodes: Nodes, fields: Fields) -> Function:
    graph = nodes.graph
    declared = {key: nodes.done[value] for key, value in graph.pairs(fields["buffer_map"])}
    params = [declared[i].data if i in declared else nodes.expr(i) for i in graph.items(fields["params"])]
    buffers = [declared[i] for i in graph.items(fields["params"]) if i in declared]
    attrs = dict(_attributes(nodes, fields["attrs"]))
    name = attrs.pop("global_symbol", "")
    body = _stmt(nodes, fields["body"])
    return Function(name, tuple(params), tuple(buffers), tuple(attrs.items()), body)


def _attributes(nodes: Nodes, index: int) -> Iterator[tuple[str, str]]:
    """Attributes of a function without the target, which the snapshot names, and without the namespace of TVM's own."""
    if nodes.graph.types[index]:
        for key, value in nodes.constants(nodes.graph.data[index]["__dict__"]):
            yield _TVM.sub("", key), _TVM.sub("", value)


STATEMENTS: dict[str, Builder] = {
    "SeqStmt": _sequence,
    "LetStmt": _bind,
    "Bind": _bind,
    "Allocate": _allocate,
    "AllocBuffer": _alloc_buffer,
    "DeclBuffer": _decl_buffer,
    "For": _for,
    "While": _while,
    "IfThenElse": _if,
    "AssertStmt": _assert,
    "AttrStmt": _attr,
    "BufferStore": _store,
    "Evaluate": _evaluate,
    "Block": _block,
    "SBlock": _block,
    "BlockRealize": _block_realize,
    "SBlockRealize": _block_realize,
    "PrimFunc": _function,
}

# Where a statement's node refers to the statements that it encloses, and those whose own line says nothing about these.
ENCLOSED = ("body", "then_case", "else_case", "block", "seq")
FRAMES = ("PrimFunc", "AttrStmt", "Block", "SBlock", "BlockRealize", "SBlockRealize")
