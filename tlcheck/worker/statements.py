"""Statements and functions of the node graph, in the snapshot's one spelling.

Nested lets and allocations of the older releases become entries of a `Seq`, as the newer releases have them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from tlcheck.snapshot.ir import (
    Alloc,
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
from tlcheck.worker.memory import scope_of
from tlcheck.worker.nodes import Builder, Fields, Nodes

_LOOPS = ("serial", "parallel", "vectorized", "unrolled", "thread_binding")
_TVM = re.compile(r"\btirx?\.")
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
    return _seq((Alloc(buffer, line=nodes.line), _stmt(nodes, fields["body"])), nodes.line)


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
    notes = nodes.constants(fields["annotations"])
    step = nodes.expr(fields["step"]) if "step" in fields and nodes.graph.types[fields["step"]] else None
    if step is None or (step.op == "int" and step.value == 1):
        return For(var, start, extent, kind, body, notes, line=nodes.line)
    return _stepped(nodes, For(var, start, extent, kind, body, notes, line=nodes.line), step)


def _stepped(nodes: Nodes, loop: For, step: Expr) -> Stmt:
    """A loop with a step counts its iterations and binds the variable."""
    if step.op != "int" or not isinstance(step.value, int) or step.value <= 0:
        return Unknown("loop with a step", (loop,), line=loop.line)
    dtype = loop.var.dtype
    count = nodes.variable(str(loop.var.value), dtype)
    last = nodes.make("add", dtype, (loop.extent, nodes.make("int", dtype, (), step.value - 1)))
    trips = nodes.make("floordiv", dtype, (last, step))
    value = nodes.make("add", dtype, (loop.start, nodes.make("mul", dtype, (count, step))))
    body = _seq((Bind(loop.var, value, line=loop.line), loop.body), loop.line)
    zero = nodes.make("int", dtype, (), 0)
    return For(count, zero, trips, loop.kind, body, loop.annotations, line=loop.line)


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
    value = nodes.expr(node) if key == "tl.assume" else nodes.expr(fields["value"])
    return Attr(key, value, body, line=nodes.line)


def _store(nodes: Nodes, fields: Fields) -> Stmt:
    buffer, indices = nodes.done[fields["buffer"]], nodes.exprs(fields["indices"])
    store = Store(buffer, indices, nodes.expr(fields["value"]), line=nodes.line)
    if nodes.graph.types[fields["predicate"]]:
        return Unknown("predicated store", (store,), line=nodes.line)
    return store


def _evaluate(nodes: Nodes, fields: Fields) -> Stmt:
    return Evaluate(nodes.expr(fields["value"]), line=nodes.line)


def _block(nodes: Nodes, fields: Fields) -> Stmt:
    graph = nodes.graph
    allocs = [Alloc(nodes.done[i], line=nodes.line) for i in graph.items(fields["alloc_buffers"])]
    body = _seq((*allocs, _stmt(nodes, fields["body"])), nodes.line)
    if graph.types[fields["init"]] or graph.items(fields["match_buffers"]):
        body = Unknown("block with init or match_buffer", (body,), line=nodes.line)
    layouts = _layouts(nodes, fields["annotations"])
    notes = nodes.constants(fields["annotations"])
    notes = tuple((key, value) for key, value in notes if key != "layout_map")
    return Block(graph.text(fields["name_hint"]), body, layouts, notes, line=nodes.line)


def _layouts(nodes: Nodes, annotations: int) -> tuple[tuple[Expr, Layout], ...]:
    """The layout_map of a block, by the name of the buffer: TVM's maps have no stable order."""
    found: dict[int, tuple[Expr, Layout]] = {}
    for key, value in nodes.graph.pairs(annotations):
        if key != "layout_map":
            continue
        for owner, layout in nodes.graph.pairs(value):
            data = nodes.done[owner] if isinstance(owner, int) else None
            data = data.data if isinstance(data, Buffer) else data
            if isinstance(data, Expr) and isinstance(nodes.done[layout], Layout):
                found[data.uid] = (data, nodes.done[layout])
    return tuple(sorted(found.values(), key=lambda entry: (str(entry[0].value), entry[0].uid)))


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
