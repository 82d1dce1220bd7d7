"""Find which blocks of a grid run: the first, the last, and one for each way in which guards and loops can fall."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod
from typing import Any

import numpy as np

from tlcheck.execute.memory.plain import evaluated
from tlcheck.execute.memory.values import Array
from tlcheck.execute.schedule.launches import grid, kernels
from tlcheck.execute.stops import NotModelled
from tlcheck.snapshot.ir import Expr, For, Function, If, Stmt, Thread, While
from tlcheck.snapshot.operators import named
from tlcheck.snapshot.walk import children, expressions, postorder

Block = tuple[int, int, int]
_MOST_LOOKED_AT = 1 << 14
_CONDITIONS = named("comparison", "extremum", "choice")


def is_in(block: Block, extents: tuple[int, int, int]) -> bool:
    """Whether a grid has this block."""
    return all(0 <= place < extent for place, extent in zip(block, extents, strict=True))


def every(extents: Block) -> Iterator[Block]:
    """All blocks of a grid, x first."""
    x, y, z = (range(extent) for extent in extents)
    return ((i, j, k) for k in z for j in y for i in x)


def chosen(functions: tuple[Function, ...], sizes: Mapping[str, int], most: int) -> list[Block]:
    """Choose `most` blocks: first, last, then of each further class the one that does least, small classes first.

    functions: the kernel at each level that runs; the guards of all of them count.
    """
    extents = grid(functions[0], sizes)
    numbers = looked_at(prod(extents))
    at = coordinates(numbers, extents)
    signature = np.zeros((len(numbers), 0), np.int64)
    for function in functions:
        found = list(columns(kernels(function)[-1].body, sizes, at))
        if found:
            signature = np.column_stack([signature, *found])
    picked = _one_of_each(signature, most)
    return [(int(at[0][i]), int(at[1][i]), int(at[2][i])) for i in picked]


def looked_at(count: int) -> Array:
    """Numbers of all blocks, or of a large grid the first and last ones and some between."""
    if count <= _MOST_LOOKED_AT:
        return np.arange(count)
    ends = np.arange(_MOST_LOOKED_AT // 4)
    between = np.linspace(0, count - 1, _MOST_LOOKED_AT // 2).astype(np.int64)
    return np.unique(np.concatenate([ends, between, count - 1 - ends]))


def coordinates(numbers: Array, extents: tuple[int, int, int]) -> list[Array]:
    """x, y and z of blocks by their numbers, x first."""
    x, y = numbers % extents[0], numbers // extents[0]
    return [x, y % extents[1], y // extents[1]]


def columns(root: Stmt, sizes: Mapping[str, int], blocks: list[Array], *, every: bool = False) -> Iterator[Array]:
    """Yield what each condition and loop bound is in every block, with inner variables at their smallest and largest.

    every: also where it is the same in all blocks, and of a loop's minimum of two bounds its value, not which it is.
    """
    low: dict[str, Any] = dict(sizes)
    high: dict[str, Any] = dict(sizes)
    for stmt in _in_order(root):
        if isinstance(stmt, (Thread, For)):
            _bind(stmt, low, high, blocks)
        for e in _conditions(stmt):
            for values in (low, high):
                column = _value(e, values, len(blocks[0]), every, of_loop=isinstance(stmt, For))
                if column is not None:
                    yield column


def _in_order(root: Stmt) -> Iterator[Stmt]:
    stack = [root]
    while stack:
        stmt = stack.pop()
        yield stmt
        stack.extend(reversed(children(stmt)))


def _bind(stmt: Thread | For, low: dict[str, Any], high: dict[str, Any], blocks: list[Array]) -> None:
    name = str(stmt.var.value)
    if isinstance(stmt, Thread) and stmt.tag.startswith("blockIdx."):
        low[name] = high[name] = blocks["xyz".index(stmt.tag[-1])]
        return
    try:
        start = evaluated(stmt.start, low) if isinstance(stmt, For) else 0
        low[name], high[name] = start, start + evaluated(stmt.extent, high) - 1
    except NotModelled:
        low.pop(name, None)
        high.pop(name, None)


def _conditions(stmt: Stmt) -> Iterator[Expr]:
    if isinstance(stmt, For):
        yield stmt.extent
    elif isinstance(stmt, (If, While)):
        yield from (e for e in postorder([stmt.condition]) if e.op in _CONDITIONS)
    else:
        for root in expressions(stmt):
            yield from (e for e in postorder([root]) if e.op in _CONDITIONS)


def _value(e: Expr, values: Mapping[str, Any], count: int, every: bool, of_loop: bool) -> Array | None:
    try:
        found = np.asarray(evaluated(e, values))
    except NotModelled:
        return None
    if e.op in ("min", "max") and not (every and of_loop):
        found = np.asarray(evaluated(e.args[0], values)) == found
    if not every and (found.ndim == 0 or (found == found.flat[0]).all()):
        return None
    return np.broadcast_to(found, (count,)).astype(np.int64)


def _one_of_each(signature: Array, most: int) -> list[int]:
    """First, last, and one row of each other class, the smallest classes first."""
    last = len(signature) - 1
    if signature.shape[1] == 0:
        return sorted({0, last, last // 2})[:most]
    _, firsts, classes, counts = np.unique(
        _coarse(signature), axis=0, return_index=True, return_inverse=True, return_counts=True
    )
    classes = classes.reshape(-1)
    picked = [0] if last == 0 else [0, last]
    seen = {int(classes[i]) for i in picked}
    for number in np.argsort(counts, kind="stable").tolist():
        if number not in seen and len(picked) < most:
            picked.append(int(firsts[number]))
    if len(picked) < min(3, most) and last // 2 not in picked:
        picked.append(last // 2)
    return sorted(picked)


def _coarse(signature: Array) -> Array:
    """Values of many kinds, such as trip counts, as none, one, few or many."""
    few = np.array([len(np.unique(column)) <= 4 for column in signature.T])
    steps = np.digitize(signature, [1, 2, np.iinfo(np.int32).max])
    return np.where(few, signature, steps)
