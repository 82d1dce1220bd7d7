"""Global memory: tensors of which only those pages exist that a run touches.

The methods are those of `cells.Cells`; positions are always arrays of indices into the elements of all pages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from tlcheck.execute.field import reduced
from tlcheck.execute.memory.cells import Hook, Position, spread
from tlcheck.execute.memory.frame import Mask
from tlcheck.execute.memory.values import (
    Array,
    Kind,
    Value,
    bits_of,
    from_bits,
    is_poison,
    lengthened,
    nothing,
    require_sum,
)
from tlcheck.execute.stops import NotModelled, OutOfBytes

PAGE_BITS = 8  # a tile is often 64 to 128 elements of a row that has thousands
_MOST_PAGES_BITS = 20  # of a tensor: a larger one has larger pages
_AHEAD = 1 << 12  # elements
_AT_ONCE = 1 << 14  # elements: what is drawn at once fits into a cache
_GROWTH = 4
_FEW = 64  # pages that are missing at once, for which others may be read ahead
Contents = Callable[[int, Array], Array | None]


class Stored(NamedTuple):
    """A record of what a run left of a tensor, for one seed: elements in order, and their values."""

    elements: Array
    values: Array

    @property
    def has_number(self) -> bool:
        """Whether any value is neither NaN nor poison."""
        return bool((self.values == self.values).any())


@dataclass(slots=True, eq=False)
class _Real:
    """The pages of a tensor that are real: their elements, which of these were written, and the number of pages.

    lent: the elements are another run's as well. outcomes: what they hold now, by seed, as far as somebody asked.
    """

    elements: Array
    written: Mask
    pages: int = 0
    lent: bool = False
    outcomes: dict[int, Stored] = field(default_factory=dict)


class Pages:
    """A global tensor for each seed; pages become real when they are first touched.

    contents: (seed, numbers of elements) -> these before the kernel runs, None for poison. opaque: floats are
    elements of a field, and nobody may read integers.
    """

    def __init__(self, kind: Kind, size: int, seeds: tuple[int, ...], contents: Contents, limit: int) -> None:
        """size: in elements; seeds: that of each world; limit: of bytes in pages."""
        self.kind, self.size, self.contents = kind, size, contents
        self.distinct = tuple(dict.fromkeys(seeds))
        self.order: Callable[[Array], Array] | None = None
        self.jitter: Callable[[Array], Array] | None = None
        self.hook: Hook | None = None
        self.opaque = False
        self._limit = limit
        self._bits = max(PAGE_BITS, size.bit_length() - _MOST_PAGES_BITS)  # of the number of an element in its page
        self._page = 1 << self._bits
        self._tables = -(-size // self._page)
        self.table = np.full(self._tables * len(self.distinct), -1, np.intp)  # where each page begins in `flat`
        self._seed_of = _numbers(seeds, self.distinct)
        self._real = _Real(np.empty(0, kind.array), np.empty(0, np.bool_))

    @property
    def flat(self) -> Array:
        """The elements of all pages that are real."""
        return self._real.elements

    @property
    def written(self) -> Mask:
        """Return which of them were written."""
        return self._real.written

    def afresh(self, seeds: tuple[int, ...]) -> Pages | None:
        """The tensor for a run of its own, with the pages that are real; None where a run has written to it."""
        real, distinct = self._real, tuple(dict.fromkeys(seeds))
        if not set(distinct) <= set(self.distinct) or self.jitter is not None or self.written.any():
            return None
        other = self.continued(seeds)
        other.order = other.hook = None
        tables = self.table.reshape(len(self.distinct), -1)
        other.table = tables[[self.distinct.index(seed) for seed in distinct]].reshape(-1)
        other.distinct, other._seed_of = distinct, _numbers(seeds, distinct)
        other._real = _Real(real.elements, np.zeros(real.elements.size, np.bool_), real.pages, True)
        real.lent = True
        return other

    def continued(self, seeds: tuple[int, ...]) -> Pages:
        """The same tensor, for other worlds of the same seeds."""
        other = copy(self)
        other._seed_of = _numbers(seeds, self.distinct)
        return other

    def repeated(self, times: int) -> Pages:
        """The same tensor, for each world `times` times."""
        other = copy(self)
        other._seed_of = np.tile(self._seed_of, (times, 1))
        return other

    def room(self, kind: Kind, start: int) -> int:
        """Return how many elements of a kind there are from a byte on."""
        return (self.size * self.kind.bits - start * 8) // kind.bits

    def locate(self, index: Value, kind: Kind, start: int) -> Array:
        """Positions of elements of a kind: of a wider one its first part's, of a narrower one in its own width."""
        element = np.asarray(index, dtype=np.intp)
        if kind.bits > self.kind.bits:
            return self.locate(element * (kind.bits // self.kind.bits), self.kind, start)
        if kind.bits < self.kind.bits:
            whole, part = np.divmod(element + start * 8 // kind.bits, self.kind.bits // kind.bits)
            return self.locate(whole, self.kind, 0) * (self.kind.bits // kind.bits) + part
        if start:
            element = element + start * 8 // self.kind.bits
        if self.order is not None:
            element = self.order(element)
        number = (element >> self._bits) + self._seed_of * self._tables
        found: Array = self.table.take(number)
        if found.size and found.min() < 0:
            # the distinct ones in ascending order, by marks: many are equal, and near each other
            numbers = number[found < 0]
            first = int(numbers.min())
            marks = np.zeros(int(numbers.max()) - first + 1, np.bool_)
            marks[numbers - first] = True
            self._fetch(self._further(np.flatnonzero(marks) + first))
            self.table.take(number, out=found)
        found += element & (self._page - 1)
        return found

    def locate_runs(self, element: Array, count: int) -> Array:
        """Positions of elements (elements, worlds, 1) of which each `count` lie side by side."""
        marks = int(np.bitwise_or.reduce(element[::count], axis=None)) | count | self._page
        piece = marks & -marks  # so many of them lie in one page
        if piece == 1 or self.order is not None:
            return self.locate(element, self.kind, 0)
        found = self.locate(element[::piece], self.kind, 0)[:, None] + np.arange(piece).reshape(1, -1, 1, 1)
        return found.reshape(len(element), *found.shape[2:])

    def take(self, position: Position, kind: Kind) -> Array:
        """The elements at a position."""
        if self.opaque and not (kind.is_float and kind.memory == self.kind.memory):
            other = "" if kind == self.kind else f" taken for {kind.name}"
            raise NotModelled(f"{self.kind.name} of a tensor{other}")
        if not self._is_own(kind):
            return self._seen(np.asarray(position), kind)
        if self.hook is not None:
            self.hook.taken(self, position)
        found: Array = self.flat.take(np.asarray(position))
        return found

    def _is_own(self, kind: Kind) -> bool:
        """Whether elements of a kind are numbers as they are here; a type of 8 bits has several names."""
        own = self.kind
        return kind == own or (kind.is_float and own.is_float and kind.bits == own.bits == 8)

    def require_width(self, kind: Kind) -> None:
        """Raise NotModelled where the tensor would be written, or watched, as elements of another width."""
        if kind.bits != self.kind.bits:
            raise NotModelled(f"a tensor of {self.kind.name} as {kind.name}, which the kernel writes")

    def _seen(self, position: Array, kind: Kind) -> Array:
        """The elements at a position by their bits, as another kind. What nobody wrote stays poison."""
        own, bits, missing = self.kind, np.zeros(position.shape, np.uint64), np.zeros(position.shape, np.bool_)
        ratio = own.bits // kind.bits
        firsts, shift = np.divmod(position, ratio) if ratio else (position, 0)
        for part in range(max(1, kind.bits // own.bits)):
            found = self.take(firsts + part, own)
            bits |= bits_of(found, own).astype(np.uint64) << np.uint64(part * own.bits)
            missing |= is_poison(found) if own.is_float else missing
        bits >>= np.asarray(shift * kind.bits, np.uint64)
        return np.where(missing, nothing(kind, 0), from_bits(bits & np.uint64((1 << kind.bits) - 1), kind)).astype(
            kind.array
        )

    def put(self, position: Position, value: Value, mask: Mask | None, kind: Kind) -> None:
        """Write elements in the lanes of `mask`. Of lanes that write one element, the last one wins."""
        if self.hook is not None:
            self.hook.put(self, position, value, mask)
        self.require_width(kind)
        made = not kind.is_float and np.asarray(value).dtype.kind == "f"
        if self.opaque and (made or kind.memory != self.kind.memory):
            raise NotModelled(f"{kind.name} taken for {self.kind.name}")
        if not self._is_own(kind):
            value = from_bits(bits_of(value, kind), self.kind)
        where, values = spread(np.asarray(position), value, mask)
        self._own()
        self.flat[where] = values
        self.written[where] = True

    def flat_position(self, position: Position) -> Array:
        """A position as indices into `flat`."""
        assert isinstance(position, np.ndarray)
        return position

    def accumulate(self, where: Array, values: Value, combine: np.ufunc, kind: Kind) -> None:
        """Combine values into the elements at indices into `flat`; one that occurs again is combined again."""
        if not self._is_own(kind):
            raise NotModelled(f"atomics on a tensor of {self.kind.name} as {kind.name}")
        if self.hook is not None:
            self.hook.put(self, where, values, None)
        self._own()
        if self.opaque:
            require_sum(combine, kind)
        combine.at(self.flat, where, values)
        if self.opaque:
            self.flat[where] = reduced(self.flat[where])
        self.written[where] = True

    def forget(self, reason: int = 0, mask: Mask | None = None) -> None:
        """Nothing: a tensor outlives the kernel."""

    def _further(self, numbers: Array) -> Array:
        """Pages that are missing, with those that follow them where a tensor is read from one end to the other."""
        if len(numbers) > _FEW:
            return numbers
        table = self.table.reshape(-1, self._tables)
        which, page = np.divmod(numbers, self._tables)
        goes_on = (page > 0) & (table[which, page - 1] >= 0)
        ahead = np.arange(max(1, _AHEAD >> self._bits))
        after = page[:, None] + ahead
        wanted = (after < self._tables) & (goes_on[:, None] | (ahead == 0))
        found = ((which * self._tables)[:, None] + after)[wanted]
        found = np.sort(found[self.table[found] < 0])
        return found[np.diff(found, prepend=-1) > 0]

    def _fetch(self, numbers: Array) -> None:
        """Make pages real; numbers: in ascending order."""
        real = self._real
        self._reserve(real.pages + len(numbers))
        self._own()
        for some in self._by_seed(numbers):
            begin, end = real.pages << self._bits, (real.pages + len(some)) << self._bits
            self.flat[begin:end] = self._before(int(some[0]) // self._tables, some % self._tables)
            self.table[some] = np.arange(begin, end, self._page)
            real.pages += len(some)

    def _reserve(self, pages: int) -> None:
        """Have room for so many pages, and for more as they come: each time, all that are real are copied."""
        room, every = self.flat.size >> self._bits, len(self.table)
        most = min(every, (self._limit // (self.flat.itemsize + 1)) >> self._bits)
        if pages > most:
            raise OutOfBytes
        if pages > room:
            wanted = max(pages, _GROWTH * room)
            size = min(every if 3 * wanted > 2 * every else wanted, most) << self._bits
            elements = np.empty(size, self.kind.array)
            elements[: self.flat.size] = self.flat
            real = self._real
            real.elements, real.written, real.lent = elements, lengthened(self.written, size), False

    def _by_seed(self, numbers: Array) -> Iterator[Array]:
        """Pages of one seed each, as many as are drawn at once."""
        most = max(1, _AT_ONCE >> self._bits)
        for mine in np.split(numbers, np.searchsorted(numbers, np.arange(1, len(self.distinct)) * self._tables)):
            yield from (mine[start : start + most] for start in range(0, len(mine), most))

    def _before(self, which: int, pages: Array) -> Array:
        """The elements of pages before the kernel runs, with nothing behind the last one of the tensor."""
        element = ((pages << self._bits)[:, None] + np.arange(self._page)).reshape(-1)
        behind = int(element[-1]) - self.size + 1
        drawn = element[:-behind] if behind > 0 else element
        found = self.contents(self.distinct[which], drawn)
        if found is not None and self.jitter is not None:
            found = self.jitter(found)
        if found is not None and behind <= 0:
            return found
        whole = np.full(len(element), nothing(self.kind, self.distinct[which]), self.kind.array)
        if found is not None:
            whole[: len(found)] = found
        return whole

    def _own(self) -> None:
        """Make the elements this run's own before they change."""
        self._real.outcomes.clear()
        if self._real.lent:
            self._real.elements, self._real.lent = self._real.elements.copy(), False

    def position_of(self, seed: int, element: int) -> int:
        """Return where an element of memory is."""
        number = (element >> self._bits) + self.distinct.index(seed) * self._tables
        if self.table[number] < 0:
            self._fetch(np.array([number]))
        return int(self.table[number]) + (element & (self._page - 1))

    def element_at(self, position: int) -> int:
        """Return which element of memory is at a position."""
        number = int(np.flatnonzero(self.table == position & -self._page)[0])
        return number % self._tables * self._page + (position & (self._page - 1))

    def elements_at(self, positions: Array) -> Array:
        """Return which elements of memory are at positions."""
        page_of = np.zeros(max(1, self._real.pages), np.intp)
        numbers = np.flatnonzero(self.table >= 0)
        page_of[self.table[numbers] >> self._bits] = numbers % self._tables
        found: Array = (page_of[positions >> self._bits] << self._bits) + (positions & (self._page - 1))
        return found

    def initial(self, seed: int, elements: Array) -> Array:
        """Return what elements are before the kernel runs."""
        found = self.contents(seed, elements)
        return np.full(len(elements), nothing(self.kind, seed), self.kind.array) if found is None else found

    def touched(self, seed: int) -> Array:
        """The elements of all pages of a seed that are real, in order."""
        which = self.distinct.index(seed)
        pages = np.flatnonzero(self.table[which * self._tables : (which + 1) * self._tables] >= 0)
        found: Array = ((pages << self._bits)[:, None] + np.arange(self._page)).reshape(-1)
        return found[found < self.size]

    def outcome(self, seed: int) -> Stored:
        """Return which elements were written in the worlds of a seed, in order, and their values: read-only arrays."""
        found = self._real.outcomes.get(seed)
        if found is None:
            found = self._real.outcomes[seed] = self._outcome(seed)
        return found

    def _outcome(self, seed: int) -> Stored:
        which = self.distinct.index(seed)
        table = self.table[which * self._tables : (which + 1) * self._tables]
        written, flat = self.written.reshape(-1, self._page), self.flat.reshape(-1, self._page)
        pages = np.flatnonzero(table >= 0)
        pages = pages[np.asarray(written.any(axis=1))[table[pages] >> self._bits]]
        slots = table[pages] >> self._bits
        inside = np.flatnonzero(written[slots])
        values = flat[slots].reshape(-1)
        elements = inside + ((pages - np.arange(len(pages))) << self._bits)[inside >> self._bits]
        left = Stored(elements, values if len(inside) == len(values) else values[inside])
        for array in left:
            array.flags.writeable = False
        return left


def _numbers(seeds: tuple[int, ...], distinct: tuple[int, ...]) -> Array:
    """Return which of the distinct seeds that of each world is, (worlds, 1)."""
    return np.array([distinct.index(s) for s in seeds], np.intp).reshape(-1, 1)
