"""Inputs of a kernel: sizes for its symbolic shapes, and the contents of its tensors for each seed.

Contents are a function of case, arguments, parameter, seed and element alone: not of the release or the target, so
that two releases see the same numbers, and not of NumPy, whose generators may change.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import islice, product
from math import gcd, prod

import numpy as np

from tlcheck.execute.field import drawn, mixed, words_of
from tlcheck.execute.memory.pages import Contents
from tlcheck.execute.memory.plain import evaluated
from tlcheck.execute.memory.values import Array, Kind, kind_of, lanes_of, rounded
from tlcheck.execute.ops.scale_factors import UE4M3, UE8M0
from tlcheck.execute.stops import NotModelled
from tlcheck.snapshot.ir import Attr, Buffer, Evaluate, Expr, Function
from tlcheck.snapshot.walk import postorder, statements

_SIZES = (64, 128, 256, 96, 32, 16, 512, 1024, 8, 4, 2, 1)
_FACTORS = {UE8M0: (124, 7), UE4M3: (0x30, 24)}  # the bytes that are drawn: the first, and how many
_EXACT = 3  # the first seed has integers of at most this size, which every dtype has
_MOST_TRIED = 4096
_MOST = 2**31
_NUMBERS = (1, 0, 3)  # tried for integer parameters that are no sizes, where sizes do not fit them
_WITH_NUMBERS = 3  # sizes with which these are tried
_UNITS = (64, 1024, 1)  # of which strides are multiples, if the author's promises allow it


@dataclass(frozen=True, slots=True)
class Draw:
    """The limits within which integers are drawn: below `below`; those of a tensor in `further` below another limit,
    but for seed 0.

    So some loops have no step, and others many. gaps: with seed 0, every other part between offsets is empty, and a
    loop whose length is read from memory has no step in the first block, or in all.
    ranges: what the integers of a tensor are below in any case, since they are indices; least: the smallest, if not 0.
    places: tensors whose elements are drawn from all of their range, but for seed 0. none: of some elements it is -1.
    chained: elements are the places of others, further to the front, or -1. signed: half of them are negative, but for
    seed 0.
    sparse: of four neighbours in memory three are 0, as kernels want it that leave out zeros.
    unit: floats of tensors are from 0 to below 1, as kernels want it that make indices of them.
    distinct: of the integers of these tensors no two are equal, as far as there are as many below the limit.
    ordered: tensors of which one element is promised to be below another one are drawn so.
    special: some floats of tensors are NaN, infinite or -0. finite: none of them is infinite.
    ends: some integers of these tensors are at the ends of types, up to a number of bits.
    residues: they are random elements of a field.
    """

    below: int = 8
    further: tuple[tuple[str, int], ...] = ()
    gaps: bool = True
    ranges: tuple[tuple[str, int], ...] = ()
    least: tuple[tuple[str, int], ...] = ()
    places: tuple[str, ...] = ()
    none: tuple[str, ...] = ()
    chained: tuple[str, ...] = ()
    signed: tuple[str, ...] = ()
    sparse: bool = False
    unit: bool = False
    distinct: tuple[str, ...] = ()
    ordered: bool = False
    special: bool = False
    finite: bool = False
    ends: tuple[tuple[str, int], ...] = ()
    residues: bool = False

    def in_field(self) -> Draw:
        """The draw with elements of a field as floats."""
        return replace(self, residues=True)

    def limit(self, name: str, seed: int = 1) -> int:
        """Return what the integers of a tensor are below."""
        drawn = dict(self.further).get(name, self.below) if seed else self.below
        within = dict(self.ranges).get(name, drawn)
        if seed and name in self.places and name not in dict(self.further):
            return within
        return max(self.floor(name) + 1, min(self.floor(name) + drawn, within))

    def floor(self, name: str) -> int:
        """Return the smallest integer of a tensor."""
        return dict(self.least).get(name, 0)

    def with_limit(self, name: str, below: int) -> Draw:
        """Another one for this tensor alone."""
        return replace(self, further=tuple({**dict(self.further), name: below}.items()))


@dataclass(frozen=True, slots=True)
class Course:
    """The choices that decide which way a kernel goes. first: sizes to try before the usual ones; draw: of integers, if
    known.

    passed: how many sizes that keep what is promised of them are passed over: what the kernel promises of its indices
    did not hold. named: sizes that are what they are here.
    """

    first: tuple[int, ...] = ()
    draw: Draw | None = None
    passed: int = 0
    named: tuple[tuple[str, int], ...] = ()


USUAL = Course()


def known(function: Function, given: Mapping[str, Array]) -> dict[str, int]:
    """The sizes and integer parameters that tensors and numbers of the case's own say.

    An axis of `n + 1` or `n * heads` elements says what n is, if nothing else in it is unknown.
    """
    names = symbols(function)
    found = {name: int(given[name]) for name in names if name in given}
    axes: list[tuple[Expr, int]] = []
    for buffer in function.buffers:
        array = given.get(str(buffer.data.value))
        if array is not None and array.ndim == len(buffer.shape):
            axes += zip(buffer.shape, array.shape, strict=True)
    found.update({str(e.value): size for e, size in axes if e.op == "var" and str(e.value) in names})
    while True:
        solved = dict(pair for e, size in axes if (pair := _solved(e, size, found)) is not None)
        if not solved.keys() - found.keys():
            return found
        found = solved | found


def _solved(e: Expr, size: int, values: Mapping[str, int]) -> tuple[str, int] | None:
    """The only unknown variable of an axis of so many elements, and its value; None unless sums, differences and
    products alone make the axis of it, and a natural number fits."""
    while e.op in ("add", "sub", "mul"):
        first, second = (_value(a, values) for a in e.args)
        if (first is None) == (second is None):
            return None
        unknown, number = (e.args[0], second or 0) if first is None else (e.args[1], first or 0)
        if e.op == "mul":
            if number == 0 or size % number:
                return None
            size = size // number
        elif e.op == "add":
            size -= number
        else:
            size = size + number if first is None else number - size
        e = unknown
    return (str(e.value), size) if e.op == "var" and size >= 0 and str(e.value) not in values else None


def _value(e: Expr, values: Mapping[str, int]) -> int | None:
    """None where a variable is unknown."""
    with suppress(NotModelled):
        return int(evaluated(e, values))
    return None


def sizes(function: Function, given: Mapping[str, int], course: Course = USUAL) -> dict[str, int] | None:
    """A value for each symbolic size and integer parameter, such that the author's promises hold; None if none does.

    given: those that are known already.
    """
    return next(islice(_that_hold(function, given, course.first), course.passed, None), None)


def _that_hold(function: Function, given: Mapping[str, int], first: Sequence[int]) -> Iterator[dict[str, int]]:
    """All of them, each once."""
    seen: list[dict[str, int]] = []
    names = [name for name in symbols(function) if name not in given]
    promises = [p for p in _promises(function) if _is_of(p, [*names, *given])]
    steps = _steps(function) - given.keys()
    free = [name for name in names if name not in steps]
    numbers = [name not in _of_shapes(function) for name in free]
    for chosen in islice(_candidates(numbers, (*first, *_SIZES)), _MOST_TRIED):
        values = {**given, **dict(zip(free, chosen, strict=True))}
        for unit in _UNITS if steps else _UNITS[:1]:
            found = values | _apart(function, steps, values, unit)
            if found not in seen and all(evaluated(p, found) for p in promises):
                seen.append(found)
                yield found


def _steps(function: Function) -> set[str]:
    """The variables that are strides, and nothing else."""
    found = {str(e.value) for b in function.buffers for e in b.strides if e.op == "var"}
    others = [e for b in function.buffers for e in b.shape]
    others += [e for b in function.buffers for e in b.strides if e.op != "var"]
    return found - {str(e.value) for e in postorder(others) if e.op == "var"}


def _apart(function: Function, steps: set[str], values: Mapping[str, int], unit: int) -> dict[str, int]:
    """Strides that keep the elements of each tensor apart: multiples of a unit, larger than they have to be."""
    found: dict[str, int] = {}
    for buffer in function.buffers if steps else ():
        axes = list(zip(extent(buffer, values), buffer.strides, strict=False))
        between = max([1, *(n * int(evaluated(s, values)) for n, s in axes if str(s.value) not in steps)])
        for count, stride in reversed(axes):
            name = str(stride.value)
            if name in steps:
                found[name] = max(found.get(name, 0), (between // unit + 1) * unit)
                between = count * found[name]
    return found


def _candidates(numbers: Sequence[bool], among: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """The same size for all first, also with small numbers for what is no size, then every combination."""
    usual, others = among[:_WITH_NUMBERS], among[_WITH_NUMBERS:]
    yield from ((size,) * len(numbers) for size in usual)
    for size in usual if any(numbers) else ():
        yield from product(*[_NUMBERS if number else (size,) for number in numbers])
    yield from ((size,) * len(numbers) for size in others)
    yield from product(among, repeat=len(numbers))


def symbols(function: Function) -> list[str]:
    """Names of the variables in shapes and of the scalar parameters, in order of appearance."""
    found = _of_shapes(function)
    found += [str(p.value) for p in function.params if p.dtype.startswith(("int", "uint"))]
    return list(dict.fromkeys(found))


def axes(function: Function) -> list[str]:
    """Names of the variables in shapes that are no strides, in order of appearance."""
    steps = _steps(function)
    return [name for name in dict.fromkeys(_of_shapes(function)) if name not in steps]


def integers(function: Function) -> list[str]:
    """Names of the tensors of integers."""
    return [str(b.data.value) for b in function.buffers if b.dtype.startswith(("int", "uint"))]


def _of_shapes(function: Function) -> list[str]:
    """Names of the variables in shapes, strides and offsets."""
    roots = [e for b in function.buffers for e in (*b.shape, *b.strides, *([b.elem_offset] if b.elem_offset else []))]
    return [str(e.value) for e in postorder(roots) if e.op == "var"]


def _promises(function: Function) -> Iterator[Expr]:
    for stmt in statements(function.body):
        if isinstance(stmt, Attr) and stmt.key == "tl.assume" and stmt.value is not None:
            yield stmt.value
        if isinstance(stmt, Evaluate) and stmt.value.op == "call" and stmt.value.value == "assume":
            yield stmt.value.args[0]


def _is_of(e: Expr, names: list[str]) -> bool:
    """Whether an expression is about these variables alone."""
    leaves = [x for x in postorder([e]) if x.op in ("var", "load", "call", "unknown")]
    return all(x.op == "var" and str(x.value) in names for x in leaves)


def scalars(function: Function, values: Mapping[str, int], seed: int) -> dict[str, int | float]:
    """The sizes, and a number for each floating parameter."""
    found: dict[str, int | float] = dict(values)
    for p in function.params:
        if p.dtype.startswith(("float", "bfloat")):
            kind = kind_of(p.dtype)
            key = _key(str(p.value), seed)
            found[str(p.value)] = float(_drawn(kind, seed, key, np.zeros(1, np.int64), Draw(), "")[0])
    return found


def extent(buffer: Buffer, values: Mapping[str, int]) -> tuple[int, ...]:
    """The shape of a parameter; lanes of vectors are its last axis."""
    lanes = lanes_of(buffer.dtype)
    return (*[int(evaluated(e, values)) for e in buffer.shape], *([lanes] if lanes > 1 else []))


def known_extent(buffer: Buffer, values: Mapping[str, int]) -> tuple[int, ...] | None:
    """The shape of a parameter; None where it depends on a size that is not known."""
    try:
        return extent(buffer, values)
    except NotModelled:
        return None


def strides(buffer: Buffer, values: Mapping[str, int]) -> tuple[int, ...]:
    """The strides of a parameter, in elements, as `extent` has the axes; none where it is row-major."""
    lanes = lanes_of(buffer.dtype)
    found = [int(evaluated(e, values)) * lanes for e in buffer.strides]
    return (*found, 1) if found and lanes > 1 else tuple(found)


def offset(buffer: Buffer, values: Mapping[str, int]) -> int:
    """The place of a parameter's first element."""
    return int(evaluated(buffer.elem_offset, values)) if buffer.elem_offset is not None else 0


