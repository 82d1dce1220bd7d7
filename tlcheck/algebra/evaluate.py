"""Polynomials evaluated over whole iteration spaces with NumPy.

Each axis has its own array dimension, so that a term of one variable is computed once for each value of it and only
the last additions run over all lanes. Spaces above `CHUNK` lanes are cut along their leading axes: memory stays
bounded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
import numpy.typing as npt

from tlcheck.algebra.algebra import Algebra, Atom, Poly
from tlcheck.snapshot.dtypes import dtype_of, whole_numbers

Array = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]
Mask = npt.NDArray[np.bool_]
Values = Array | int
CHUNK = 1 << 16


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
            value: Values = coefficient
            for number in monomial:
                value = value * self._atom(number)
            terms.append(value)
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
            return _floordiv(args[0], int(atom.detail))
        if atom.kind == "%":
            return _floormod(args[0], int(atom.detail))
        operator = _OPERATORS.get(atom.kind)
        if operator is not None and len(args) == 2:
            return operator(args[0], args[1])
        if atom.kind == "wrap":
            return _wrapped(args[0], str(atom.detail))
        if atom.kind == "clip":
            return _plain(np.clip(np.asarray(args[0]), *whole_numbers(str(atom.detail))))
        if atom.kind == "not":
            return _integer(np.equal(args[0], 0))
        if atom.kind == "select" or (atom.kind == "call" and str(atom.detail).startswith("if_then_else:")):
            return _plain(np.where(np.not_equal(args[0], 0), args[1], args[2]))
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
    """What a type holds of numbers."""
    least, most = whole_numbers(dtype)
    return _floormod(value - least, most - least + 1) + least


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


def _integer(value: npt.NDArray[np.bool_] | np.bool_ | bool) -> Values:
    array: npt.NDArray[np.int64] = np.asarray(value).astype(np.int64)
    return _plain(array)


def _floordiv(a: Values, c: int) -> Values:
    if c & (c - 1) == 0:
        return a >> (c.bit_length() - 1)
    return a // c


def _floormod(a: Values, c: int) -> Values:
    if c & (c - 1) == 0:
        return a & (c - 1)
    return a % c


def _truncdiv(a: Values, b: Values) -> Values:
    safe = np.where(np.equal(b, 0), 1, b)
    return _plain((np.sign(a) * np.sign(safe) * (np.abs(a) // np.abs(safe))).astype(np.int64))


def _by(a: Values, b: Values) -> Values:
    return _plain(np.asarray(a) // np.where(np.equal(b, 0), 1, b))


def _rest(a: Values, b: Values) -> Values:
    return _plain(np.asarray(a) % np.where(np.equal(b, 0), 1, b))


_OPERATORS: dict[str, Callable[[Values, Values], Values]] = {
    "mul": lambda a, b: a * b,
    "min": lambda a, b: _plain(np.minimum(a, b)),
    "max": lambda a, b: _plain(np.maximum(a, b)),
    "lt": lambda a, b: _integer(np.less(a, b)),
    "le": lambda a, b: _integer(np.less_equal(a, b)),
    "gt": lambda a, b: _integer(np.greater(a, b)),
    "ge": lambda a, b: _integer(np.greater_equal(a, b)),
    "eq": lambda a, b: _integer(np.equal(a, b)),
    "ne": lambda a, b: _integer(np.not_equal(a, b)),
    "and": lambda a, b: _integer(np.logical_and(a, b)),
    "or": lambda a, b: _integer(np.logical_or(a, b)),
    "bitwise_xor": lambda a, b: _plain(np.bitwise_xor(a, b)),
    "bitwise_and": lambda a, b: _plain(np.bitwise_and(a, b)),
    "bitwise_or": lambda a, b: _plain(np.bitwise_or(a, b)),
    "shift_left": lambda a, b: _plain(np.left_shift(a, b)),
    "shift_right": lambda a, b: _plain(np.right_shift(a, b)),
    "floordiv": _by,
    "floormod": _rest,
    "truncdiv": _truncdiv,
    "truncmod": lambda a, b: a - _truncdiv(a, b) * b,
}


def text_hash(text: str) -> int:
    """64 bits that depend on the text alone (FNV-1a), the same in every process."""
    value = 0xCBF29CE484222325
    for byte in text.encode():
        value = ((value ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return value
