"""Memory of the kernel: registers and shared memory as cells, global tensors as pages.

A *position* is where an element of each lane is: an integer or a slice of cells where all lanes have the same, or an
array of indices into the flat data. `locate` makes positions from element indices (bounds are checked before, see
`places`), `take` and `put` read and write there. What `take` returns may be a view: copy it to keep it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tlcheck.execute.frame import Mask
from tlcheck.execute.reasons import BudgetSpent, NotModelled
from tlcheck.execute.values import Array, Kind, Value, bits_of, from_bits, is_poison, nothing, nothing_in

if TYPE_CHECKING:
    from tlcheck.execute.tracer import Tracer

Position = int | slice | Array
_WORTH, _MOST_MASKED = 1 << 9, 32  # elements of a position for which lanes are remembered, and how many positions
_MOST_KNOWN = 1 << 22  # elements of positions that are kept


class _Alike:
    """Positions at which every element was last written as one kind: known until the tags of some cell change.

    writes: how often something was written, at any position.
    """

    def __init__(self) -> None:
        self.writes = 0
        self._masked: dict[tuple[int, int], tuple[Array, Mask, Array, Array]] = {}
        self._known: dict[tuple[int, int], Array] = {}
        self._size = 0

    def knows(self, position: Array, tag: int) -> bool:
        """Whether all of a position has this tag; by the array itself, which nobody changes."""
        return (id(position), tag) in self._known

    def note(self, position: Array, tag: int) -> None:
        """All of a position has this tag."""
        self._size += position.size
        if self._size > _MOST_KNOWN:
            self.forget()
        self._known[id(position), tag] = position

    def forget(self) -> None:
        """Tags change."""
        self.writes += 1
        if self._known:
            self._known.clear()
            self._size = 0

    def spread(self, position: Array, value: Value, mask: Mask | None) -> tuple[Array, Value]:
        """Positions and values of active lanes (`spread`); the same positions for the same lanes."""
        lanes = position.shape[-2:]
        if mask is None or position.ndim != 3 or mask.ndim != 2 or position.size < _WORTH:
            return spread(position, value, mask)
        if not _fits(mask.shape, lanes) or not _fits(np.shape(value), position.shape):
            return spread(position, value, mask)
        key = id(position), id(mask)
        if key not in self._masked:
            if len(self._masked) >= _MOST_MASKED:
                self._masked.clear()
            chosen = np.flatnonzero(np.broadcast_to(mask, lanes))
            where = position.reshape(len(position), -1).take(chosen, axis=1)
            self._masked[key] = position, mask, chosen, where
        _, _, chosen, where = self._masked[key]
        if not isinstance(value, np.ndarray):
            return where, value
        whole = value if value.shape == position.shape else np.broadcast_to(value, position.shape)
        return where, whole.reshape(len(position), -1).take(chosen, axis=1)


def _fits(shape: tuple[int, ...], whole: tuple[int, ...]) -> bool:
    """Whether something of a shape broadcasts to a whole."""
    return len(shape) <= len(whole) and all(a in (1, b) for a, b in zip(shape[::-1], whole[::-1], strict=False))


class Cells:
    """An allocation of registers or shared memory in all worlds: data has the axes (cell, world, thread).

    threads: 1 for what a block shares. kinds: what its views hold; with more than one, cells are 64-bit words of the
    smallest width, and tags say which kind wrote each: number of the kind * 16 + part of the element.
    """

    def __init__(self, size: int, kinds: tuple[Kind, ...], seeds: tuple[int, ...], threads: int) -> None:
        """size: in bytes; seeds: that of each world. Raises NotModelled where bits of one byte have two types."""
        if len(kinds) > 1 and any(k.bits < 8 for k in kinds):
            raise NotModelled(f"one memory as {' and '.join(k.name for k in kinds)}")
        self.kinds, self.seeds = kinds, seeds
        self.shared = threads == 1
        self.grain = min(k.octets for k in kinds)
        shape = (max(1, -(-size // self.grain)), len(seeds), threads)
        mixed = len(kinds) > 1
        self.data: Array = np.empty(shape, np.float64 if mixed else kinds[0].array)
        self.flat = self.data.reshape(-1)
        self.whole = self.flat.view(np.int64) if mixed else self.flat
        self.tags = np.zeros(self.flat.shape, np.uint8) if mixed else None
        self._alike = _Alike()
        self.stride = len(seeds) * threads
        self.times = 1
        self._offset = np.arange(self.stride, dtype=np.intp).reshape(len(seeds), threads)
        self.tracer: Tracer | None = None
        self.forget()

    def forget(self, reason: int = 0, mask: Mask | None = None) -> None:
        """Make all of it poison, or the threads' own in the lanes of `mask`."""
        if mask is not None:
            self._forget_lanes(
                reason, np.broadcast_to(mask, (len(self.seeds), max(mask.shape[-1], self.data.shape[2])))
            )
            return
        self._alike.forget()
        if self.tags is not None:
            self.tags[:] = 0
        else:
            self.data[...] = nothing_in(self.kinds[0], self.seeds, reason)

    def _forget_lanes(self, reason: int, mask: Mask) -> None:
        if self.data.shape[2] == 1:
            whole, some = np.asarray(mask.all(axis=-1)), np.asarray(mask.any(axis=-1))
            if not whole[some].all():
                return  # what a block shares is not new to a part of its threads
            mask = some[:, None]
        self._alike.forget()
        if self.tags is not None:
            self.tags.reshape(self.data.shape)[:, mask] = 0
        else:
            np.copyto(self.data, nothing_in(self.kinds[0], self.seeds, reason), where=mask)

    @property
    def writes(self) -> int:
        """A number that is another one after each write."""
        return self._alike.writes

    def overwrite(self, data: Array, where: Mask) -> None:
        """Take over the cells of another allocation of one kind."""
        self._alike.writes += 1
        np.copyto(self.data, data, where=where)

    def with_lanes(self, lanes: int, data: Array) -> Cells:
        """Such an allocation for another number of threads, all with this data, (cells, worlds, 1)."""
        other = Cells(self.data.shape[0] * self.grain, self.kinds, self.seeds, lanes)
        other.data[...] = data
        if other.tags is not None and self.tags is not None:
            other.tags[:] = np.repeat(self.tags.reshape(*self.data.shape)[..., :1], lanes, axis=-1).reshape(-1)
        return other

    def repeated(self, times: int) -> Cells:
        """The same allocation, for each world `times` times."""
        other = copy(self)  # with the same memory, and what is known of it
        other.seeds, other.times = self.seeds * times, self.times * times
        other._offset = np.tile(self._offset, (times, 1))
        return other

    def room(self, kind: Kind, start: int) -> int:
        """How many elements of a kind there are from a byte on."""
        return (int(self.data.shape[0]) * self.grain - start) // kind.octets

    def locate(self, index: Value, kind: Kind, start: int) -> Position:
        """Positions of elements `index` of a view of `kind` that begins `start` bytes into the allocation."""
        parts, first = kind.octets // self.grain, start // self.grain
        if not isinstance(index, np.ndarray):
            cell = first + int(index) * parts
            return cell if self.tags is None and self.times == 1 else cell * self.stride + self._offset
        if self.tags is None and self.times == 1 and index.ndim == 3 and index.size and index.shape[1:] == (1, 1):
            begin, count = int(index[0, 0, 0]), index.shape[0]
            if (index[:, 0, 0] == np.arange(begin, begin + count)).all():
                return slice(first + begin, first + begin + count)
        cells = index.astype(np.intp) * (parts * self.stride)
        return cells + (self._offset + first * self.stride)

    def take(self, position: Position, kind: Kind) -> Array:
        """The elements at a position."""
        if self.tracer is not None:
            self.tracer.took(self, position)
        if self.tags is None:
            return self.flat.take(position) if isinstance(position, np.ndarray) else self.data[position]
        assert isinstance(position, np.ndarray)
        tag = self._tag(kind)
        if self._alike.knows(position, tag):
            return self._words(position, kind)
        tags = self.tags.take(position)
        if (tags == tag).all():
            self._alike.note(position, tag)
            return self._words(position, kind)
        return self._assembled(position, tags, kind)

    def put(self, position: Position, value: Value, mask: Mask | None, kind: Kind) -> None:
        """Write elements in the lanes of `mask`. Of lanes that write one cell, the last one wins."""
        if self.tracer is not None:
            self.tracer.put(self, position, value, mask)
        self._alike.writes += 1
        if not isinstance(position, np.ndarray):
            target = self.data[position]
            if np.ndim(value) <= target.ndim and (self.data.shape[2] > 1 or np.shape(value)[-1:] in ((), (1,))):
                if mask is None:
                    target[...] = value
                    return
                if self.data.shape[2] > 1 or mask.shape[-1] == 1:
                    np.copyto(target, value, where=mask, casting="unsafe")
                    return
            position = self.flat_position(position)
        where, values = self._alike.spread(position, value, mask)
        if self.tags is None:
            self.flat[where] = values
        elif self._alike.knows(position, self._tag(kind)):
            (self.flat if kind.is_float else self.whole)[where] = values
        else:
            self._put_tagged(where, values, kind)
            if mask is None:
                self._alike.note(position, self._tag(kind))

    def flat_position(self, position: Position) -> Array:
        """A position as indices into `flat`."""
        if isinstance(position, np.ndarray):
            return position
        cells = np.arange(self.data.shape[0])[position]
        return np.reshape(cells, (*np.shape(cells), 1, 1)) * self.stride + self._offset

    def accumulate(self, where: Array, values: Value, combine: np.ufunc, kind: Kind) -> None:
        """Combine values into the elements at indices into `flat`; one that occurs again is combined again."""
        if self.tracer is not None:
            self.tracer.put(self, where, values, None)
        self._alike.writes += 1
        if self.tags is not None:
            elements = np.unique(where)
            self.put(elements, self.take(elements, kind), None, kind)
        combine.at(self.flat if self.tags is None or kind.is_float else self.whole, where, values)

    def _tag(self, kind: Kind) -> int:
        return (self.kinds.index(kind) + 1) * 16

    def _words(self, position: Array, kind: Kind) -> Array:
        if kind.is_float:
            return self.flat.take(position)
        return self.whole.take(position).astype(kind.array)

    def _put_tagged(self, where: Array, values: Value, kind: Kind) -> None:
        assert self.tags is not None
        parts, tag = kind.octets // self.grain, self._tag(kind)
        if (self.tags.take(where) == tag).all():  # and so are further parts of each element
            (self.flat if kind.is_float else self.whole)[where] = values
            return
        self._alike.forget()
        for part in range(parts):
            before = self.tags.take(where + part * self.stride)
            foreign = (before != 0) & (before != tag + part)
            if foreign.any():
                self._shatter((where + part * self.stride)[foreign])
        (self.flat if kind.is_float else self.whole)[where] = values
        for part in range(parts):
            self.tags[where + part * self.stride] = tag + part

    def _shatter(self, where: Array) -> None:
        """Turn the elements that have a part at these positions into words of the smallest width (tag 15)."""
        assert self.tags is not None
        where = np.unique(where)
        tags = self.tags.take(where)
        for tag in np.unique(tags[(tags != 0) & (tags != 15)]):
            kind = self.kinds[int(tag) // 16 - 1]
            heads = where[tags == tag] - (int(tag) % 16) * self.stride
            cells = np.concatenate([heads + part * self.stride for part in range(kind.octets // self.grain)])
            words = self._bits(cells)
            self.whole[cells] = words.view(np.int64)
            self.tags[cells] = 15

    def _bits(self, position: Array) -> Array:
        """The bits in each cell, whatever wrote it, as uint64."""
        assert self.tags is not None
        tags = self.tags.take(position)
        found = np.zeros(position.shape, np.uint64)
        low = np.uint64((1 << (8 * self.grain)) - 1) if self.grain < 8 else np.uint64(~np.uint64(0))
        for tag in np.unique(tags):
            here = tags == tag
            if tag == 15:
                found[here] = self.whole.take(position[here]).view(np.uint64)
            elif tag:
                kind, part = self.kinds[int(tag) // 16 - 1], int(tag) % 16
                words = bits_of(self._words(position[here] - part * self.stride, kind), kind).astype(np.uint64)
                found[here] = (words >> np.uint64(8 * self.grain * part)) & low
        return found

    def _assembled(self, position: Array, tags: Array, kind: Kind) -> Array:
        """Elements of which some were written as another kind, or not at all."""
        assert self.tags is not None
        right = tags == self._tag(kind)
        result = np.where(right, self._words(np.where(right, position, 0), kind), 0).astype(kind.array)
        wrong = position[~right]
        parts = kind.octets // self.grain
        bits, missing = np.zeros(wrong.shape, np.uint64), np.zeros(wrong.shape, bool)
        for part in range(parts):
            cells = wrong + part * self.stride
            bits |= self._bits(cells) << np.uint64(8 * self.grain * part)
            missing |= self.tags.take(cells) == 0
        values = from_bits(bits.astype(kind.words), kind)
        seeds = nothing_in(kind, self.seeds)[:, 0]
        worlds = (wrong % self.stride) // self.data.shape[2]
        result[~right] = np.where(missing, seeds[worlds], values)
        return result


PAGE_BITS = 12
PAGE = 1 << PAGE_BITS
_AT_ONCE = 4  # pages
_FEW = 64  # pages that are missing at once, for which others may be read ahead
Contents = Callable[[int, int, int], Array | None]


@dataclass(slots=True, eq=False)
class _Real:
    """The pages of a tensor that are real: their elements, which of these were written, and the number of pages.

    lent: the elements are another run's as well.
    """

    elements: Array
    written: Mask
    pages: int = 0
    lent: bool = False


class Pages:
    """A global tensor for each seed; pages of `PAGE` elements become real when they are first touched.

    contents: (seed, start, count) -> the elements before the kernel runs, None for poison.
    """

    def __init__(self, kind: Kind, size: int, seeds: tuple[int, ...], contents: Contents, limit: int) -> None:
        """size: in elements; seeds: that of each world; limit: of bytes in pages."""
        self.kind, self.size, self.contents = kind, size, contents
        self.distinct = tuple(dict.fromkeys(seeds))
        self.order: Callable[[Array], Array] | None = None
        self.jitter: Callable[[Array], Array] | None = None
        self.tracer: Tracer | None = None
        self._limit = limit
        self._tables = -(-size // PAGE)
        self.table = np.full(self._tables * len(self.distinct), -1, np.intp)  # where each page begins in `flat`
        self._seed_of = _numbers(seeds, self.distinct)
        self._real = _Real(np.empty(0, kind.array), np.empty(0, np.bool_))

    @property
    def flat(self) -> Array:
        """The elements of all pages that are real."""
        return self._real.elements

    @property
    def written(self) -> Mask:
        """Which of them were written."""
        return self._real.written

    def afresh(self, seeds: tuple[int, ...]) -> Pages | None:
        """The tensor for a run of its own, with the pages that are real; None where a run has written to it."""
        real, distinct = self._real, tuple(dict.fromkeys(seeds))
        if not set(distinct) <= set(self.distinct) or self.jitter is not None or self.written.any():
            return None
        other = self.continued(seeds)
        other.order = other.tracer = None
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
        """How many elements of a kind there are from a byte on."""
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
            element = element + start // self.kind.octets
        if self.order is not None:
            element = self.order(element)
        number = (element >> PAGE_BITS) + self._seed_of * self._tables
        found: Array = self.table.take(number)
        if found.size and found.min() < 0:
            missing = np.zeros(self.table.size, np.bool_)
            missing[number[found < 0]] = True
            self._fetch(self._further(np.flatnonzero(missing)))
            self.table.take(number, out=found)
        found += element & (PAGE - 1)
        return found

    def locate_runs(self, element: Array, count: int) -> Array:
        """Positions of elements (elements, worlds, 1) of which each `count` lie side by side."""
        first = element[::count]
        if count == 1 or self.order is not None or (first & (PAGE - 1)).max() + count > PAGE:
            return self.locate(element, self.kind, 0)
        found = self.locate(first, self.kind, 0)[:, None] + np.arange(count).reshape(1, -1, 1, 1)
        return found.reshape(len(element), *found.shape[2:])

    def take(self, position: Position, kind: Kind) -> Array:
        """The elements at a position."""
        if not self._is_own(kind):
            return self._seen(np.asarray(position), kind)
        if self.tracer is not None:
            self.tracer.took(self, position)
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
        if self.tracer is not None:
            self.tracer.put(self, position, value, mask)
        self.require_width(kind)
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
        if self.tracer is not None:
            self.tracer.put(self, where, values, None)
        self._own()
        combine.at(self.flat, where, values)
        self.written[where] = True

    def forget(self, reason: int = 0, mask: Mask | None = None) -> None:
        """Nothing: a tensor outlives the kernel."""

    def _further(self, numbers: Array) -> Array:
        """Pages that are missing, with those that follow them where a tensor is read from one end to the other."""
        if len(numbers) > _FEW:
            return numbers
        table, found = self.table.reshape(-1, self._tables), []
        for which, page in (divmod(number, self._tables) for number in numbers.tolist()):
            goes_on = page and table[which, page - 1] >= 0
            after = np.arange(page, min(page + _AT_ONCE, self._tables) if goes_on else page + 1)
            found.append(which * self._tables + after[table[which, after] < 0])
        return np.unique(np.concatenate(found))

    def _fetch(self, numbers: Array) -> None:
        """Make pages real; numbers: in ascending order."""
        real = self._real
        needed = real.pages + len(numbers)
        if needed * PAGE > self.flat.size:
            self._grow(max(needed, 2 * (self.flat.size // PAGE), 4))
        self._own()
        gaps = (np.diff(numbers) != 1) | (numbers[1:] % self._tables == 0)
        for run in _parts(np.split(numbers, np.flatnonzero(gaps) + 1)):
            which, page = divmod(int(run[0]), self._tables)
            count = min(len(run) * PAGE, self.size - page * PAGE)
            begin, end = real.pages * PAGE, (real.pages + len(run)) * PAGE
            found = self.contents(self.distinct[which], page * PAGE, count)
            if found is not None and self.jitter is not None:
                found = self.jitter(found)
            if found is not None:
                self.flat[begin : begin + count] = found
                begin += count
            self.flat[begin:end] = nothing(self.kind, self.distinct[which])
            self.table[run] = np.arange(real.pages, real.pages + len(run)) << PAGE_BITS
            real.pages += len(run)

    def _grow(self, pages: int) -> None:
        if pages * PAGE * (self.flat.itemsize + 1) > self._limit:
            raise BudgetSpent("more memory than allowed")
        flat, written = np.empty(pages * PAGE, self.kind.array), np.zeros(pages * PAGE, np.bool_)
        flat[: self.flat.size], written[: self.written.size] = self.flat, self.written
        self._real.elements, self._real.written, self._real.lent = flat, written, False

    def _own(self) -> None:
        """Before the elements change: no other run has them."""
        if self._real.lent:
            self._real.elements, self._real.lent = self._real.elements.copy(), False

    def position_of(self, seed: int, element: int) -> int:
        """Where an element of memory is."""
        number = (element >> PAGE_BITS) + self.distinct.index(seed) * self._tables
        if self.table[number] < 0:
            self._fetch(np.array([number]))
        return int(self.table[number]) + (element & (PAGE - 1))

    def element_at(self, position: int) -> int:
        """Which element of memory is at a position."""
        number = int(np.flatnonzero(self.table == position & -PAGE)[0])
        return number % self._tables * PAGE + (position & (PAGE - 1))

    def elements_at(self, positions: Array) -> Array:
        """Which elements of memory are at positions."""
        page_of = np.zeros(max(1, self._real.pages), np.intp)
        numbers = np.flatnonzero(self.table >= 0)
        page_of[self.table[numbers] >> PAGE_BITS] = numbers % self._tables
        found: Array = (page_of[positions >> PAGE_BITS] << PAGE_BITS) + (positions & (PAGE - 1))
        return found

    def initial(self, seed: int, elements: Array) -> Array:
        """What elements, in ascending order, are before the kernel runs."""
        found = np.full(len(elements), nothing(self.kind, seed), self.kind.array)
        pages = elements >> PAGE_BITS
        for begin in np.flatnonzero(np.diff(pages, prepend=-1)).tolist():
            page = int(pages[begin])
            values = self.contents(seed, page * PAGE, min(PAGE, self.size - page * PAGE))
            if values is None:
                break  # poison, all of it
            end = int(np.searchsorted(elements, (page + 1) * PAGE))
            found[begin:end] = values[elements[begin:end] & (PAGE - 1)]
        return found

    def outcome(self, seed: int) -> tuple[Array, Array]:
        """Which elements were written in the worlds of a seed, in order, and their values."""
        which = self.distinct.index(seed)
        table = self.table[which * self._tables : (which + 1) * self._tables]
        written, flat = self.written.reshape(-1, PAGE), self.flat.reshape(-1, PAGE)
        pages = np.flatnonzero(table >= 0)
        pages = pages[np.asarray(written.any(axis=1))[table[pages] >> PAGE_BITS]]
        slots = table[pages] >> PAGE_BITS
        inside = np.flatnonzero(written[slots])
        values = flat[slots].reshape(-1)
        elements = inside + ((pages - np.arange(len(pages))) << PAGE_BITS)[inside >> PAGE_BITS]
        return elements, values if len(inside) == len(values) else values[inside]


def _numbers(seeds: tuple[int, ...], distinct: tuple[int, ...]) -> Array:
    """Which of the distinct seeds that of each world is, (worlds, 1)."""
    return np.array([distinct.index(s) for s in seeds], np.intp).reshape(-1, 1)


def _parts(runs: list[Array]) -> Iterator[Array]:
    """Runs of pages, the long ones in parts: what is drawn at once fits into a cache."""
    for run in runs:
        yield from (run[start : start + _AT_ONCE] for start in range(0, len(run), _AT_ONCE))


def spread(position: Array, value: Value, mask: Mask | None) -> tuple[Array, Value]:
    """Flat positions and values of the lanes of `mask` alone, one for each lane that writes."""
    shape = position.shape
    if mask is not None or (isinstance(value, np.ndarray) and value.shape != shape):
        shape = np.broadcast_shapes(shape, np.shape(value), () if mask is None else mask.shape)
        position = position if position.shape == shape else np.broadcast_to(position, shape)
    if mask is None:
        return position, value
    lanes = shape if mask.ndim > 2 else shape[-2:]
    chosen = mask if mask.shape == lanes else np.broadcast_to(mask, lanes)
    if isinstance(value, np.ndarray):
        value = (value if value.shape == shape else np.broadcast_to(value, shape))[..., chosen]
    return position[..., chosen], value
