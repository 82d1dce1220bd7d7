"""The dependences of a value in a kernel's Python source: everything else can go at once."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tlcheck.remedy.python_buffers import SETTING, uses_of
from tlcheck.remedy.python_edits import called, kernels, nodes, parents

_HEADS = {ast.For: "iter", ast.If: "test", ast.While: "test"}


@dataclass(frozen=True)
class _Dependence:
    """A record of what one statement sets, and what that depends on: what it reads, and what its run depends on."""

    sets: frozenset[str]
    reads: frozenset[str]


def slices(tree: ast.Module, names: Sequence[str]) -> Iterator[frozenset[str]]:
    """Yield names of kernels that the named buffers do not depend on.

    A buffer that is no parameter is wrong only if an output shows it: each parameter that depends on it comes alone
    first, then all of them.
    """
    own = frozenset(_names(tree))
    found = [_Dependence(each.sets & own, each.reads & own) for each in _dependences(tree)]
    parameters = {a.arg for f in kernels(tree) for a in f.args.args}
    wanted = [name for name in names if name in own]
    if not wanted:
        return
    dependent = [name for name in sorted(parameters) if set(wanted) & _needed(found, {name})]
    shown = [] if parameters & set(wanted) else dependent
    for also in (*([name] for name in shown), shown):
        yield own - _needed(found, {*wanted, *also})


def _names(tree: ast.Module) -> Iterator[str]:
    """Buffers, parameters and variables of kernels."""
    for function in kernels(tree):
        if _is_macro(function):
            continue
        yield from (a.arg for a in function.args.args)
        for assigned in nodes(function, ast.Assign):
            yield from (t.id for t in assigned.targets if isinstance(t, ast.Name))


def _is_macro(function: ast.FunctionDef) -> bool:
    return any("macro" in ast.unparse(d) for d in function.decorator_list)


def _needed(found: Sequence[_Dependence], names: set[str]) -> set[str]:
    """The names, and all that they depend on."""
    needed = set(names)
    while True:
        more = {name for each in found if each.sets & needed for name in each.reads} - needed
        if not more:
            return needed
        needed |= more


def _dependences(tree: ast.Module) -> Iterator[_Dependence]:
    """Yield what each statement of the kernels that is no macro sets and reads."""
    macros = {f.name: _modes(f) for f in kernels(tree) if _is_macro(f)}
    for function in kernels(tree):
        if _is_macro(function):
            continue
        above = parents(function)
        for stmt in nodes(function, ast.stmt):
            uses = [*_calls_macro(stmt, macros)] or [*uses_of(stmt)]
            sets = {name for name, how in uses if how in SETTING}
            sets |= {t.id for t in getattr(stmt, "targets", ()) if isinstance(t, ast.Name)}
            reads = {name for name, how in uses if how in ("r", "?")}
            while (stmt := above.get(stmt)) is not None:  # type: ignore[assignment]
                head = getattr(stmt, _HEADS[type(stmt)]) if type(stmt) in _HEADS else None
                reads |= {n.id for n in nodes(head, ast.Name)} if head is not None else set()
            yield _Dependence(frozenset(sets), frozenset(reads))


def _modes(macro: ast.FunctionDef) -> dict[str, str]:
    """Return what a macro does with each parameter: `r`, `w`, or `?` for both."""
    found: dict[str, set[str]] = {a.arg: set() for a in macro.args.args}
    for stmt in nodes(macro, ast.stmt):
        for name, how in uses_of(stmt):
            found.get(name, set()).add(how)
    return {name: hows.pop() if len(hows) == 1 else "?" for name, hows in found.items()}


def _calls_macro(stmt: ast.stmt, macros: Mapping[str, Mapping[str, str]]) -> Iterator[tuple[str, str]]:
    """The names that a call of a macro is given, each with what the macro does with it."""
    match stmt:
        case ast.Expr(ast.Call(args=args) as call) if called(call) in macros:
            for arg, how in zip(args, macros[called(call)].values(), strict=False):
                yield from ((n.id, how) for n in nodes(arg, ast.Name))
