"""Find which buffers of a kernel are set and read, as its Python source shows it.

A smaller kernel may show a finding although it reads what nothing sets, or sets what nothing reads. Nobody would write
such a kernel, and another compiler may drop all of it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tlcheck.remedy.python_edits import called, drop_names, kernels, nodes

SETTING = "w?a"  # uses that set a buffer: written, not known, or added to
_SETS = ("clear", "fill")
_PLAIN = {"copy": "rw", "async_copy": "rw", "gemm": "rra", "wgmma_gemm": "rra", "if_then_else": "rrr"}
_EXEMPT = ("alloc_var", "alloc_barrier", "alloc_cluster_barrier", "alloc_reducer", "alloc_tmem")


def dangling(tree: ast.Module) -> set[str]:
    """Return the buffers that a kernel allocates and never sets, or never reads."""
    allocated = _allocated(tree)
    uses = [use for stmt in nodes(tree, ast.stmt) for use in _settled(list(uses_of(stmt)))]
    is_set, is_read = ({name for name, how in uses if how in kinds} for kinds in (SETTING, "r?"))
    return allocated - (is_set & is_read)


def without_output(tree: ast.Module) -> set[str]:
    """Return a name for the output that is missing in a kernel that sets none of its parameters."""
    parameters = {arg.arg for function in kernels(tree) for arg in function.args.args}
    is_set = {name for stmt in nodes(tree, ast.stmt) for name, how in uses_of(stmt) if how in SETTING}
    return {"output of the kernel"} if parameters and not parameters & is_set else set()


def read_first(tree: ast.Module) -> set[str]:
    """Return the buffers whose first use, as the text stands, reads them: nothing has set them."""
    first: dict[str, str] = {}
    for stmt in _in_order(tree):
        for name, how in _settled(list(uses_of(stmt))):
            first.setdefault(name, how)
    return {name for name in _allocated(tree) if first.get(name) in ("r", "a")}


def ambiguous(tree: ast.Module) -> set[str]:
    """Return the buffers with an element that steps of a parallel loop set alike, each to a value of its own.

    It is no race where the values happen to be equal, but looks like the author's.
    """
    return {
        name
        for loop in nodes(tree, ast.For)
        if isinstance(loop.iter, ast.Call) and called(loop.iter) == "Parallel"
        for stmt in nodes(loop, ast.Assign)
        for target in stmt.targets
        if isinstance(target, ast.Subscript) and _names(loop.target) & _names(stmt.value) - _names(target.slice)
        for name in _base(target)
    }


def _names(tree: ast.AST) -> set[str]:
    return {name.id for name in nodes(tree, ast.Name)}


def _in_order(tree: ast.AST) -> Iterator[ast.stmt]:
    """Statements as they stand in the text."""
    for child in ast.iter_child_nodes(tree):
        if isinstance(child, ast.stmt):
            yield child
        yield from _in_order(child)


def _allocated(tree: ast.Module) -> set[str]:
    return {
        a.targets[0].id
        for a in nodes(tree, ast.Assign)
        if isinstance(a.targets[0], ast.Name) and isinstance(a.value, ast.Call) and is_allocation(a.value)
    }


def without_dangling(tree: ast.Module, allowed: set[str]) -> None:
    """Drop buffers that are never set, or never read, with every statement that mentions them."""
    while found := dangling(tree) - allowed:
        drop_names(tree, found)


def _settled(uses: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return what a statement reads, and what it sets without having read it: `a[0] = a[0]` sets nothing."""
    read = {name for name, how in uses if how == "r"}
    return [(name, how) for name, how in uses if how != "w" or name not in read]


def is_allocation(call: ast.Call) -> bool:
    """Return whether a call gives a buffer that a kernel sets before it reads it."""
    name = called(call)
    return name.startswith("alloc_") and name not in _EXEMPT


def uses_of(stmt: ast.stmt) -> Iterator[tuple[str, str]]:
    """Yield the names that a statement itself mentions, each with `r`, `w`, `a` (added to) or `?` (any of them)."""
    for field, value in ast.iter_fields(stmt):
        for child in value if isinstance(value, list) else [value]:
            if field in ("target", "targets"):
                if isinstance(child, ast.Subscript):
                    how = "a" if isinstance(stmt, ast.AugAssign) else "w"
                    yield from ((name, how) for name in _base(child))
                    yield from _of_expression(child.slice, "r")
            elif isinstance(child, ast.expr):
                yield from _of_expression(child, "r")


def _of_expression(e: ast.expr, how: str) -> Iterator[tuple[str, str]]:
    """Names in an expression. how: what is done with what it stands for."""
    match e:
        case ast.Name(name):
            yield name, how
        case ast.Subscript(value, index):
            yield from _of_expression(value, how)
            yield from _of_expression(index, "r")
        case ast.Call(_, args, keywords):
            for place, arg in enumerate(args):
                yield from _of_expression(arg, _done_with(e, place))
            for keyword in keywords:
                yield from _of_expression(keyword.value, "?")
        case _:
            for child in ast.iter_child_nodes(e):
                if isinstance(child, ast.expr):
                    yield from _of_expression(child, how)


def _done_with(call: ast.Call, place: int) -> str:
    """Say how a function uses an argument. A product adds to what is there, unless it clears that."""
    function = called(call)
    if function in _SETS or function.startswith("atomic_"):
        return "w" if place == 0 else "r"
    modes = "rw" if function.startswith("reduce_") else _PLAIN.get(function, "")
    mode = modes[place] if place < len(modes) else "?"
    return "w" if mode == "a" and any(k.arg == "clear_accum" for k in call.keywords) else mode


def _base(e: ast.expr) -> Iterator[str]:
    """The name of the buffer of which this is an element."""
    while isinstance(e, ast.Subscript):
        e = e.value
    if isinstance(e, ast.Name):
        yield e.id
