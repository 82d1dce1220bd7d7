"""The least and the greatest value of an index, by interval arithmetic.

TileLang reads an index that is negative for certain from the end of its axis (LegalizeNegativeIndex, since 0.1.7); one
of unknown sign is left alone, and guarded later.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from itertools import product
from typing import Any

import numpy as np

from tlcheck.program.negatives import is_constant, may_be_negative
from tlcheck.signatures.control import thread_axis
from tlcheck.snapshot.arrays import ArrayNumbers
from tlcheck.snapshot.dtypes import whole_numbers
from tlcheck.snapshot.ir import Bind, Expr, For, Function, Stmt, Thread
from tlcheck.snapshot.operators import ORDER, exact, name_of, named
from tlcheck.snapshot.walk import postorder, statements

Interval = tuple[Any, Any]  # integers, or arrays of them
Intervals = dict[int, Interval | None]  # by uid of the variable; None for one that is not understood
_LAST_THREAD = 1023  # a block has no more


class Signs:
    """A record of which indices of a source kernel are negative for certain."""

    def __init__(self, function: Function, sizes: Mapping[str, int], from_end: bool = True) -> None:
        """sizes: variables by name. from_end: whether others than constants count from the end."""
        self._function, self._sizes, self._from_end = function, sizes, from_end
        self._known: Intervals = {}

    def resolved(self, index: Expr, size: Expr) -> Expr:
        """An index into an axis of this size, counted from its beginning."""
        if not may_be_negative(index) or not (self._from_end or is_constant(index)):
            return index
        return Expr("add", index.dtype, (index, size)) if is_negative(self.bounds(index)) else index

    def bounds(self, index: Expr) -> Interval | None:
        """The least and the greatest value of an index; None where it is not understood."""
        if not self._known:
            for stmt in statements(self._function.body):
                bind(stmt, self._sizes, self._known)
        return interval(index, self._sizes, self._known)


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
    """Return the least and largest value of an expression; None where it is not understood.

    sizes: variables by name; known: variables by uid.
    """
    found: dict[Expr, Interval | None] = {}
    for x in postorder([e]):
        args = [found[a] for a in x.args]
        found[x] = _one(x, args, sizes, known)
    return found[e]


def where(condition: Expr, sizes: Mapping[str, int], known: Mapping[int, Interval | None]) -> Intervals:
    """Return the ranges of the variables that a condition compares, where it holds."""
    if condition.op == "call" and condition.value == "likely":
        return where(condition.args[0], sizes, known)
    if condition.op == "and":
        first = where(condition.args[0], sizes, known)
        return {**first, **where(condition.args[1], sizes, {**known, **first})}
    if condition.op not in ORDER:
        return {}
    *sides, gap = ORDER[condition.op]
    smaller, larger = (condition.args[side] for side in sides)
    low, high = (interval(e, sizes, known) for e in (smaller, larger))
    found: Intervals = {}
    if low is not None and high is not None:  # at least one value is left, also where the condition never holds
        if smaller.op == "var" and smaller.uid in known:
            found[smaller.uid] = low[0], np.maximum(low[0], np.minimum(low[1], high[1] - gap))
        if larger.op == "var" and larger.uid in known:
            found[larger.uid] = np.minimum(high[1], np.maximum(high[0], low[0] + gap)), high[1]
    return found


def _one(
    e: Expr, args: list[Interval | None], sizes: Mapping[str, int], known: Mapping[int, Interval | None]
) -> Interval | None:
    if e.op == "int" and isinstance(e.value, int):
        return e.value, e.value
    if e.op == "var":
        size = sizes.get(str(e.value))
        return known.get(e.uid, None if size is None else (size, size))
    if thread_axis(e) is not None:
        return 0, _LAST_THREAD
    whole = [a for a in args if a is not None]
    if len(whole) < len(args) or e.dtype not in ("int32", "int64"):
        return None
    found = _combined(name_of(e), whole)
    if found is None:
        return None
    least, most = whole_numbers(e.dtype)
    fits = np.greater_equal(found[0], least) & np.less_equal(found[1], most)
    return found if np.all(fits) else None  # else it may wrap


def _combined(name: str, args: list[Interval]) -> Interval | None:
    if name == "cast":
        return args[0]
    if name in _MONOTONIC or (name in _QUOTIENTS.values() and _is_positive(args[1])):
        # the least and the greatest result, of those where each operand is at one of its ends
        apply = exact(name, _ARRAYS)
        ends = [apply(*each) for each in product(*args)]
        return reduce(_ARRAYS.least, ends), reduce(_ARRAYS.greatest, ends)
    if name == "bitwise_xor" and all(np.ndim(end) == 0 and end >= 0 for each in args for end in each):
        return _exclusive(*args)
    return _rest(name, args[0], int(args[1][0])) if name in _QUOTIENTS and _is_positive(args[1]) else None


def _exclusive(a: Interval, b: Interval) -> Interval:
    """The range of the exclusive or of numbers that are not negative: no bit above theirs is set."""
    if a[0] == a[1] and b[0] == b[1]:
        return a[0] ^ b[0], a[0] ^ b[0]
    return 0, (1 << int(max(a[1], b[1])).bit_length()) - 1


def _rest(name: str, a: Interval, by: int) -> Interval:
    """Return the range between both ends' remainders if their quotients are equal, else all remainders."""
    quotient, rest = exact(_QUOTIENTS[name], _ARRAYS), exact(name, _ARRAYS)
    same = np.equal(quotient(a[0], by), quotient(a[1], by))
    negative, positive = (a[0] < 0, a[1] > 0) if name == "truncmod" else (False, True)
    lowest, highest = np.where(negative, 1 - by, 0), np.where(positive, by - 1, 0)
    return np.where(same, rest(a[0], by), lowest), np.where(same, rest(a[1], by), highest)


def _is_positive(b: Interval) -> bool:
    """Whether it is one positive number."""
    return np.ndim(b[0]) == 0 and np.ndim(b[1]) == 0 and bool(b[0] == b[1]) and bool(b[0] > 0)


_ARRAYS = ArrayNumbers()
_MONOTONIC = named("ring", "extremum", "same")  # in each operand: the product to one side or the other
_QUOTIENTS = {"floormod": "floordiv", "truncmod": "truncdiv"}  # of the same divisor
