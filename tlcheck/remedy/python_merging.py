"""Edits after which one buffer does the work of two: on both sides of a copy, as both factors of a product."""

from __future__ import annotations

import ast
from functools import partial

from tlcheck.remedy.python_edits import Edit, blocks, called, nodes


def copies(tree: ast.Module) -> list[Edit]:
    """Do without the copy of a whole buffer: store into its target, or take one of the two for both."""
    found = [(block, stmt, names) for block in blocks(tree) for stmt in block if (names := _copied(stmt)) is not None]
    stored = [partial(_store, block, stmt, *names) for block, stmt, names in found]
    merged = [partial(_merge, tree, block, stmt, gone, kept) for block, stmt, (kept, gone) in found]
    return [*stored, *merged, *(partial(_merge, tree, block, stmt, *names) for block, stmt, names in found)]


def factors(tree: ast.Module) -> list[Edit]:
    """Multiply a buffer by itself: nobody reads the other one then."""
    found: list[Edit] = []
    for call in nodes(tree, ast.Call):
        match call.args:
            case [ast.Name() as one, ast.Name() as other, _, *_] if (
                called(call).endswith("gemm") and one.id != other.id
            ):
                found += [partial(_repeat, one, other), partial(_repeat, other, one)]
    return found


def _repeat(gone: ast.Name, kept: ast.Name) -> None:
    gone.id = kept.id


def _copied(stmt: ast.stmt) -> tuple[str, str] | None:
    """The two buffers of a copy of all of one."""
    match stmt:
        case ast.Expr(ast.Call(args=[ast.Name(source), ast.Name(target)]) as call) if called(call) == "copy":
            return source, target
    return None


def _store(block: list[ast.stmt], stmt: ast.stmt, source: str, target: str) -> None:
    """Store elements into the target: by the statement before the copy, in the place of both."""
    place = next((i for i, each in enumerate(block) if each is stmt), 0)
    stores = [
        store.value
        for each in block[max(0, place - 1) : place]
        for assigned in nodes(each, ast.Assign)
        for store in assigned.targets
        if isinstance(store, ast.Subscript) and isinstance(store.value, ast.Name) and store.value.id == source
    ]
    if stores:
        del block[place]
    for name in stores:
        name.id = target


def _merge(tree: ast.Module, block: list[ast.stmt], stmt: ast.stmt, gone: str, kept: str) -> None:
    """Take one buffer for another one, whose allocation goes with the copy. A parameter stays."""
    allocations = [
        (among, each)
        for among in blocks(tree)
        for each in among
        if isinstance(each, ast.Assign) and isinstance(each.targets[0], ast.Name) and each.targets[0].id == gone
    ]
    if not allocations or gone == kept:
        return
    for among, each in [*allocations, (block, stmt)]:
        among[:] = [other for other in among if other is not each]
    for name in nodes(tree, ast.Name):
        name.id = kept if name.id == gone else name.id
