"""Edits that make a Python module smaller, as a reducer tries them.

An edit is a function that changes the tree in place. `Edits` lists the edits of one kind that a tree has, always in the
same order: edit number 3 of a text is the same each time the text is parsed.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterator
from functools import partial
from typing import TypeVar

Edit = Callable[[], None]
Edits = Callable[[ast.Module], list[Edit]]
_Node = TypeVar("_Node", bound=ast.AST)
_BLOCKS = ("body", "orelse", "finalbody")
_SIMPLE = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.Assert, ast.Return, ast.Raise, ast.Import)


def nodes(tree: ast.AST, kind: type[_Node]) -> list[_Node]:
    """Return the nodes of one type."""
    return [node for node in ast.walk(tree) if isinstance(node, kind)]


def blocks(tree: ast.AST) -> Iterator[list[ast.stmt]]:
    """Yield every list of statements, outer ones first."""
    for node in ast.walk(tree):
        for name in _BLOCKS:
            block = getattr(node, name, None)
            if isinstance(block, list):
                yield block


def parents(tree: ast.AST) -> dict[ast.AST, ast.AST]:
    """Return the node above each."""
    return {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}


def kernels(tree: ast.Module) -> list[ast.FunctionDef]:
    """Return the functions that a `T.prim_func` or the like decorates, and those that hold none."""
    return [f for f in nodes(tree, ast.FunctionDef) if not any(g is not f for g in nodes(f, ast.FunctionDef))]


def statements(tree: ast.Module) -> list[Edit]:
    """Drop a statement."""
    return [_without(block, stmt) for block in blocks(tree) for stmt in block if not isinstance(stmt, ast.Pass)]


def names(tree: ast.Module) -> list[Edit]:
    """Drop a buffer, parameter or variable of a kernel, with every statement that mentions it."""
    found: dict[str, None] = {}
    for function in kernels(tree):
        found.update(dict.fromkeys(a.arg for a in function.args.args))
        found.update(
            dict.fromkeys(
                target.id
                for a in nodes(function, ast.Assign)
                for target in nodes(a, ast.Name)
                if isinstance(target.ctx, ast.Store)
            )
        )
    return [lambda name=name: drop_names(tree, {name}) for name in reversed(found)]  # type: ignore[misc]


def wrappers(tree: ast.Module) -> list[Edit]:
    """Put the body in the place of a loop, a condition or a `with`; a loop's variables become 0."""
    found: list[Edit] = []
    for block in blocks(tree):
        for stmt in block:
            if isinstance(stmt, (ast.For, ast.If, ast.While)) or (isinstance(stmt, ast.With) and not _launches(stmt)):
                found.append(lambda block=block, stmt=stmt: _unwrap(block, stmt))  # type: ignore[misc]
    return found


def grids(tree: ast.Module) -> list[Edit]:
    """Drop an axis of the grid: its index becomes 0."""
    found: list[Edit] = []
    for stmt in nodes(tree, ast.With):
        call, target = stmt.items[0].context_expr, stmt.items[0].optional_vars
        if _launches(stmt) and isinstance(call, ast.Call) and isinstance(target, ast.Tuple):
            found += [
                lambda stmt=stmt, call=call, target=target, arg=arg, name=name: _drop_axis_of_grid(  # type: ignore[misc]
                    stmt, call, target, arg, name
                )
                for arg, name in zip(call.args, target.elts, strict=False)
                if len(call.args) == len(target.elts) > 1
            ]
    return found


def axes(tree: ast.Module) -> list[Edit]:
    """Drop an axis of a buffer, from its shape and from every index."""
    found: list[Edit] = []
    for name, shape in shapes(tree):
        count = len(shape.elts)
        found += [lambda n=name, s=shape, i=i, c=count: _drop_axis(tree, n, s, i, c) for i in range(count) if count > 1]  # type: ignore[misc]
    return found


def keywords(tree: ast.Module) -> list[Edit]:
    """Drop a keyword argument, an entry of a dict, a decorator, or a default."""
    found: list[Edit] = []
    for call in nodes(tree, ast.Call):
        found += [partial(_discard, call.keywords, k) for k in call.keywords]
    for each in nodes(tree, ast.Dict):
        found += [lambda each=each, key=key: _drop_entry(each, key) for key in each.keys]  # type: ignore[misc]
    for function in nodes(tree, ast.FunctionDef):
        found += [
            lambda f=function, d=d: _plain_decorator(f, d)  # type: ignore[misc]
            for d in function.decorator_list
            if isinstance(d, ast.Call)
        ]
    return found


