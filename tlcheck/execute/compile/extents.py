"""The least and the greatest value of an index, by interval arithmetic.

TileLang reads an index that is negative for certain from the end of its axis (LegalizeNegativeIndex, since 0.1.7); one
of unknown sign is left alone, and guarded later.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tlcheck.snapshot.ir import Bind, Expr, For, Function, Stmt, Thread
from tlcheck.snapshot.walk import postorder, statements

Interval = tuple[Any, Any]  # integers, or arrays of them
Intervals = dict[int, Interval | None]  # by uid of the variable; None for one that is not understood
_LAST_THREAD = 1023  # a block has no more


class Signs:
    """Which indices of a kernel as written are negative for certain."""

    def __init__(self, function: Function, sizes: Mapping[str, int]) -> None:
        """sizes: variables by name."""
        self._function, self._sizes = function, sizes
        self._known: Intervals = {}

    def resolved(self, index: Expr, size: Expr) -> Expr:
        """An index into an axis of this size, counted from its beginning."""
        if not any(e.op == "sub" or (e.op == "int" and int(e.value or 0) < 0) for e in postorder([index])):
            return index
        if not self._known:
            for stmt in statements(self._function.body):
                bind(stmt, self._sizes, self._known)
        negative = is_negative(interval(index, self._sizes, self._known))
        return Expr("add", index.dtype, (index, size)) if negative else index


def is_negative(found: Interval | None) -> bool:
    """Whether all that an index may be is negative."""
    return found is not None and bool(np.all(np.less(found[1], 0)))


def bind(stmt: Stmt, sizes: Mapping[str, int], known: Intervals) -> None:
    """Note what a statement says of a variable."""
    if isinstance(stmt, Bind):
        known[stmt.var.uid] = interval(stmt.value, sizes, known)
    elif isinstance(stmt, (Thread, For)):
        start = (0, 0) if isinstance(stmt, Thread) else interval(stmt.start, sizes, known)
        count = interval(stmt.extent, sizes, known)
        if start is None or count is None:
            known[stmt.var.uid] = None
        else:
            known[stmt.var.uid] = start[0], np.maximum(start[0], start[1] + count[1] - 1)


def interval(e: Expr, sizes: Mapping[str, int], known: Mapping[int, Interval | None]) -> Interval | None:
    """Between what values an expression is; None where that is not understood.

    sizes: variables by name; known: variables by uid.
    """
    found: dict[Expr, Interval | None] = {}
    for x in postorder([e]):
        args = [found[a] for a in x.args]
        found[x] = _one(x, args, sizes, known)
    return found[e]


def where(condition: Expr, sizes: Mapping[str, int], known: Mapping[int, Interval | None]) -> Intervals:
    """Between what values variables are where a condition holds: of those that it compares with something."""
    if condition.op == "call" and condition.value == "likely":
        return where(condition.args[0], sizes, known)
    if condition.op == "and":
        first = where(condition.args[0], sizes, known)
        return {**first, **where(condition.args[1], sizes, {**known, **first})}
    if condition.op not in _LESS:
        return {}
    (smaller, larger), gap = condition.args[:: _LESS[condition.op][0]], _LESS[condition.op][1]
    low, high = (interval(e, sizes, known) for e in (smaller, larger))
    found: Intervals = {}
    if low is not None and high is not None:  # at least one value is left, also where the condition never holds
        if smaller.op == "var" and smaller.uid in known:
            found[smaller.uid] = low[0], np.maximum(low[0], np.minimum(low[1], high[1] - gap))
        if larger.op == "var" and larger.uid in known:
            found[larger.uid] = np.minimum(high[1], np.maximum(high[0], low[0] + gap)), high[1]
    return found


_LESS = {"lt": (1, 1), "le": (1, 0), "gt": (-1, 1), "ge": (-1, 0)}  # the order of the sides, and their difference


def _one(
    e: Expr, args: list[Interval | None], sizes: Mapping[str, int], known: Mapping[int, Interval | None]
) -> Interval | None:
    if e.op == "int" and isinstance(e.value, int):
        return e.value, e.value
    if e.op == "var":
        size = sizes.get(str(e.value))
        return known.get(e.uid, None if size is None else (size, size))
    if e.op == "call" and e.value == "launch_thread_idx":
        return 0, _LAST_THREAD
    combine = _COMBINED.get(str(e.value) if e.op == "call" else e.op)
    whole = [a for a in args if a is not None]
    if combine is None or len(whole) < len(args) or e.dtype not in ("int32", "int64"):
        return None
    return combine(*whole)


def _product(a: Interval, b: Interval) -> Interval:
    ends = [x * y for x in a for y in b]
    return np.minimum.reduce(np.broadcast_arrays(*ends)), np.maximum.reduce(np.broadcast_arrays(*ends))


def _quotient(a: Interval, b: Interval) -> Interval | None:
    if not _is_constant(b):
        return None
    return a[0] // b[0], a[1] // b[0]


def _rest(a: Interval, b: Interval) -> Interval | None:
    if not _is_constant(b):
        return None
    same = np.equal(np.floor_divide(a[0], b[0]), np.floor_divide(a[1], b[0]))
    return np.where(same, np.mod(a[0], b[0]), 0), np.where(same, np.mod(a[1], b[0]), b[0] - 1)


def _is_constant(b: Interval) -> bool:
    """Whether it is one positive number."""
    return np.ndim(b[0]) == 0 and np.ndim(b[1]) == 0 and bool(b[0] == b[1]) and bool(b[0] > 0)


def _truncated(a: Interval, b: Interval) -> Interval | None:
    return _quotient(a, b) if np.all(np.asarray(a[0]) >= 0) else None


def _truncated_rest(a: Interval, b: Interval) -> Interval | None:
    return _rest(a, b) if np.all(np.asarray(a[0]) >= 0) else None


_COMBINED: dict[str, Callable[..., Interval | None]] = {
    "add": lambda a, b: (a[0] + b[0], a[1] + b[1]),
    "sub": lambda a, b: (a[0] - b[1], a[1] - b[0]),
    "mul": _product,
    "floordiv": _quotient,
    "floormod": _rest,
    "truncdiv": _truncated,
    "truncmod": _truncated_rest,
    "min": lambda a, b: (np.minimum(a[0], b[0]), np.minimum(a[1], b[1])),
    "max": lambda a, b: (np.maximum(a[0], b[0]), np.maximum(a[1], b[1])),
    "cast": lambda a: a,
    "likely": lambda a: a,
}
