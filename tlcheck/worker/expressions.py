"""Expressions of the node graph, in the snapshot's one spelling."""

from __future__ import annotations

from collections.abc import Callable

from tlcheck.snapshot.ir import Buffer, Expr
from tlcheck.worker.graph_nodes import Builder, Fields, Nodes

_BINARY = {
    "Add": "add",
    "Sub": "sub",
    "Mul": "mul",
    "Mod": "truncmod",
    "FloorDiv": "floordiv",
    "FloorMod": "floormod",
    "Min": "min",
    "Max": "max",
    "EQ": "eq",
    "NE": "ne",
    "LT": "lt",
    "LE": "le",
    "GT": "gt",
    "GE": "ge",
    "And": "and",
    "Or": "or",
}


def _binary(op: str) -> Builder:
    def build(nodes: Nodes, fields: Fields) -> Expr:
        return nodes.make(op, fields["dtype"], (nodes.expr(fields["a"]), nodes.expr(fields["b"])))

    return build


def _division(nodes: Nodes, fields: Fields) -> Expr:
    """TVM has one division; of integers it is C's."""
    op = "truncdiv" if fields["dtype"].startswith(("int", "uint")) else "div"
    return nodes.make(op, fields["dtype"], (nodes.expr(fields["a"]), nodes.expr(fields["b"])))


def _integer(nodes: Nodes, fields: Fields) -> Expr:
    return nodes.make("int", fields["dtype"], (), int(fields["value"]))


def _float(nodes: Nodes, fields: Fields) -> Expr:
    return nodes.make("float", fields["dtype"], (), float(fields["value"]))


def _string(nodes: Nodes, fields: Fields) -> Expr:
    return nodes.make("str", "handle", (), nodes.graph.text(fields["value"]))


def _variable(nodes: Nodes, fields: Fields) -> Expr:
    """One expression per variable: its uid is the index of its node."""
    index = nodes.same.get(nodes.index, nodes.index)
    return nodes.unique(("var", fields["dtype"], (), nodes.graph.text(fields["name"]), index), Expr)


def _not(nodes: Nodes, fields: Fields) -> Expr:
    return nodes.make("not", fields["dtype"], (nodes.expr(fields["a"]),))


def _select(nodes: Nodes, fields: Fields) -> Expr:
    parts = [nodes.expr(fields[k]) for k in ("condition", "true_value", "false_value")]
    return nodes.make("select", fields["dtype"], tuple(parts))


def _cast(nodes: Nodes, fields: Fields) -> Expr:
    return nodes.make("cast", fields["dtype"], (nodes.expr(fields["value"]),))


def _ramp(nodes: Nodes, fields: Fields) -> Expr:
    lanes = nodes.expr(fields["lanes"])
    base, stride = nodes.expr(fields["base"]), nodes.expr(fields["stride"])
    if lanes.op != "int":
        return nodes.unknown("ramp of unknown length", (base, stride, lanes))
    return nodes.make("ramp", fields["dtype"], (base, stride), lanes.value)


def _broadcast(nodes: Nodes, fields: Fields) -> Expr:
    lanes, value = nodes.expr(fields["lanes"]), nodes.expr(fields["value"])
    if lanes.op != "int":
        return nodes.unknown("broadcast of unknown length", (value, lanes))
    return nodes.make("broadcast", fields["dtype"], (value,), lanes.value)


def _load(nodes: Nodes, fields: Fields) -> Expr:
    buffer, indices = nodes.done[fields["buffer"]], nodes.exprs(fields["indices"])
    if not isinstance(buffer, Buffer):
        return nodes.unknown("load from no buffer", indices)
    load = nodes.make("load", fields["dtype"], indices, None, buffer)
    if nodes.graph.types[fields["predicate"]]:
        return nodes.make("predicated", load.dtype, (load, nodes.expr(fields["predicate"])))
    return load


def _let(nodes: Nodes, fields: Fields) -> Expr:
    parts = tuple([nodes.expr(fields[k]) for k in ("var", "value", "body")])
    return nodes.make("let", parts[2].dtype, parts) if parts[0].op == "var" else nodes.unknown("let", parts)


def _shuffle(nodes: Nodes, fields: Fields) -> Expr:
    vectors, indices = nodes.exprs(fields["vectors"]), nodes.exprs(fields["indices"])
    return nodes.make("shuffle", fields["dtype"], vectors + indices, len(vectors))


def _call(nodes: Nodes, fields: Fields) -> Expr:
    name, args, dtype = nodes.operator(fields["op"]), nodes.exprs(fields["args"]), fields["dtype"]
    if name in _AS_ARITHMETIC and len(args) == 2 and dtype.startswith(("int", "uint")):
        found = _AS_ARITHMETIC[name](nodes, dtype, *args)
        if found is not None:
            return found
    notes = fields.get("annotations")
    if notes is None:
        return nodes.make("call", dtype, args, name)
    return nodes.make("call", dtype, args, name, None, nodes.constants(notes), nodes.computed(notes))


def _shift(op: str) -> Callable[[Nodes, str, Expr, Expr], Expr | None]:
    def build(nodes: Nodes, dtype: str, value: Expr, by: Expr) -> Expr | None:
        amount = _literal(by)
        if amount is None or not 0 <= amount < 63:
            return None
        return nodes.make(op, dtype, (value, _like(nodes, by, 1 << amount)))

    return build


def _mask(nodes: Nodes, dtype: str, a: Expr, b: Expr) -> Expr | None:
    for value, mask in ((a, b), (b, a)):
        bits = _literal(mask)
        if bits is not None and bits > 0 and bits & (bits + 1) == 0:
            return nodes.make("floormod", dtype, (value, _like(nodes, mask, bits + 1)))
    return None


def _literal(e: Expr) -> int | None:
    """The integer in all lanes of a constant."""
    while e.op == "broadcast":
        e = e.args[0]
    return e.value if e.op == "int" and isinstance(e.value, int) else None


def _like(nodes: Nodes, form: Expr, value: int) -> Expr:
    """A constant of the same type and lanes as `form`."""
    if form.op == "broadcast":
        return nodes.make("broadcast", form.dtype, (_like(nodes, form.args[0], value),), form.value)
    return nodes.make("int", form.dtype, (), value)


_AS_ARITHMETIC = {
    "shift_right": _shift("floordiv"),
    "shift_left": _shift("mul"),
    "bitwise_and": _mask,
}


EXPRESSIONS: dict[str, Builder] = {
    **{kind: _binary(op) for kind, op in _BINARY.items()},
    "Div": _division,
    "IntImm": _integer,
    "FloatImm": _float,
    "StringImm": _string,
    "Var": _variable,
    "SizeVar": _variable,
    "Not": _not,
    "Select": _select,
    "Cast": _cast,
    "Ramp": _ramp,
    "Broadcast": _broadcast,
    "BufferLoad": _load,
    "Call": _call,
    "Let": _let,
    "Shuffle": _shuffle,
}
