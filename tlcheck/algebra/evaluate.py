"""Polynomials evaluated over whole iteration spaces with NumPy.

Each axis has its own array dimension, so that a term of one variable is computed once for each value of it and only
the last additions run over all lanes. Spaces above `CHUNK` lanes are cut along their leading axes: memory stays
bounded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from tlcheck.algebra.algebra import Algebra, Atom
from tlcheck.algebra.polynomial import Poly
from tlcheck.snapshot.arrays import ArrayNumbers
from tlcheck.snapshot.dtypes import dtype_of, whole_numbers
from tlcheck.snapshot.operators import OPERATORS, exact, wrapped

Array = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]
Mask = npt.NDArray[np.bool_]
Values = Array | int
CHUNK = 1 << 16
_LEAST, _MOST = whole_numbers("int64")


@dataclass(frozen=True, slots=True)
class Dimension:
    """One axis of a space: variable `uid` takes start .. start + extent - 1."""

    uid: int
    start: int
    extent: int


Space = Sequence[Dimension]
Environment = Mapping[int, Values]


def size(space: Space) -> int:
    """Number of points."""
    return prod(d.extent for d in space)


def chunks(space: Space, limit: int = CHUNK) -> Iterator[dict[int, Values]]:
    """The space in pieces of at most about `limit` points: each variable as an array along its own dimension."""
    rank = len(space)
    if size(space) == 0:
        return
    yield from _chunks(list(space), 0, rank, limit, {})


def _chunks(
    space: list[Dimension], axis: int, rank: int, limit: int, fixed: dict[int, Values]
) -> Iterator[dict[int, Values]]:
    rest = size(space[axis:])
    if rest <= limit or axis == rank:
        yield {**fixed, **{d.uid: _along(d.start, d.extent, axis + i, rank) for i, d in enumerate(space[axis:])}}
        return
    dim = space[axis]
    inner = rest // max(dim.extent, 1)
    step = max(1, limit // max(inner, 1))
    for begin in range(0, dim.extent, step):
        count = min(step, dim.extent - begin)
        piece: dict[int, Values] = {**fixed, dim.uid: _along(dim.start + begin, count, axis, rank)}
        yield from _chunks(space, axis + 1, rank, limit, piece)


def _along(start: int, extent: int, axis: int, rank: int) -> Values:
    if extent == 1:
        return start
    shape = [1] * rank
    shape[axis] = extent
    return np.arange(start, start + extent, dtype=np.int64).reshape(shape)


class Evaluator:
    """Values of the polynomials of one algebra in one environment, each atom computed once.

    loaded: the content of memory from the element read; without it an unknown function of that.
    """

    def __init__(self, algebra: Algebra, env: Environment, loaded: Callable[[Values], Values] | None = None) -> None:
        self._algebra = algebra
        self._env = env
        self._loaded = loaded
        self._known: dict[int, Values] = {}

    def __call__(self, poly: Poly) -> Values:
        """The value of poly at each point; smallest shapes are added first."""
        terms: list[Values] = []
        for monomial, coefficient in poly.items():
            value: Values = _int64(coefficient)
            for number in monomial:
                value = value * self._atom(number)
            terms.append(value if isinstance(value, np.ndarray) else _int64(value))
        terms.sort(key=_points)
        total: Values = 0
        for term in terms:
            total = total + term
        return total

    def _atom(self, number: int) -> Values:
        value = self._known.get(number)
        if value is None:
            value = self._known[number] = self._evaluate(self._algebra.atoms[number])
        return value

    def _evaluate(self, atom: Atom) -> Values:
        if atom.kind == "var":
            return self._env[int(atom.detail)]
        args = [self(p) for p in atom.args]
        if atom.kind == "//":
            return _number(_OPERATORS["floordiv"](args[0], int(atom.detail)))
        if atom.kind == "%":
            return _number(_OPERATORS["floormod"](args[0], int(atom.detail)))
        kind = "if_then_else" if str(atom.detail).startswith("if_then_else:") else atom.kind
        if kind in _OPERATORS:
            return _number(_OPERATORS[kind](*args))
        if atom.kind == "wrap":
            return _wrapped(args[0], str(atom.detail))
        if atom.kind == "clip":
            return _plain(np.clip(np.asarray(args[0]), *whole_numbers(str(atom.detail))))
        if atom.kind == "register":
            table = self._algebra.tables[str(atom.detail)]
            return self._unknown("load", atom, [table.at(np.asarray(args[0]), np.asarray(args[1]))])
        return self._unknown(atom.kind, atom, args)

    def _unknown(self, kind: str, atom: Atom, args: list[Values]) -> Values:
        """Memory and functions that nothing is known of: equal arguments give equal values, others mostly differ."""
        if kind == "load" and self._loaded is not None:
            return self._loaded(args[0])
        salt = self._algebra.salt
        seed = text_hash(f"{kind}|{atom.detail}" + (f"|{salt}" if salt else ""))
        state: Words = np.asarray(seed, dtype=np.uint64)
        with np.errstate(over="ignore"):
            for arg in args:
                state = mix(state * np.uint64(0x9E3779B97F4A7C15) + np.asarray(arg, dtype=np.int64).view(np.uint64))
        if atom.range == (0, 1) or not self._algebra.numbers:
            limit = 2 if atom.range == (0, 1) else min(self._algebra.opaque, _most(atom.holds) + 1)
            return _plain((state % np.uint64(limit)).astype(np.int64))
        numbers = np.array(self._algebra.numbers, dtype=np.int64)
        numbers = _of_type(numbers if atom.range[0] is None else np.abs(numbers), atom.holds)
        return _plain(numbers[(state % np.uint64(len(numbers))).astype(np.int64)])


def mix(x: Words) -> Words:
    """A bijection of 64-bit words under which close inputs land far apart (a xorshift-multiply finalizer)."""
    x = x ^ (x >> np.uint64(32))
    with np.errstate(over="ignore"):
        x = x * np.uint64(0xD6E8FEB86659FD93)
    mixed: Words = x ^ (x >> np.uint64(29))
    return mixed


def _wrapped(value: Values, dtype: str) -> Values:
    """Return what a type holds of numbers."""
    least, most = whole_numbers(dtype)
    found: Values = wrapped(value, least, most)
    return found


def _most(dtype: str) -> int:
    """The greatest number that memory of a type can hold, as far as that matters here."""
    return whole_numbers(dtype)[1] if dtype_of(dtype).is_integral else 1 << 62


def _of_type(numbers: Array, dtype: str) -> Array:
    """Numbers that memory of a type can hold, made of any."""
    known = dtype_of(dtype)
    return np.asarray(_wrapped(numbers, dtype)) if known.is_integral and known.bits < 64 else numbers


def _points(value: Values) -> int:
    return 1 if isinstance(value, int) else value.size


def _plain(value: npt.NDArray[np.int64]) -> Values:
    return int(value) if value.ndim == 0 else value


def _int64(value: int) -> int:
    """An integer as the arrays that it meets would hold it."""
    return value if _LEAST <= value <= _MOST else int(wrapped(value, _LEAST, _MOST))


def _number(value: Any) -> Values:
    """An integer of 64 bits, truth values as 0 and 1."""
    return value.astype(np.int64, copy=False) if isinstance(value, np.ndarray) else _int64(int(value))


# `div` and `mod` are of floats, of which nothing is known.
_OPERATORS = {name: exact(name, ArrayNumbers()) for name in OPERATORS if name not in ("div", "mod")}


def text_hash(text: str) -> int:
    """64 bits that depend on the text alone (FNV-1a), the same in every process."""
    value = 0xCBF29CE484222325
    for byte in text.encode():
        value = ((value ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return value
