"""The node table of a snapshot file, reading side: every entry is checked, for the file may come from anywhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NoReturn, TypeVar

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
    Launch,
    Layout,
    Seq,
    Stmt,
    Store,
    Thread,
    Unknown,
    While,
)
from tlcheck.snapshot.operators import BINARY
from tlcheck.snapshot.walk import children

_DEEPEST, _LARGEST = 10_000, 1_000_000
T = TypeVar("T")
Entry = list[Any]
Pairs = tuple[tuple[str, str], ...]

LOOP_KINDS = ("serial", "parallel", "vectorized", "unrolled", "thread_binding")
_ARGUMENTS = {**dict.fromkeys(BINARY, 2), "not": 1, "cast": 1, "select": 3, "let": 3, "predicated": 2}
_NONE: list[Any] = []  # what schema 1 does not have
_CONSTANTS = {"int": int, "str": str, "var": str}


class CorruptSnapshot(ValueError):  # noqa: N818
    """The text is no snapshot of a known schema. One line says why."""


def corrupt(why: str) -> NoReturn:
    raise CorruptSnapshot(f"not a snapshot: {why}")


def check(value: Any, kind: type[T], what: str) -> T:
    """`value`, if it is exactly of this type; a bool is no int."""
    if type(value) is not kind:
        corrupt(f"{what} is {type(value).__name__}, not {kind.__name__}")
    return value


def text_map(value: Any, what: str) -> dict[str, str]:
    """A mapping of texts to texts."""
    for key, item in check(value, dict, what).items():
        check(item, str, f"{what} {key!r}")
    return value  # type: ignore[no-any-return]


def text_pairs(value: Any, what: str) -> Pairs:
    """A list of pairs of texts."""
    pairs = check(value, list, what)
    for pair in pairs:
        if type(pair) is not list or len(pair) != 2 or type(pair[0]) is not str or type(pair[1]) is not str:
            corrupt(f"{what} are not pairs of texts")
    return tuple([(pair[0], pair[1]) for pair in pairs])


def pairs(value: Any, what: str) -> list[Entry]:
    """A list of lists of two."""
    for pair in check(value, list, what):
        if type(pair) is not list or len(pair) != 2:
            corrupt(f"{what} are not pairs")
    return value  # type: ignore[no-any-return]


class Decoder:
    """Builds the nodes of a table in order."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self._variables = 0
        self._trees: dict[Any, tuple[int, int]] = {}  # of each statement and expression: how many nodes, how deep

    def read(self, table: Any) -> None:
        """Build all entries; raises CorruptSnapshot at the first that is wrong."""
        for number, entry in enumerate(check(table, list, "nodes")):
            if type(entry) is not list or len(entry) < 2 or type(entry[0]) is not str:
                corrupt(f"node {number} is no entry")
            reader = _READERS.get(entry[0])
            try:
                self.nodes.append(self._expr(entry) if reader is None else reader(self, *entry[1:]))
                # nodes are shared in a file, and gone through again and again in a walk: refuse what would not end
                node = self.nodes[-1]
                inner = node.args if isinstance(node, Expr) else children(node) if isinstance(node, Stmt) else ()
                count, depth = 1, 1
                for part in inner:
                    nodes, levels = self._trees[part]
                    count += nodes
                    depth = max(depth, levels + 1)
                if depth > _DEEPEST or (count > _LARGEST and isinstance(node, Stmt)):
                    corrupt(f"more than {_DEEPEST if depth > _DEEPEST else _LARGEST} nodes in each other")
                self._trees[node] = count, depth
            except TypeError:
                corrupt(f"node {number} ({entry[0][:40]}) has the wrong number of fields")
            except CorruptSnapshot as error:
                raise CorruptSnapshot(f"{error} (node {number}, {entry[0][:40]})") from None

    def expr(self, index: Any) -> Expr:
        return self.get(index, Expr)

    def exprs(self, indices: Any) -> tuple[Expr, ...]:
        return tuple([self.get(i, Expr) for i in check(indices, list, "a list of nodes")])

    def stmt(self, index: Any) -> Stmt:
        found = self._at(index)
        if not isinstance(found, Stmt):
            corrupt(f"node {index} is {type(found).__name__}, not a statement")
        return found

    def get(self, index: Any, kind: type[T]) -> T:
        """The node of this kind at `index`."""
        found = self._at(index)
        if type(found) is not kind:
            corrupt(f"node {index} is {type(found).__name__}, not {kind.__name__}")
        return found

    def optional(self, index: Any) -> Expr | None:
        return None if index is None else self.get(index, Expr)

    def variable(self, index: Any) -> Expr:
        found = self.get(index, Expr)
        return found if found.op == "var" else corrupt(f"node {index} is no variable")

    def variables(self, indices: Any) -> tuple[Expr, ...]:
        return tuple([self.variable(i) for i in check(indices, list, "a list of variables")])

    def computed(self, value: Any) -> tuple[tuple[str, Expr], ...]:
        return tuple([(check(key, str, "a key"), self.expr(e)) for key, e in pairs(value, "computed annotations")])

    def function(self, fields: Any) -> Function:
        """One entry of `checkpoints`."""
        fields = check(fields, dict, "a checkpoint")
        try:
            name, params, buffers, attrs, body = (fields[k] for k in ("name", "params", "buffers", "attrs", "body"))
        except KeyError as error:
            corrupt(f"a checkpoint has no {error}")
        return Function(
            check(name, str, "the name of a function"),
            self.exprs(params),
            tuple([self.get(i, Buffer) for i in check(buffers, list, "buffers")]),
            text_pairs(attrs, "attrs"),
            self.stmt(body),
            tuple([(self.variable(a), self.expr(b)) for a, b in pairs(fields.get("descriptors", []), "descriptors")]),
            tuple([(self.variable(a), check(b, int, "a place")) for a, b in pairs(fields.get("places", []), "places")]),
        )

    def _at(self, index: Any) -> Any:
        if type(index) is not int or not 0 <= index < len(self.nodes):
            corrupt(f"{str(index)[:40]} refers to no earlier node")
        return self.nodes[index]

    def _expr(self, entry: Entry) -> Expr:
        op, dtype, rest = entry[0], check(entry[1], str, "a dtype"), entry[2:]
        count = _ARGUMENTS.get(op)
        if count is not None:
            if len(rest) != count:
                corrupt(f"{len(rest)} arguments instead of {count}")
            return Expr(op, dtype, tuple([self.get(i, Expr) for i in rest]))
        lists = [rest.pop() for _ in range(2) if rest and type(rest[-1]) is list]
        notes: Pairs = text_pairs(lists.pop(), "annotations") if lists else ()
        computed = self.computed(lists.pop()) if lists else ()
        if not rest:
            corrupt("a field is missing")
        if op == "load":
            indices = tuple([self.get(i, Expr) for i in rest[1:]])
            return Expr(op, dtype, indices, buffer=self.get(rest[0], Buffer))
        value, args = rest[0], tuple([self.get(i, Expr) for i in rest[1:]])
        if op == "var":
            self._variables += 1
            return Expr(op, dtype, self._none(args), check(value, str, "a name"), self._variables)
        return Expr(op, dtype, args, self._value(op, value, args), annotations=notes, computed=computed)

    def _value(self, op: str, value: Any, args: tuple[Expr, ...]) -> int | float | str:
        if op in ("call", "unknown"):
            return check(value, str, "a name")
        if op in ("ramp", "broadcast"):
            if len(args) != (2 if op == "ramp" else 1):
                corrupt(f"{len(args)} arguments")
            return check(value, int, "lanes")
        if op == "shuffle":
            vectors = check(value, int, "vectors")
            return vectors if 0 < vectors < len(args) else corrupt(f"{vectors} vectors in {len(args)} arguments")
        self._none(args)
        if op == "float":
            # numbers as they are; what JSON has no number for as text
            if type(value) is str and value in ("nan", "inf", "-inf"):
                return float(value)
            return check(value, float, "a constant")
        if op not in _CONSTANTS:
            corrupt(f"unknown kind {op[:40]!r}")
        return check(value, _CONSTANTS[op], "a constant")

    def _none(self, args: tuple[Expr, ...]) -> tuple[Expr, ...]:
        return args if not args else corrupt("arguments where there are none")


