"""Find which buffers a kernel's indices leave, as its Python source shows it.

TileLang reads 0 beyond the end of a tensor, and drops what is stored there. A smaller kernel whose shapes shrink below
its indices shows a finding all the same, and a reader takes it for the author's mistake.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from tlcheck.remedy.python_buffers import SETTING, is_allocation, uses_of
from tlcheck.remedy.python_edits import called, nodes, shapes

_Range = tuple[int, int]  # the smallest and the greatest value
_THREADS = 128  # of a launch that does not say
_LOOPS = ("range", "serial", "Parallel", "Pipelined", "vectorized", "unroll", "Persistent")


def leaving(tree: ast.Module) -> set[str]:
    """Return the buffers that an index or a region leaves, or with an empty slice. What is not constant leaves none."""
    sizes = {name: [_constant(extent) for extent in shape.elts] for name, shape in shapes(tree)}
    return set(_leaving(tree, _stored(tree, dict(_thread_numbers(tree))), sizes))


def _stored(tree: ast.Module, ranges: Mapping[str, _Range]) -> dict[str, _Range]:
    """Return ranges with those of variables and buffers that only assignments set: `first[0] = k * 2`."""
    assigned = list(_assigned(tree, ranges))
    calls = (stmt for stmt in nodes(tree, ast.stmt) if isinstance(stmt, (ast.Expr, ast.AugAssign)))
    set_otherwise = {name for stmt in calls for name, how in uses_of(stmt) if how in SETTING}
    known = dict(ranges)
    for _ in assigned:  # a value may follow from another one
        for name in {name for name, _, _ in assigned} - set_otherwise - known.keys():
            found = [_range(value, {**known, **around}) for each, value, around in assigned if each == name]
            if None not in found:
                lows, highs = zip(*(each for each in found if each is not None), strict=True)
                known[name] = min(lows), max(highs)
    return known


def _assigned(node: ast.AST, ranges: Mapping[str, _Range]) -> Iterator[tuple[str, ast.expr, Mapping[str, _Range]]]:
    """Yield each variable or buffer that an assignment sets, with the value and the ranges of the loops around it."""
    if isinstance(node, (ast.For, ast.With)):
        ranges = {**ranges, **dict(_bound(node))}
    if isinstance(node, ast.Assign) and not (isinstance(node.value, ast.Call) and is_allocation(node.value)):
        for target in node.targets:
            name = target.value if isinstance(target, ast.Subscript) else target
            if isinstance(name, ast.Name):
                yield name.id, node.value, ranges
    for child in ast.iter_child_nodes(node):
        yield from _assigned(child, ranges)


def _thread_numbers(tree: ast.Module) -> Iterator[tuple[str, _Range]]:
    """The variables that hold a thread's number, for one launch of a constant number of threads."""
    launches = [call for call in nodes(tree, ast.Call) if called(call) == "Kernel"]
    given = [k.value for call in launches for k in call.keywords if k.arg == "threads"]
    threads = _constant(given[0]) if given else _THREADS
    for each in nodes(tree, ast.Assign):
        if isinstance(each.value, ast.Call) and called(each.value) == "get_thread_binding" and threads is not None:
            yield from ((name.id, (0, threads - 1)) for name in each.targets if isinstance(name, ast.Name))


def _leaving(node: ast.AST, ranges: Mapping[str, _Range], sizes: Mapping[str, list[int | None]]) -> Iterator[str]:
    """The buffers of a statement and all that is in it. ranges: of the variables of loops around it."""
    if isinstance(node, (ast.For, ast.With)):
        ranges = {**ranges, **dict(_bound(node))}
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
        parts = [_part(index, ranges) for index in _indices(node)]
        if _is_beyond(parts, sizes.get(node.value.id, [])) or any(_is_empty(i, ranges) for i in _indices(node)):
            yield node.value.id
    if isinstance(node, ast.Call) and called(node) in ("copy", "async_copy", "tma_copy") and len(node.args) >= 2:
        yield from _copied(node.args[0], node.args[1], ranges, sizes)
        yield from _copied(node.args[1], node.args[0], ranges, sizes)
    for child in ast.iter_child_nodes(node):
        yield from _leaving(child, ranges, sizes)