def operands(side: str) -> Edits:
    """Return the edits that put one operand in the place of an expression. side: `first` or `last`."""

    def edits(tree: ast.Module) -> list[Edit]:
        found: list[Edit] = []
        for parent in ast.walk(tree):
            for field, value in ast.iter_fields(parent):
                for place, child in enumerate(value if isinstance(value, list) else [value]):
                    new = _operand(child, side)
                    if new is not None and not isinstance(parent, ast.Expr):
                        found.append(_replacing(parent, field, place if isinstance(value, list) else None, new))
        return found

    return edits


def sequences(tree: ast.Module) -> list[Edit]:
    """Make a plain loop of a pipelined or parallel one, and an assignment of `+=`."""
    found: list[Edit] = []
    for loop in nodes(tree, ast.For):
        if (
            isinstance(loop.iter, ast.Call)
            and loop.iter.args
            and called(loop.iter) not in ("serial", "range", "Parallel")
        ):
            found.append(lambda loop=loop: _serial(loop))  # type: ignore[misc]
    for block in blocks(tree):
        found += [lambda block=block, s=s: _assign(block, s) for s in block if isinstance(s, ast.AugAssign)]  # type: ignore[misc]
    return found


def default_places(tree: ast.Module) -> list[str | int]:
    """Return the parameters with a number as their default, by name."""
    return [*_defaults(tree)]


def number_places(tree: ast.Module) -> list[str | int]:
    """Return the numbers of a text, the greatest first."""
    found = {c.value for c in nodes(tree, ast.Constant) if type(c.value) is int and c.value > 1}
    return sorted(found, reverse=True)


def number_changes(tree: ast.Module, place: str | int) -> Iterator[Edit]:
    """Yield smaller numbers for a default, or in the place of all that are equal to one, the smallest first."""
    if isinstance(place, int):
        for new in _smaller(place):
            yield lambda new=new: _renumber(tree, place, new)  # type: ignore[misc]
    elif place in (defaults := _defaults(tree)):
        for new in _smaller(defaults[place].value):  # type: ignore[arg-type]
            yield lambda new=new: setattr(defaults[place], "value", new)  # type: ignore[misc]


def _defaults(tree: ast.Module) -> dict[str, ast.Constant]:
    """The whole numbers that are defaults of parameters."""
    return {
        parameter.arg: default
        for function in nodes(tree, ast.FunctionDef)
        for parameter, default in zip(function.args.args[::-1], function.args.defaults[::-1], strict=False)
        if isinstance(default, ast.Constant) and type(default.value) is int
    }


def dtype_changes(tree: ast.Module) -> Iterator[Edit]:
    """Yield changes of one dtype to a plainer one, everywhere."""
    for old in ("bfloat16", "float16", "float64", "int64", "float8_e4m3", "float8_e4m3fn", "float8_e5m2", "int8"):
        for new in ("float32", "float16", "int32"):
            if new != old and new.startswith("int") == old.startswith("int") and _mentions_dtype(tree, old):
                yield lambda old=old, new=new: _retype(tree, old, new)  # type: ignore[misc]


def tidy(tree: ast.Module) -> None:
    """Drop what nobody reads: imports, functions, variables, buffers; and blocks that hold nothing."""
    while _drop_empty(tree) | _drop_unread(tree):
        pass
    ast.fix_missing_locations(tree)


def undefined(tree: ast.Module) -> set[str]:
    """Return the names that a text reads and nowhere binds: it would fail."""
    import builtins

    bound = {n.id for n in nodes(tree, ast.Name) if not isinstance(n.ctx, ast.Load)}
    bound |= {a.arg for a in nodes(tree, ast.arg)}
    bound |= {f.name for f in nodes(tree, ast.FunctionDef)} | {c.name for c in nodes(tree, ast.ClassDef)}
    bound |= {(a.asname or a.name).split(".")[0] for a in nodes(tree, ast.alias)}
    return {n.id for n in nodes(tree, ast.Name) if n.id not in bound and not hasattr(builtins, n.id)}


