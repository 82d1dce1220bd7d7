"""A macro's statements in the place of its call: then they can be reduced one by one."""

from __future__ import annotations

import ast
from copy import deepcopy

from tlcheck.remedy.python_edits import blocks, called, nodes, substitute


def inline(tree: ast.Module) -> None:
    """Put the statements of macros in the place of calls, where they need no name of their own but loop variables."""
    macros = {f.name: f for f in tree.body if isinstance(f, ast.FunctionDef) and _is_plain_macro(f)}
    for _ in macros:  # one may call another one
        for block in list(blocks(tree)):
            block[:] = [new for stmt in block for new in _inlined(stmt, macros)]
    read = {n.id for n in nodes(tree, ast.Name)}
    tree.body = [
        s for s in tree.body if not (isinstance(s, ast.FunctionDef) and s.name in macros and s.name not in read)
    ]
    ast.fix_missing_locations(tree)


def _inlined(stmt: ast.stmt, macros: dict[str, ast.FunctionDef]) -> list[ast.stmt]:
    match stmt:
        case ast.Expr(ast.Call(args=args, keywords=[]) as call) if called(call) in macros:
            macro = macros[called(call)]
            if len(args) != len(macro.args.args):
                return [stmt]
            body = ast.Module(deepcopy(macro.body), [])
            for parameter, value in zip(macro.args.args, args, strict=True):
                substitute(body, parameter.arg, value)
            return body.body
    return [stmt]


def _is_plain_macro(function: ast.FunctionDef) -> bool:
    """Whether it only works on what it is given."""
    return (
        any("macro" in ast.unparse(d) for d in function.decorator_list)
        and not function.args.defaults
        and not any(isinstance(n, (ast.Return, ast.Yield)) for n in ast.walk(function))
        and not any(isinstance(t, ast.Name) for a in nodes(function, ast.Assign) for t in a.targets)
    )