def span(buffer: Buffer, values: Mapping[str, int]) -> int:
    """Return how many elements of memory a parameter takes."""
    shape = extent(buffer, values)
    first, steps = offset(buffer, values), strides(buffer, values)
    if not steps or 0 in shape:
        return first + prod(shape)
    return first + sum((n - 1) * s for n, s in zip(shape, steps, strict=True)) + 1


def contents(name: str, kind: Kind, draw: Draw, lengths: Set[int] = frozenset()) -> Contents:
    """Random elements: small integers for seed 0, numbers between -1 and 1 for the others.

    lengths: elements that are lengths of loops, see `Draw.gaps`.
    """

    key = cache(partial(_key, name))
    if draw.residues and kind.is_float:
        return lambda seed, numbers: drawn(numbers.astype(np.uint64) ^ mixed(np.uint64(key(seed))))

    def elements(seed: int, numbers: Array) -> Array | None:
        if name in draw.distinct and not kind.is_float:
            return _with_none(key(seed), numbers, _distinct(key(seed), numbers, draw, name), name in draw.none, kind)
        found = _drawn(kind, seed, key(seed), numbers, draw, name)
        if draw.unit and kind.is_float:
            found = np.asarray(rounded(found % (_EXACT + 1) / (_EXACT + 1) if seed == 0 else np.abs(found), kind))
            found = np.where(found < 1, found, 0.0)  # what a narrow type rounds to 1
        if draw.sparse:
            found = np.where(_kept(key(seed), numbers), found, found.dtype.type(0))
        if draw.gaps and not seed and lengths:
            found[np.isin(numbers, list(lengths))] = draw.floor(name)
        found = _with_none(key(seed), numbers, found, name in draw.none, kind)
        if name in dict(draw.ends):
            return _with_ends(key(seed), numbers, found, kind, dict(draw.ends)[name])
        is_special = draw.special and kind.is_float
        return _with_specials(key(seed), numbers, found, kind, draw.finite) if is_special else found

    return elements


