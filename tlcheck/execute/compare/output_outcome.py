"""One output of a kernel as lowered against the same output in the source.

Equal are numbers that differ by rounding alone. A first bound is relative to the element. Where it does not hold, the
source kernel runs again with every number slightly changed: what moves the result further than it differs explains
the difference, and where that is far, a discrete choice hangs on rounding and nothing is decided.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from tlcheck.execute.compare.writers import Writer
from tlcheck.execute.memory.pages import Pages, Stored
from tlcheck.execute.memory.values import Array, is_poison, reason_of
from tlcheck.reasons import UNSAID, Reason

RELATIVE = 1e-9
FAR = 1e-6
_NEARLY = 2.0**1000  # infinite: a sum in another order may be so
Mask = Array


@dataclass(frozen=True, slots=True)
class Difference:
    """The first of `count` elements that differ.

    element: its place in the output's memory, in elements; index: in its shape, the place where a layout spreads it;
    its number where the tensor has strides. expected, got: as Python writes numbers; `poison: why` for poison. writer:
    the last write as lowered, if any; author: in the source. rounded: seen where floats have their own types; finer:
    and it is a rounding of the source that is missing; special: where some inputs are NaN or infinite, or with ends:
    where some integers are at the ends of types; early: where
    asynchronous copies land as early as they may.
    """

    element: int
    index: tuple[int, ...]
    seed: int
    expected: str
    got: str
    count: int
    writer: Writer | None = None
    author: Writer | None = None
    rounded: bool = False
    finer: bool = False
    special: bool = False
    ends: bool = False
    early: bool = False

    @property
    def blocks(self) -> tuple[tuple[int, int, int], ...]:
        """The blocks that wrote the element, on either side."""
        return tuple(dict.fromkeys(act.block for act in (self.author, self.writer) if act is not None))


@dataclass(frozen=True, slots=True)
class OutputOutcome:
    """The verdict on one output; reason: why it is undecided. unset: how many of its elements depend on memory that
    nothing wrote.
    """

    name: str
    verdict: Literal["agreed", "refuted", "undecided"]
    reason: Reason = UNSAID
    difference: Difference | None = None
    unset: int = 0


def left_of(tensors: Mapping[str, Pages], name: str, seed: int) -> Stored:
    """Return what the lowered kernel left of an output; nothing of one that it has no parameter for."""
    return tensors[name].outcome(seed) if name in tensors else Stored(np.empty(0, np.intp), np.empty(0))


@dataclass(frozen=True, slots=True)
class Compared:
    """Elements that both sides have, and which of them differ.

    initial: what untouched elements are. by_source, by_lowered: which of them each side has written.
    unsettled: how many expected values are poison, or hang on what nobody wrote.
    """

    elements: Array
    initial: Array
    expected: Array
    got: Array
    differs: Mask
    by_source: Mask
    by_lowered: Mask
    unsettled: int


def compare(
    expected: Stored, got: Stored, initial: Array, elements: Array, by_chance: Sequence[Stored] = ()
) -> Compared:
    """Compare what was written on either side, element by element. initial: of `elements`, the union of all sides.

    by_chance: as expected, each where what nobody has written has other values; none where it is the same.
    """
    (left, by_source), (right, by_lowered) = (_everywhere(side, initial, elements) for side in (expected, got))
    unknown = np.zeros(len(elements), np.bool_)
    for side in by_chance:
        other, there = _everywhere(side, initial, elements)
        unknown |= (by_source != there) | ~_same(left, other)
    differs = left != right
    if left.dtype.kind == "f" and differs.any():
        unknown = unknown | is_poison(left)
        differs = ~_equal(left, right) | is_poison(right)
    return Compared(elements, initial, left, right, differs & ~unknown, by_source, by_lowered, int(unknown.sum()))


def _same(a: Array, b: Array) -> Mask:
    return np.asarray((a == b) | ((a != a) & (b != b)))  # NaN is equal to NaN here


def _everywhere(side: Stored, initial: Array, elements: Array) -> tuple[Array, Mask]:
    """Return what all elements are on a side, and which of them it has written."""
    if len(side.elements) == len(elements):
        return side.values.astype(initial.dtype, copy=False), np.ones(len(elements), np.bool_)
    values, written = initial.copy(), np.zeros(len(elements), np.bool_)
    at = np.searchsorted(elements, side.elements)
    values[at], written[at] = side.values, True
    return values, written


def strays(expected: Array, got: Array) -> Mask | None:
    """Return which values are not among the expected ones, wherever these are; None if both have the same, each as
    often.
    """
    ordered = np.sort(expected)
    if _equal(ordered, np.sort(got)).all():
        return None
    after = np.searchsorted(ordered, got)
    near = [ordered[np.clip(after + step, 0, len(ordered) - 1)] for step in (-1, 0)]
    found = ~(_equal(near[0], got) | _equal(near[1], got))
    return found if found.any() else ~_equal(expected, got)


def union(a: Array, b: Array) -> Array:
    """All elements of two arrays in ascending order, each once."""
    both = np.sort(np.concatenate([a, b]))
    return np.asarray(both[np.diff(both, prepend=-1) != 0])


def numberless(compared: Compared) -> int:
    """Return how many elements are NaN in the source, and were set: equal, and yet nothing was compared."""
    if compared.expected.dtype.kind != "f":
        return 0
    return int((np.isnan(compared.expected) & ~is_poison(compared.expected)).sum())


def _equal(expected: Array, got: Array) -> Mask:
    with np.errstate(all="ignore"):
        near = (np.abs(got - expected) <= RELATIVE * np.abs(expected)) & np.isfinite(expected)
    return np.asarray((expected == got) | (np.isnan(expected) & np.isnan(got)) | near)


def explained(compared: Compared, moved: list[Array]) -> tuple[Mask, Mask]:
    """Return which differing elements rounding explains, and which depend on a discrete choice.

    A choice moves an element by something like the numbers around it; a sum of which almost nothing is left moves by
    much for its size only. moved: the expected values of runs with slightly changed numbers, in the order of
    `compared.elements`.
    """
    if compared.expected.dtype.kind == "b":
        expected, got = (side.astype(np.int8) for side in (compared.expected, compared.got))
        return explained(replace(compared, expected=expected, got=got), moved)
    with np.errstate(all="ignore"):
        distance = np.abs(compared.got - compared.expected)
        reach = np.max([np.abs(m - compared.expected) for m in moved], axis=0)
        lost = np.any([np.isnan(m) != np.isnan(compared.expected) for m in moved], axis=0)
        far = (reach > FAR * np.maximum(np.abs(compared.expected), _usual(compared.expected))) | lost
    known = ~is_poison(compared.got) if compared.got.dtype.kind == "f" else np.ones(len(compared.got), bool)
    explains = known & (distance <= reach) & ~far
    ties = known & far & ~explains
    return compared.differs & explains, compared.differs & ties


def endless(compared: Compared) -> Mask:
    """Elements that are infinite, nearly so or NaN in the source: where numbers overflow, order decides."""
    if compared.expected.dtype.kind != "f":
        return np.zeros(len(compared.expected), np.bool_)
    return ~(np.abs(compared.expected) < _NEARLY) & ~is_poison(compared.got)


def _usual(values: Array) -> float:
    """The size of most numbers: the median of those that are neither zero nor infinite, or the smallest number."""
    sizes = np.abs(values[np.isfinite(values) & (values != 0)]).astype(np.float64)
    return float(np.median(sizes)) if sizes.size else float(np.finfo(np.float64).tiny)


def said(value: float, reasons: list[str]) -> str:
    """A number, or why it is poison."""
    if isinstance(value, float) and is_poison(np.array([value])).any():
        number = reason_of(value)
        return f"poison: {reasons[number]}" if number < len(reasons) else "poison"
    return repr(value)


def first(compared: Compared, differs: Mask, seed: int, reasons: list[str]) -> Difference:
    """The first difference; one that is poison tells most."""
    places = np.flatnonzero(differs)
    poisoned = places[is_poison(compared.got[places])] if compared.got.dtype.kind == "f" else places[:0]
    place = int(poisoned[0] if poisoned.size else places[0])
    expected, got = compared.expected[place].item(), compared.got[place].item()
    return Difference(int(compared.elements[place]), (), seed, said(expected, []), said(got, reasons), len(places))