def _buffer(t: Decoder, name: Any, dtype: Any, scope: Any, data: Any, shape: Any, strides: Any, offset: Any) -> Buffer:
    return Buffer(
        check(name, str, "a name"),
        check(dtype, str, "a dtype"),
        t.exprs(shape),
        check(scope, str, "a scope"),
        t.expr(data),
        t.exprs(strides),
        t.optional(offset),
    )


def _layout(
    t: Decoder, names: Any, shape: Any, index: Any, thread: Any, replica: Any, replicas: Any, start: Any
) -> Layout:
    layout = Layout(
        t.variables(names),
        t.exprs(shape),
        t.exprs(index),
        t.optional(thread),
        None if replica is None else t.variable(replica),
        check(replicas, int, "replicas"),
        check(start, int, "thread_start"),
    )
    return layout if len(layout.vars) == len(layout.input_shape) else corrupt("a layout needs a variable per dimension")


def _for(
    t: Decoder,
    line: Any,
    var: Any,
    start: Any,
    extent: Any,
    kind: Any,
    body: Any,
    notes: Any,
    computed: Any = _NONE,
    layout: Any = None,
) -> For:
    if kind not in LOOP_KINDS:
        corrupt(f"unknown loop {str(kind)[:40]!r}")
    return For(
        t.variable(var),
        t.expr(start),
        t.expr(extent),
        kind,
        t.stmt(body),
        text_pairs(notes, "annotations"),
        t.computed(computed),
        None if layout is None else t.get(layout, Layout),
        line=_line(line),
    )