def _bound(node: ast.For | ast.With) -> Iterator[tuple[str, _Range]]:
    """The variables of a loop or a launch, each with its range where that is constant."""
    call, target = (
        (node.iter, node.target)
        if isinstance(node, ast.For)
        else (node.items[0].context_expr, node.items[0].optional_vars)
    )
    if not isinstance(call, ast.Call) or called(call) not in (*_LOOPS, "Kernel"):
        return
    targets = target.elts if isinstance(target, ast.Tuple) else [target]
    extents = [_constant(arg) for arg in call.args]
    if len(targets) == 1 and len(extents) == 2:  # first and last
        first, last = extents
        extents = [last] if first is not None and first >= 0 else []
    for name, extent in zip(targets, extents, strict=False):
        if isinstance(name, ast.Name) and extent is not None:
            yield name.id, (0, extent - 1)


def _indices(node: ast.Subscript) -> list[ast.expr]:
    return node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]


def _part(index: ast.expr, ranges: Mapping[str, _Range]) -> _Range | None:
    """The elements that an index or a slice may name."""
    if not isinstance(index, ast.Slice):
        return _range(index, ranges)
    lower = (0, 0) if index.lower is None else _range(index.lower, ranges)
    upper = None if index.upper is None else _range(index.upper, ranges)
    return None if lower is None or upper is None else (lower[0], upper[1] - 1)


def _is_beyond(parts: list[_Range | None], sizes: list[int | None]) -> bool:
    known = [(part, size) for part, size in zip(parts, sizes, strict=False) if part is not None and size is not None]
    return any(low < 0 or high >= size for (low, high), size in known)


def _is_empty(index: ast.expr, ranges: Mapping[str, _Range]) -> bool:
    """Whether an index is a slice that names no element: `A[bz:bz]`."""
    if not isinstance(index, ast.Slice):
        return False
    part = _part(index, ranges)
    same = index.lower is not None and index.upper is not None and ast.unparse(index.lower) == ast.unparse(index.upper)
    return same or (part is not None and part[1] < part[0])


def _copied(
    one: ast.expr, other: ast.expr, ranges: Mapping[str, _Range], sizes: Mapping[str, list[int | None]]
) -> Iterator[str]:
    """The buffer of one side of a copy, if the whole of the other side goes beyond it."""
    if not isinstance(other, ast.Name) or other.id not in sizes:
        return
    name = one.value if isinstance(one, ast.Subscript) else one
    indices = _indices(one) if isinstance(one, ast.Subscript) else []
    if not isinstance(name, ast.Name) or any(isinstance(index, ast.Slice) for index in indices):
        return
    own = sizes.get(name.id, [])
    extents = sizes[other.id][-len(own) :] if own else []
    starts = [(_range(index, ranges) or (0, 0))[1] for index in indices] + [0] * (len(own) - len(indices))
    for start, size, extent in zip(starts[::-1], own[::-1], extents[::-1], strict=False):
        if size is not None and extent is not None and start + extent > size:
            yield name.id


def _range(e: ast.expr, ranges: Mapping[str, _Range]) -> _Range | None:
    """The values of an expression; None where they are not known."""
    match e:
        case ast.Constant(int(value)):
            return value, value
        case ast.Name(name) | ast.Subscript(ast.Name(name)):
            return ranges.get(name)
        case ast.BinOp(left, op, right):
            one, other = _range(left, ranges), _range(right, ranges)
            return None if one is None or other is None else _combined(one, op, other)
    return None


def _combined(one: _Range, op: ast.operator, other: _Range) -> _Range | None:
    match op:
        case ast.Add():
            return one[0] + other[0], one[1] + other[1]
        case ast.Sub():
            return one[0] - other[1], one[1] - other[0]
        case ast.Mult():
            products = [a * b for a in one for b in other]
            return min(products), max(products)
        case ast.FloorDiv() if other[0] == other[1] > 0:
            return one[0] // other[0], one[1] // other[0]
        case ast.Mod() if other[0] == other[1] > 0:
            return one if one[0] >= 0 and one[1] < other[0] else (0, other[0] - 1)
    return None


def _constant(e: ast.expr) -> int | None:
    found = _range(e, {})
    return None if found is None else found[0]
