"""The constructs of a kernel's source: operators with dtypes and scopes, loops, branches, slices, configurations."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping

SCANS = ("cumsum", "cummax")
_LOOPS = ("serial", "unroll", "Pipelined", "Parallel", "vectorized", "Persistent")


def constructs(text: str) -> frozenset[str]:
    """Return the constructs of a module: `T.copy shared fragment`, `T.serial from by`, `while`, `float16`."""
    tree = ast.parse(text)
    scopes = scopes_in(tree)
    return frozenset(_constructs(tree, scopes))


def _constructs(tree: ast.Module, scopes: Mapping[str, str]) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id="T"), attr=name)) if name in _LOOPS:
                yield _loop(name, node)
            case ast.Call(func=ast.Attribute(value=ast.Name(id="T"), attr=name)):
                yield " ".join([f"T.{name}", *_operands(node, scopes)])
            case ast.While():
                yield "while"
            case ast.If(orelse=[]):
                yield "if"
            case ast.If():
                yield "if else"
            case ast.Slice():
                yield "slice"
            case ast.Constant(value=str(word)) if word.startswith(("tl.", "float", "int", "uint", "bfloat")):
                yield word


def _loop(name: str, call: ast.Call) -> str:
    """A loop with its form. A start that is not 0, and a step, are forms."""
    plain = name in ("Parallel", "vectorized")
    words = [] if plain or len(call.args) < 2 or ast.unparse(call.args[0]) == "0" else ["from"]
    words += ["by"] if not plain and len(call.args) > 2 else []
    words += [f"{k.arg} {ast.unparse(k.value)}" for k in call.keywords if k.arg == "num_stages"]
    return " ".join([f"T.{name}", *words])


def _operands(call: ast.Call, scopes: Mapping[str, str]) -> list[str]:
    """The scopes of those arguments that are buffers."""
    return [scopes[n] for a in call.args if (n := _base(a)) in scopes]


def _base(e: ast.expr) -> str:
    while isinstance(e, ast.Subscript):
        e = e.value
    return e.id if isinstance(e, ast.Name) else ""


def scopes_in(tree: ast.Module) -> dict[str, str]:
    """Name of a buffer or tensor -> its scope."""
    found = {}
    for node in ast.walk(tree):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(func=ast.Attribute(attr=attr))):
                if attr.startswith("alloc_"):
                    found[name] = attr.removeprefix("alloc_")
                elif attr in ("reshape", "view"):
                    found[name] = "view"
            case ast.arg(arg=name, annotation=ast.Call(func=ast.Attribute(attr="Tensor" | "StridedTensor"))):
                found[name] = "global"
    return found


def pitches_in(tree: ast.AST) -> dict[str, int]:
    """Name of a tensor -> the bytes of one of its rows."""
    found = {}
    for arg in (node for node in ast.walk(tree) if isinstance(node, ast.arg)):
        match arg.annotation:
            case ast.Call(args=[ast.Tuple(elts=[*_, ast.Constant(value=int(size))]), ast.Constant(value=str(dtype))]):
                bits = re.search(r"\d+", dtype)
                found[arg.arg] = size * int(bits.group()) // 8 if bits is not None else size
    return found


def statement_at(text: str, line: int) -> str:
    """Return what stands on a line: `T.copy global shared`, `store shared in T.Parallel`; empty where nothing does."""
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return ""
    own = [s for s in tree.body if s.lineno <= line <= (s.end_lineno or 0)]
    scopes = scopes_in(ast.Module(own, []))
    found = ""
    for loop, stmt in _statements(tree, ""):
        if stmt.lineno != line:
            continue
        match stmt:
            case ast.Expr(value=ast.Call(func=ast.Attribute(attr=name)) as call):
                found = " ".join([f"T.{name}", *_operands(call, scopes)])
            case ast.Assign(targets=[ast.Subscript() as target]) | ast.AugAssign(target=ast.Subscript() as target):
                found = f"store {scopes.get(_base(target), '?')}{loop}"
            case ast.For(iter=ast.Call(func=ast.Attribute(attr=name))):
                found = f"for T.{name}"
            case ast.Assign() | ast.AnnAssign():
                found = f"assignment{loop}"
    return found


def _statements(node: ast.AST, loop: str) -> Iterator[tuple[str, ast.stmt]]:
    """Statements with the innermost parallel or vectorized loop about each."""
    for child in ast.iter_child_nodes(node):
        inner = loop
        if isinstance(child, ast.For) and isinstance(child.iter, ast.Call):
            name = child.iter.func.attr if isinstance(child.iter.func, ast.Attribute) else ""
            inner = f" in T.{name}" if name in ("Parallel", "vectorized") else loop
        if isinstance(child, ast.stmt):
            yield loop, child
        yield from _statements(child, inner)