def _if(t: Decoder, line: Any, condition: Any, then: Any, orelse: Any) -> If:
    other = None if orelse is None else t.stmt(orelse)
    return If(t.expr(condition), t.stmt(then), other, line=_line(line))


def _block(
    t: Decoder,
    line: Any,
    name: Any,
    body: Any,
    layouts: Any,
    notes: Any,
    barriers: Any = _NONE,
    safe_values: Any = _NONE,
    threads: Any = _NONE,
) -> Block:
    return Block(
        check(name, str, "a name"),
        t.stmt(body),
        tuple([(t.variable(data), t.get(layout, Layout)) for data, layout in pairs(layouts, "layouts")]),
        text_pairs(notes, "annotations"),
        tuple([(t.variable(data), t.exprs(counts)) for data, counts in pairs(barriers, "barriers")]),
        tuple([(t.variable(data), t.expr(value)) for data, value in pairs(safe_values, "safe values")]),
        t.exprs(threads),
        line=_line(line),
    )


def _store(t: Decoder, line: Any, buffer: Any, value: Any, *rest: Any) -> Store:
    """`rest`: indices, and a list with the predicate."""
    predicate = t.exprs(rest[-1]) if rest and type(rest[-1]) is list else ()
    if len(predicate) > 1:
        corrupt("more than one predicate")
    indices = tuple([t.expr(i) for i in (rest[:-1] if predicate else rest)])
    return Store(t.get(buffer, Buffer), indices, t.expr(value), next(iter(predicate), None), line=_line(line))


def _line(value: Any) -> int:
    return check(value, int, "a line")


_READERS: dict[str, Callable[..., Any]] = {
    "buffer": _buffer,
    "layout": _layout,
    "For": _for,
    "If": _if,
    "Block": _block,
    "Seq": lambda t, line, *body: Seq(tuple([t.stmt(i) for i in body]), line=_line(line)),
    "While": lambda t, line, condition, body: While(t.expr(condition), t.stmt(body), line=_line(line)),
    "Bind": lambda t, line, var, value: Bind(t.variable(var), t.expr(value), line=_line(line)),
    "Thread": lambda t, line, var, tag, extent, body: Thread(
        t.variable(var), check(tag, str, "a tag"), t.expr(extent), t.stmt(body), line=_line(line)
    ),
    "Attr": lambda t, line, key, value, body, node=_NONE: Attr(
        check(key, str, "a key"), t.optional(value), t.stmt(body), t.exprs(node), line=_line(line)
    ),
    "Alloc": lambda t, line, buffer: Alloc(t.get(buffer, Buffer), line=_line(line)),
    "Store": _store,
    "Assert": lambda t, line, condition, message: Assert(
        t.expr(condition), check(message, str, "a message"), line=_line(line)
    ),
    "Launch": lambda t, line, name, params, attrs, body: Launch(
        check(name, str, "a name"), t.exprs(params), text_pairs(attrs, "attrs"), t.stmt(body), line=_line(line)
    ),
    "Evaluate": lambda t, line, value: Evaluate(t.expr(value), line=_line(line)),
    "Unknown": lambda t, line, what, *body: Unknown(
        check(what, str, "a name"), tuple([t.stmt(i) for i in body]), line=_line(line)
    ),
}


def named_functions(decoder: Decoder, value: Any) -> Mapping[str, Function]:
    """`checkpoints` of a file."""
    return {name: decoder.function(fields) for name, fields in check(value, dict, "checkpoints").items()}