def _distinct(key: int, numbers: Array, draw: Draw, name: str) -> Array:
    """Integers within a tensor's limits, no two of which are equal among as many neighbours: a step that has no factor
    in common with how many there are, from a place on.
    """
    limit = max(1, dict(draw.ranges)[name] - draw.floor(name))
    steps = (step for step in range(1 + key % limit, 2 * limit + 2) if gcd(step, limit) == 1)
    return np.asarray((numbers * next(steps) + (key >> 32) % limit) % limit + draw.floor(name))


def _with_none(key: int, numbers: Array, found: Array, asked: bool, kind: Kind) -> Array:
    """Make one of eight elements -1, where the kernel asks for that."""
    if not asked:
        return found.astype(kind.array)
    return np.where(_below(_words(key ^ 3, numbers), 8) == 0, np.asarray(-1).astype(kind.array), found)


def _with_specials(key: int, numbers: Array, found: Array, kind: Kind, finite: bool) -> Array:
    """Half of the elements as they are, the others NaN, infinities and -0. finite: NaN and 0 instead of infinities."""
    endless = [np.nan, 0.0] if finite else [np.inf, -np.inf]
    special = np.array([np.nan, *endless, -0.0] if kind.bits > 8 else [-0.0])
    chosen = _below(_words(key ^ 2, numbers), 8)
    return np.where(chosen < len(special), special[np.minimum(chosen, len(special) - 1)], found)


