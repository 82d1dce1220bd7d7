"""Memory of the blocks: registers and shared memory as cells. Global tensors are `pages`, with the same methods.

A *position* is where an element of each lane is: an integer or a slice of cells where all lanes have the same, or an
array of indices into the flat data. `locate` makes positions from element indices (bounds are checked before, see
`places`), `take` and `put` read and write there. What `take` returns may be a view: copy it to keep it.
"""

from __future__ import annotations

from copy import copy
from typing import Any, Protocol

import numpy as np

from tlcheck.execute.field import reduced
from tlcheck.execute.memory.frame import Mask
from tlcheck.execute.memory.values import (
    Array,
    Kind,
    Value,
    apart,
    bits_of,
    from_bits,
    nothing_in,
    require_sum,
    stretched,
)
from tlcheck.execute.stops import NotModelled

Position = int | slice | Array
_WORTH, _MOST_MASKED = 1 << 9, 32  # elements of a position for which lanes are remembered, and how many positions
_MOST_KNOWN = 1 << 22  # elements of positions that are kept


class Hook(Protocol):
    """A listener that is told of every access to an allocation."""

    def taken(self, memory: Any, position: Position) -> None:
        """Elements are read."""

    def put(self, memory: Any, position: Position, value: Value, mask: Mask | None) -> None:
        """Elements are written, in the lanes of `mask`."""


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
    smallest width, and tags say which kind wrote each: number of the kind * 16 + part of the element. opaque: floats
    are elements of a field, of whose bits nothing is known.
    """

    def __init__(
        self,
        size: int,
        kinds: tuple[Kind, ...],
        seeds: tuple[int, ...],
        threads: int,
        cleared: bool = False,
        opaque: bool = False,
    ) -> None:
        """size: in bytes; seeds: that of each world. cleared: memory of one type begins as zeros.

        Raises NotModelled where an element of one type is no whole number of those of another.
        """
        grain = min(k.bits for k in kinds)
        if any(k.bits % grain for k in kinds):
            raise NotModelled(f"one memory as {' and '.join(k.name for k in kinds)}")
        self.kinds, self.seeds, self._cleared = kinds, seeds, cleared
        self._types = frozenset(kind.memory for kind in kinds)
        self.shared, self.opaque = threads == 1, opaque
        self.grain = grain
        shape = (max(1, -(-size * 8 // grain)), len(seeds), threads)
        mixed = len(kinds) > 1
        self.data: Array = np.empty(shape, np.float64 if mixed else kinds[0].array)
        self.flat = self.data.reshape(-1)
        self.whole = self.flat.view(np.int64) if mixed else self.flat
        self.tags = np.zeros(self.flat.shape, np.uint8) if mixed else None
        self._alike = _Alike()
        self.stride = len(seeds) * threads
        self.times = 1
        self._offset = np.arange(self.stride, dtype=np.intp).reshape(len(seeds), threads)
        self.hook: Hook | None = None
        self.forget()

    def forget(self, reason: int = 0, mask: Mask | None = None) -> None:
        """Make all of it poison, or the threads' own in the lanes of `mask`."""
        if mask is not None:
            self._forget_lanes(reason, stretched(mask, (len(self.seeds), max(mask.shape[-1], self.data.shape[2]))))
            return
        self._alike.forget()
        if self.tags is not None:
            self.tags[:] = 0
        else:
            self.data[...] = self._fresh(reason)

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
            np.copyto(self.data, self._fresh(reason), where=mask)

    def lose(self, where: Array) -> None:
        """Make the cells at indices into `flat` poison."""
        self._alike.forget()
        if self.tags is not None:
            self.tags[where] = 0
        else:
            self.flat[where] = np.broadcast_to(self._new(0), self.data.shape[1:]).reshape(-1)[where % self.stride]

    def _new(self, reason: int) -> Array:
        """Return what memory of one type holds that nothing has written."""
        found = nothing_in(self.kinds[0], self.seeds, reason)
        return np.zeros_like(found) if self._cleared else found

    def _fresh(self, reason: int) -> Array:
        """As `_new`, with integers that differ from cell to cell where they do (`apart`): none cancels another."""
        found, kind = self._new(reason), self.kinds[0]
        if self._cleared or kind.family not in ("int", "uint") or kind.bits < 8 or min(self.seeds) >= 0:
            return found
        return np.asarray(found + np.stack([apart(kind, seed, len(self.data)) for seed in self.seeds], -1)[..., None])

    @property
    def writes(self) -> int:
        """A number that is another one after each write."""
        return self._alike.writes

    def overwrite(self, data: Array, where: Mask) -> None:
        """Take over the cells of another allocation of one kind."""
        self._alike.writes += 1
        np.copyto(self.data, data, where=where)

    def with_lanes(self, lanes: int, data: Array) -> Cells:
        """Return the same allocation for another number of threads, all with this data, (cells, worlds, 1)."""
        other = Cells(self.size, self.kinds, self.seeds, lanes, opaque=self.opaque)
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
        """Return how many elements of a kind there are from a byte on."""
        return (int(self.data.shape[0]) * self.grain - start * 8) // kind.bits

    @property
    def size(self) -> int:
        """The size in bytes."""
        return int(self.data.shape[0]) * self.grain // 8

    def parts(self, kind: Kind) -> int:
        """The cells of an element of a kind."""
        return kind.bits // self.grain

    def at(self, bits: Any) -> Any:
        """Flat positions, in the first world, of what begins so many bits into the allocation."""
        return bits // self.grain * self.stride

    def octet(self, position: Any) -> Any:
        """The byte of the allocation that has a flat position."""
        return position // self.stride * self.grain // 8

    def locate(self, index: Value, kind: Kind, start: int) -> Position:
        """Positions of elements `index` of a view of `kind` that begins `start` bytes into the allocation."""
        parts, first = self.parts(kind), start * 8 // self.grain
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
        if self.hook is not None:
            self.hook.taken(self, position)
        if self.opaque:
            self._require(kind)
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
        if self.hook is not None:
            self.hook.put(self, position, value, mask)
        if self.opaque:
            self._require(kind, value)
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
        if self.hook is not None:
            self.hook.put(self, where, values, None)
        self._alike.writes += 1
        if self.tags is not None:
            elements = np.unique(where)
            self.put(elements, self.take(elements, kind), None, kind)
        if self.opaque:
            self._require(kind, values)
            require_sum(combine, kind)
        target = self.flat if self.tags is None or kind.is_float else self.whole
        combine.at(target, where, values)
        if self.opaque and kind.is_float:
            target[where] = reduced(target[where])

    def _require(self, kind: Kind, value: Value = 0) -> None:
        """Raise NotModelled for elements of a field that are taken for others, or for integers."""
        if kind not in self.kinds and kind.memory not in self._types:
            raise NotModelled(f"{self.kinds[0].name} taken for {kind.name}")
        if not kind.is_float and np.asarray(value).dtype.kind == "f":
            raise NotModelled(f"{kind.name} made of floats")

    def _tag(self, kind: Kind) -> int:
        return (self.kinds.index(kind) + 1) * 16

    def _words(self, position: Array, kind: Kind) -> Array:
        if kind.is_float:
            return self.flat.take(position)
        return self.whole.take(position).astype(kind.array)

    def _put_tagged(self, where: Array, values: Value, kind: Kind) -> None:
        assert self.tags is not None
        parts, tag = self.parts(kind), self._tag(kind)
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
            cells = np.concatenate([heads + part * self.stride for part in range(self.parts(kind))])
            words = np.zeros(cells.shape, np.uint64) if self.opaque else self._bits(cells)
            self.whole[cells] = words.view(np.int64)
            self.tags[cells] = 15

    def _bits(self, position: Array) -> Array:
        """The bits in each cell, whatever wrote it, as uint64."""
        assert self.tags is not None
        tags = self.tags.take(position)
        found = np.zeros(position.shape, np.uint64)
        low = np.uint64((1 << self.grain) - 1) if self.grain < 64 else np.uint64(~np.uint64(0))
        for tag in np.unique(tags):
            here = tags == tag
            if tag == 15:
                found[here] = self.whole.take(position[here]).view(np.uint64)
            elif tag:
                kind, part = self.kinds[int(tag) // 16 - 1], int(tag) % 16
                words = bits_of(self._words(position[here] - part * self.stride, kind), kind).astype(np.uint64)
                found[here] = (words >> np.uint64(self.grain * part)) & low
        return found

    def _assembled(self, position: Array, tags: Array, kind: Kind) -> Array:
        """Elements of which some were written as another kind, or not at all."""
        assert self.tags is not None
        right = tags == self._tag(kind)
        result = np.where(right, self._words(np.where(right, position, 0), kind), 0).astype(kind.array)
        wrong = position[~right]
        parts = self.parts(kind)
        bits, missing = np.zeros(wrong.shape, np.uint64), np.zeros(wrong.shape, bool)
        for part in range(parts):
            cells = wrong + part * self.stride
            if not self.opaque:
                bits |= self._bits(cells) << np.uint64(self.grain * part)
            missing |= self.tags.take(cells) == 0
        if self.opaque and not missing.all():
            raise NotModelled(f"bits taken for {kind.name}")
        values = from_bits(bits.astype(kind.words), kind)
        seeds = nothing_in(kind, self.seeds)[:, 0]
        worlds = (wrong % self.stride) // self.data.shape[2]
        result[~right] = np.where(missing, seeds[worlds], values)
        return result


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
