"""A builder without its parameters: their values, and what follows from them, stand in the kernel itself."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import Any

from tlcheck.remedy.python_edits import blocks, nodes, substitute

_OPERATORS: Mapping[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Div: operator.truediv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}
_COMPARED: Mapping[type, Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
}
_CALLS: Mapping[str, Callable[..., Any]] = {
    "min": min,
    "max": max,
    "ceildiv": lambda a, b: -(-a // b),
    "cdiv": lambda a, b: -(-a // b),
    "next_power_of_2": lambda n: 1 << (n - 1).bit_length(),
}


def bind(builder: ast.FunctionDef, args: Mapping[str, str]) -> None:
    """Make a builder's arguments its defaults. args: as Python source. Raises ValueError for one without a value."""
    parameters = [*builder.args.posonlyargs, *builder.args.args]
    defaults: list[ast.expr | None] = [None] * (len(parameters) - len(builder.args.defaults))
    values = dict(zip([p.arg for p in parameters], [*defaults, *builder.args.defaults], strict=True))
    values |= {k.arg: d for k, d in zip(builder.args.kwonlyargs, builder.args.kw_defaults, strict=True)}
    values |= {name: ast.parse(text, mode="eval").body for name, text in args.items() if name in values}
    missing = [name for name, value in values.items() if value is None]
    if missing:
        raise ValueError(f"{builder.name} has no value for {', '.join(missing)}")
    own = {p.arg: p for p in (*parameters, *builder.args.kwonlyargs)}
    builder.args = ast.arguments([], [*own.values()], None, [], [], None, [v for v in values.values() if v is not None])


def without_parameters(tree: ast.Module, builder: ast.FunctionDef) -> None:
    """Put the defaults of a builder in the place of its parameters, and compute what is constant then."""
    for parameter, default in zip(builder.args.args, builder.args.defaults, strict=True):
        builder.body.insert(0, ast.Assign([ast.Name(parameter.arg, ast.Store())], default))
    builder.args = ast.arguments([], [], None, [], [], None, [])
    fold(tree)


def fold(tree: ast.Module) -> None:
    """Compute what is constant, and put variables that are set once in the place of their names."""
    ast.fix_missing_locations(tree)
    while True:
        before = ast.dump(tree)
        _Folding().visit(tree)
        for function in nodes(tree, ast.FunctionDef):
            _inline(function)
        _resolve_branches(tree)
        ast.fix_missing_locations(tree)
        if ast.dump(tree) == before:
            return


def _inline(function: ast.FunctionDef) -> None:
    """Put constants in the place of variables; one that is set again has another value from there on."""
    for number, stmt in enumerate(function.body):
        match stmt:
            case ast.Assign([ast.Name(name)], value) if is_plain(value):
                for later in function.body[number + 1 :]:
                    if _is_set_within(later, name):
                        if isinstance(later, ast.Assign):
                            substitute(later.value, name, deepcopy(value))
                            later.value = deepcopy(value) if _is_name(later.value, name) else later.value
                        if isinstance(later, ast.If):
                            substitute(later.test, name, deepcopy(value))
                        break
                    substitute(later, name, deepcopy(value))


def _is_name(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _is_set_within(stmt: ast.stmt, name: str) -> bool:
    return any(n.id == name and not isinstance(n.ctx, ast.Load) for n in nodes(stmt, ast.Name)) or any(
        a.arg == name for a in nodes(stmt, ast.arg)
    )


def is_plain(node: ast.expr) -> bool:
    """Return whether an expression is a constant, `T.float32`, or a list of such."""
    match node:
        case ast.Constant() | ast.UnaryOp(ast.USub(), ast.Constant()):
            return True
        case ast.Attribute(ast.Name()):
            return True
        case ast.Tuple(elts) | ast.List(elts):
            return all(map(is_plain, elts))
    return False


class _Folding(ast.NodeTransformer):
    """Computes what is constant."""

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        self.generic_visit(node)
        left, right = _value(node.left), _value(node.right)
        if left is None or right is None or type(node.op) not in _OPERATORS:
            return _neutral(node)
        return _constant(node, lambda: _OPERATORS[type(node.op)](left, right))

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        self.generic_visit(node)
        constants = (node.left, *node.comparators)
        if len(constants) != 2 or not all(map(is_plain, constants)) or type(node.ops[0]) not in _COMPARED:
            return node
        if all(isinstance(each, ast.Constant) for each in constants):
            return _constant(node, lambda: _COMPARED[type(node.ops[0])](*(each.value for each in constants)))  # type: ignore[attr-defined]
        same = ast.dump(constants[0]) == ast.dump(constants[1])
        return ast.Constant(isinstance(node.ops[0], (ast.Eq, ast.Is)) == same) if same else node

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        values = [_value(arg) for arg in node.args]
        if name not in _CALLS or None in values or node.keywords or not values:
            return node
        return _constant(node, lambda: _CALLS[name](*values))

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        self.generic_visit(node)
        return (node.body if node.test.value else node.orelse) if isinstance(node.test, ast.Constant) else node


def _value(node: ast.expr) -> Any:
    """The number that an expression is; None where it is none."""
    match node:
        case ast.Constant(value) if type(value) in (int, float):
            return value
        case ast.UnaryOp(ast.USub(), operand) if isinstance(operand, ast.Constant) and _value(operand) is not None:
            return -_value(operand)
    return None


def _constant(node: ast.expr, compute: Callable[[], Any]) -> ast.expr:
    try:
        return ast.Constant(compute())
    except (ArithmeticError, TypeError, ValueError):
        return node


def _neutral(node: ast.BinOp) -> ast.expr:
    """`x * 1`, `x + 0`, `0 + x`, `0 * x` without what changes nothing."""
    left, right = _value(node.left), _value(node.right)
    match node.op:
        case ast.Add() if left == 0:
            return node.right
        case ast.Add() | ast.Sub() if right == 0:
            return node.left
        case ast.Mult() if left == 1:
            return node.right
        case ast.Mult() | ast.FloorDiv() if right == 1:
            return node.left
        case ast.Mult() if 0 in (left, right) and type(left if right is None else right) is int:
            return ast.Constant(0)
    return node


def _resolve_branches(tree: ast.Module) -> None:
    """Leave of `if True` the body, and nothing of an assertion that holds."""
    for block in blocks(tree):
        for number, stmt in reversed(list(enumerate(block))):
            match stmt:
                case ast.If(ast.Constant(value), body, orelse):
                    block[number : number + 1] = body if value else orelse
                case ast.Assert(ast.Constant(value)) if value:
                    del block[number]