def _with_ends(key: int, numbers: Array, found: Array, kind: Kind, bits: int) -> Array:
    """Most of the elements at the ends of types of up to so many bits, as far as the tensor's own holds them."""
    powers = [1 << n for n in (7, 8, 15, 16, 31, 32, 63, 64) if n <= bits]
    some = {sign * (power + step) for power in powers for sign in (1, -1) for step in (-1, 0, 1)}
    ends = np.array(sorted(n for n in some if kind.limits[0] <= n <= kind.limits[1])).astype(kind.array)
    chosen = _below(_words(key ^ 4, numbers), len(ends) + 2)
    return np.where(chosen < len(ends), ends[np.minimum(chosen, len(ends) - 1)], found).astype(kind.array)


def _kept(key: int, numbers: Array) -> Array:
    """Return one of each four neighbours, at random."""
    return np.asarray(numbers % 4 == _words(key ^ 1, numbers // 4) >> np.uint64(62))


def rising(name: str, kind: Kind, size: int, last: int, gaps: bool) -> Contents:
    """Offsets of `size - 1` parts that are about as long, from 0 to `last`. gaps: see `Draw`."""

    def elements(seed: int, numbers: Array) -> Array | None:
        if gaps and not seed:
            numbers = np.minimum((numbers + 1) // 2 * 2, size - 1)
        part = last / max(1, size - 1)
        words = _words(_key(name, seed), numbers)
        apart = (words >> np.uint64(12)).astype(np.float64) * 2.0**-53
        found = np.minimum(np.floor((numbers + apart) * part), last)
        return np.where(numbers == 0, 0, np.where(numbers == size - 1, last, found)).astype(kind.array)

    return elements


def ordered(name: str, kind: Kind, size: int, below: int, place: tuple[int, int, bool]) -> Contents:
    """Numbers that rise with their place, or fall, and are apart from those of other tensors.

    place: among how many tensors this one is which, and whether it falls.
    """
    rank, count, falls = place
    step = max(1, below // max(1, size * count))

    def elements(seed: int, numbers: Array) -> Array | None:
        steps = (size - 1 - numbers if falls else numbers) * count + rank
        apart = _below(_words(_key(name, seed), numbers), step)
        found = steps * step + apart if size * count <= below else steps * below // (size * count)
        return np.asarray(found).astype(kind.array)

    return elements


def scales(name: str, of: str) -> Contents:
    """Words of four scale factors of a type, each near 1."""
    least, count = _FACTORS[of]

    def elements(seed: int, numbers: Array) -> Array | None:
        words = _words(_key(name, seed), numbers)
        octets = [
            (words >> np.uint64(16 * i) & np.uint64(0xFFFF)) % np.uint64(count) + np.uint64(least) for i in range(4)
        ]
        found = sum((octet << np.uint64(8 * i) for i, octet in enumerate(octets)), np.zeros_like(words))
        return np.asarray(found.astype(np.uint32))

    return elements


def given(arrays: Mapping[int, Array], kind: Kind, otherwise: Contents | None = None) -> Contents:
    """The elements of a tensor that the case gives, as they lie in memory, for each seed. otherwise: for other seeds"""

    def elements(seed: int, numbers: Array) -> Array | None:
        if otherwise is not None and seed not in arrays:
            return otherwise(seed, numbers)
        found: Array = arrays[seed][numbers].astype(kind.array)
        return found

    return elements


def _key(name: str, seed: int) -> int:
    """The start of a parameter's numbers: what the case is called, or its file, changes nothing."""
    return words_of(repr((name, seed)))


def _drawn(kind: Kind, seed: int, key: int, numbers: Array, draw: Draw, name: str) -> Array:
    words = _words(key, numbers)
    if kind.family == "bool":
        return np.asarray(words >> np.uint64(63) != 0)
    if not kind.is_float and name in draw.chained:
        place = numbers % dict(draw.ranges).get(name, _MOST)
        return np.asarray((words >> np.uint64(33)).astype(np.int64) % (place + 1) - 1).astype(kind.array)
    if not kind.is_float:
        low, high = _range(kind, seed, draw, name)
        return (_below(words, high - low) + low).astype(kind.array)
    if seed == 0:
        return _below(words, 2 * _EXACT + 1).astype(np.float64) - _EXACT
    unit = (words >> np.uint64(11)).astype(np.float64) * 2.0**-52 - 1.0
    return np.asarray(rounded(unit, kind))


def _range(kind: Kind, seed: int, draw: Draw, name: str) -> tuple[int, int]:
    """The integers that are drawn: of 8 bits all, which may be several packed numbers, but for seed 0."""
    if seed and name in draw.signed:
        return -draw.limit(name, seed), draw.limit(name, seed)
    if kind.bits > 8 or name in dict(draw.ranges):
        return draw.floor(name), draw.limit(name, seed)
    if seed and draw.limit(name, seed) >= Draw().below:
        return kind.limits[0], kind.limits[1] + 1
    return max(-_EXACT, kind.limits[0]), _EXACT + 1


def _below(words: Array, limit: int) -> Array:
    """Integers from 0 to limit - 1."""
    return np.asarray((words >> np.uint64(33)) % np.uint64(limit)).astype(np.int64)


def _words(key: int, numbers: Array) -> Array:
    """64 random bits for each element: SplitMix64 (Steele, Lea and Flood, 2014) at these positions."""
    with np.errstate(over="ignore"):
        return mixed(np.uint64(key) + numbers.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15))