def substitute(tree: ast.AST, name: str, value: ast.expr) -> None:
    """Put an expression in the place of a name, wherever it is read."""

    class Put(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.expr:
            return value if node.id == name and isinstance(node.ctx, ast.Load) else node

    Put().visit(tree)


def _without(block: list[ast.stmt], stmt: ast.stmt) -> Edit:
    return lambda: _discard(block, stmt)


def _discard(among: list[_Node], node: _Node) -> None:
    """Remove a node, if another edit has not."""
    among[:] = [each for each in among if each is not node]


def drop_names(tree: ast.Module, names: Collection[str]) -> None:
    """Drop parameters, buffers and variables, and every statement that mentions one of them."""
    for function in kernels(tree):
        args = function.args
        if not args.defaults:
            args.args = [a for a in args.args if a.arg not in names]
    for block in blocks(tree):
        block[:] = [
            s for s in block if not (_mentions(s, names) if isinstance(s, _SIMPLE) else _head_mentions(s, names))
        ]


def drop_asserts(tree: ast.Module) -> None:
    """Drop what builders assert of their parameters: smaller ones are tried, and the kernel is the same without."""
    inner = kernels(tree)
    for function in nodes(tree, ast.FunctionDef):
        if function not in inner:
            function.body = [s for s in function.body if not isinstance(s, ast.Assert)]


def _mentions(node: ast.AST, names: Collection[str]) -> bool:
    return any(isinstance(each, ast.Name) and each.id in names for each in ast.walk(node))


def _head_mentions(stmt: ast.stmt, names: Collection[str]) -> bool:
    """Whether a compound statement reads one of the names before its body."""
    head = {ast.For: "iter", ast.If: "test", ast.While: "test"}.get(type(stmt), "")
    return bool(head) and _mentions(getattr(stmt, head), names)


def called(call: ast.Call) -> str:
    """Return the last part of what is called: `Parallel`."""
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def _launches(stmt: ast.With) -> bool:
    call = stmt.items[0].context_expr
    return isinstance(call, ast.Call) and called(call) == "Kernel"


def _unwrap(block: list[ast.stmt], stmt: ast.For | ast.If | ast.While | ast.With) -> None:
    places = [i for i, each in enumerate(block) if each is stmt]
    if not places:
        return
    if isinstance(stmt, ast.For):
        for target in nodes(stmt.target, ast.Name):
            for inner in stmt.body:
                substitute(inner, target.id, ast.Constant(0))
    block[places[0] : places[0] + 1] = stmt.body


def _drop_axis_of_grid(stmt: ast.With, call: ast.Call, target: ast.Tuple, arg: ast.expr, name: ast.expr) -> None:
    if len(call.args) == 1:  # another edit has dropped the others
        return
    _discard(call.args, arg)
    _discard(target.elts, name)
    if isinstance(name, ast.Name):
        for inner in stmt.body:
            substitute(inner, name.id, ast.Constant(0))
    if len(target.elts) == 1:
        stmt.items[0].optional_vars = target.elts[0]


def shapes(tree: ast.Module) -> Iterator[tuple[str, ast.Tuple | ast.List]]:
    """Yield each buffer with the literal that is its shape."""
    found = [(a.arg, a.annotation) for a in nodes(tree, ast.arg)]
    found += [(a.targets[0].id, a.value) for a in nodes(tree, ast.Assign) if isinstance(a.targets[0], ast.Name)]
    for name, value in found:
        if isinstance(value, ast.Call) and value.args and isinstance(value.args[0], (ast.Tuple, ast.List)):
            yield name, value.args[0]


def _drop_axis(tree: ast.Module, name: str, shape: ast.Tuple | ast.List, axis: int, count: int) -> None:
    if len(shape.elts) != count:  # another edit has dropped one
        return
    del shape.elts[axis]
    for use in nodes(tree, ast.Subscript):
        if isinstance(use.value, ast.Name) and use.value.id == name and isinstance(use.slice, ast.Tuple):
            if axis < len(use.slice.elts):
                del use.slice.elts[axis]
            if len(use.slice.elts) == 1:
                use.slice = use.slice.elts[0]


def _drop_entry(each: ast.Dict, key: ast.expr | None) -> None:
    left = [(k, v) for k, v in zip(each.keys, each.values, strict=True) if k is not key]
    each.keys, each.values = [k for k, _ in left], [v for _, v in left]


def _plain_decorator(function: ast.FunctionDef, decorator: ast.Call) -> None:
    function.decorator_list = [decorator.func if d is decorator else d for d in function.decorator_list]


def _operand(child: object, side: str) -> ast.expr | None:
    """The operand that may stand for an expression; None where there is none."""
    first = side == "first"
    match child:
        case ast.BinOp(left, _, right):
            return left if first else right
        case ast.BoolOp(_, values):
            return values[0] if first else values[-1]
        case ast.IfExp(_, body, orelse):
            return body if first else orelse
        case ast.UnaryOp(_, operand) if not isinstance(operand, ast.Constant):
            return operand
        case ast.Subscript(value, ast.Tuple(elts)) if side == "first" and all(isinstance(e, ast.Slice) for e in elts):
            return value
        case ast.Call(_, [_, one, other]) if called(child) in ("if_then_else", "Select"):
            return one if first else other
        case ast.Call(_, args) if args and isinstance(args[0], (ast.Subscript, ast.BinOp, ast.Call)):
            return args[0] if first else args[-1]
        case ast.Subscript(_, ast.Slice()) | ast.Name() | ast.Constant():
            return None
    return None


def _replacing(parent: ast.AST, field: str, place: int | None, new: ast.expr) -> Edit:
    def edit() -> None:
        if place is None:
            setattr(parent, field, new)
        elif place < len(getattr(parent, field)):
            getattr(parent, field)[place] = new

    return edit


def _serial(loop: ast.For) -> None:
    assert isinstance(loop.iter, ast.Call)
    loop.iter = ast.Call(ast.Name("range", ast.Load()), loop.iter.args, [])


def _assign(block: list[ast.stmt], stmt: ast.AugAssign) -> None:
    block[:] = [ast.Assign([each.target], each.value) if each is stmt else each for each in block]


def _smaller(value: int) -> list[int]:
    """Smaller numbers to try, the smallest first."""
    return [n for n in (1, 2, 16, 32, 64, 128) if n < value // 2] + (
        [value // 2] if value > 1 and value % 2 == 0 else []
    )


def _renumber(tree: ast.Module, value: int, new: int) -> None:
    for constant in nodes(tree, ast.Constant):
        if type(constant.value) is int and constant.value == value:
            constant.value = new


def _mentions_dtype(tree: ast.Module, dtype: str) -> bool:
    return any(c.value == dtype for c in nodes(tree, ast.Constant)) or any(
        a.attr == dtype for a in nodes(tree, ast.Attribute)
    )


def _retype(tree: ast.Module, old: str, new: str) -> None:
    for constant in nodes(tree, ast.Constant):
        constant.value = new if constant.value == old else constant.value
    for attribute in nodes(tree, ast.Attribute):
        attribute.attr = new if attribute.attr == old else attribute.attr


def _drop_empty(tree: ast.Module) -> bool:
    """Drop loops and branches without a statement; what may not be dropped gets a `pass`."""
    changed = False
    for node in list(ast.walk(tree)):
        for name in _BLOCKS:
            block = getattr(node, name, None)
            if not isinstance(block, list):
                continue
            if len(block) > 1 and any(isinstance(s, ast.Pass) for s in block):
                block[:] = [s for s in block if not isinstance(s, ast.Pass)] or [ast.Pass()]
            left = [s for s in block if not _is_empty(s)]
            changed |= len(left) < len(block)
            block[:] = left or ([ast.Pass()] if name == "body" and not isinstance(node, ast.Module) else [])
    return changed


def _is_empty(stmt: ast.stmt) -> bool:
    compound = isinstance(stmt, (ast.For, ast.If, ast.While)) and not stmt.orelse
    return compound and all(isinstance(s, ast.Pass) for s in getattr(stmt, "body", ()))


def _drop_unread(tree: ast.Module) -> bool:
    """Drop imports, macros and assignments of names that nobody reads, and what sets an element to itself."""
    read = {n.id for n in nodes(tree, ast.Name) if isinstance(n.ctx, ast.Load)}
    changed = False
    for block in blocks(tree):
        left = [s for s in block if not _is_unread(s, read, block is tree.body)]
        if len(left) < len(block):
            changed, block[:] = True, left or ([] if block is tree.body else [ast.Pass()])
    for stmt in nodes(tree, ast.Import) + nodes(tree, ast.ImportFrom):
        kept = [a for a in stmt.names if (a.asname or a.name).split(".")[0] in read]
        changed |= len(kept) < len(stmt.names)
        stmt.names = kept or stmt.names
    return changed


def _is_unread(stmt: ast.stmt, read: set[str], top: bool) -> bool:
    if isinstance(stmt, (ast.Import, ast.ImportFrom)):
        return not any((a.asname or a.name).split(".")[0] in read for a in stmt.names)
    if isinstance(stmt, ast.FunctionDef) and any("macro" in ast.unparse(d) for d in stmt.decorator_list):
        return stmt.name not in read
    if isinstance(stmt, ast.Assign) and ast.unparse(stmt.targets[0]) == ast.unparse(stmt.value):
        return True
    if isinstance(stmt, ast.Assign) and len(stmt.targets) == 1 and isinstance(stmt.targets[0], ast.Name):
        return stmt.targets[0].id not in read
    return isinstance(stmt, ast.Expr) and isinstance(stmt.value, ast.Constant)
