"""Find where an access goes: a buffer's element as position in its allocation, checked against the buffer's bounds."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tlcheck.execute.memory.cells import Cells, Position
from tlcheck.execute.memory.codes import Code, Key, key_for
from tlcheck.execute.memory.frame import Frame, Mask
from tlcheck.execute.memory.pages import Pages
from tlcheck.execute.memory.state import RunState
from tlcheck.execute.memory.values import Array, Kind, Value
from tlcheck.execute.stops import Illegal, Unaligned

_KEPT_BYTES = 1 << 24
_MOST_ADDRESSES = 256
_ZERO = 0  # what a sum begins with
Arrange = Callable[[Any], Array]


@dataclass(frozen=True, slots=True, eq=False)
class Located:
    """A position, and which lanes are out of bounds there (None for none); these have the position of element 0.

    crooked: lanes whose address is no multiple of what the access needs, None for none.
    """

    position: Position
    outside: Mask | None
    crooked: Mask | None = None


class Place:
    """An element (or vector of elements) of a buffer in each lane."""

    def __init__(
        self,
        state: RunState,
        name: str,
        kind: Kind,
        root: int,
        start: Code,
        indices: list[tuple[Code, Code, Code]],
        arrange: Arrange | None = None,
    ) -> None:
        """root: uid of the allocation; start: in bytes; indices: (index, size, stride) of each dimension.

        arrange: gives each lane elements that other lanes point to, see ldmatrix. `aligned`: set to the bytes that the
        address of the first element has to be a multiple of. `run`: set to how many elements each follow one another
        along the last dimension. `unseen`: what claims call the buffer, until a lane accesses it. `lanes`: of tensor
        memory, whose columns follow one another in each; 0 for other memory.
        """
        self.aligned = self.run = 1
        self.lanes = 0
        self.unseen = ""
        self.name, self.kind, self.state = name, kind, state
        self.root = root
        self._start, self._indices, self._arrange = start, indices, arrange
        codes = [start, *(c for triple in indices for c in triple)]
        self.steady = all(c.steady for c in codes)
        self.needs = frozenset().union(*(c.needs for c in codes))
        self._key = key_for(codes)
        self._kept: dict[Key, Located] = {}
        self._addresses: dict[Key, Value] = {}
        self._lately: list[Located] = []
        self._bytes = 0
        self._memory: Cells | Pages | None = None

    @property
    def memory(self) -> Cells | Pages:
        """The allocation."""
        return self.state.memory[self.root]

    @property
    def begin(self) -> int:
        """Return how many bytes into its allocation the buffer begins; 0 where that varies."""
        return int(self._start.run(Frame({}, 1, 1))) if self._start.uniform and not self._start.needs else 0

    @property
    def arranged(self) -> bool:
        """Whether lanes get what others point to."""
        return self._arrange is not None

    @property
    def is_fixed(self) -> bool:
        """Whether nothing but the indices can vary in a run: neither where the buffer begins nor its sizes."""
        codes = [self._start, *(c for _, size, stride in self._indices for c in (size, stride))]
        return all(c.steady and not c.needs for c in codes)

    @property
    def shared(self) -> bool:
        """Whether the threads of a block share the allocation."""
        return isinstance(self.memory, Cells) and self.memory.shared

    def position(self, frame: Frame) -> tuple[Position, Mask | None]:
        """The place of the access, and the lanes in which it happens."""
        return self.allowed(self.located(frame), frame)

    def allowed(self, located: Located, frame: Frame) -> tuple[Position, Mask | None]:
        """The position, and in which lanes the access takes place. Raises Illegal."""
        if located.crooked is not None:
            crooked = np.argwhere(located.crooked & frame.mask())
            if len(crooked):
                what = f"access of {self.name} at an address that is no multiple of {self.aligned} bytes"
                world, lane = (int(i) for i in crooked[0][-2:])
                raise Unaligned(what, self.state.line, world, lane, self.name)
        if located.outside is None:
            return located.position, frame.active
        offending = located.outside if frame.active is None else located.outside & frame.active
        if not offending.any():
            return located.position, frame.active
        try:
            return located.position, self.state.out_of_bounds(self.name, self.memory, frame, offending)
        except Illegal as illegal:
            illegal.index, illegal.extent = self.outside_at(frame, offending, illegal.world, illegal.lane)
            raise

    def is_left(self, outside: Mask, frame: Frame) -> bool:
        """Whether it is a tensor that active lanes leave."""
        return isinstance(self.memory, Pages) and bool((outside & frame.mask()).any())

    def outside_at(
        self, frame: Frame, offending: Mask, world: int, lane: int
    ) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The index of the first element that a lane accesses out of bounds, and the bounds."""
        at = [np.asarray(index.run(frame)) for index, _, _ in self._indices]
        limits = [np.asarray(size.run(frame)) for _, size, _ in self._indices]
        shape = np.broadcast_shapes((1, frame.worlds, 1), offending.shape, *(a.shape for a in (*at, *limits)))
        lanes = np.broadcast_to(offending, shape)[:, world, min(lane, shape[-1] - 1)]
        chosen = (int(np.argmax(lanes)), world, min(lane, shape[-1] - 1))
        index, extent = (tuple([int(np.broadcast_to(a, shape)[chosen]) for a in of]) for of in (at, limits))
        return index, extent

    def located(self, frame: Frame) -> Located:
        """The position, and which lanes are out of bounds."""
        if self.unseen:
            self._see(frame)
        if not self.steady:
            return self._locate(frame)
        memory = self.memory
        if self._memory is not memory:
            self._kept.clear()
            self._lately = []
            self._memory = memory
        key = self._key(frame)
        located = self._kept.get(key)
        if located is None:
            located = self._keep(key, self._locate(frame))
        return located

    def address(self, frame: Frame) -> Value:
        """Return how many bytes into its allocation the element is, bounds unchecked; the same object where it is the
        same.
        """
        if self.unseen:
            self._see(frame)
        if not self.steady:
            return self._address(frame)
        key = self._key(frame)
        found = self._addresses.get(key)
        if found is None:
            if len(self._addresses) >= _MOST_ADDRESSES:
                self._addresses.clear()
            found = self._addresses[key] = self._address(frame)
        return found

    def _address(self, frame: Frame) -> Value:
        total: Value = 0
        for index, _, stride in self._indices:
            at = index.run(frame)
            total = total + (at.astype(np.int64) if isinstance(at, np.ndarray) else at) * stride.run(frame)
        return total * self.kind.bits // 8 + int(self._start.run(frame))

    def _see(self, frame: Frame) -> None:
        """Note that the buffer is accessed: by some lane, of a kernel whose blocks may all have ended."""
        if frame.active is None or frame.active.any():
            self.state.looked_at.add(self.unseen)
            self.unseen = ""

    def _keep(self, key: Key, located: Located) -> Located:
        """Keep what was located, as the same object where it was the same before: a buffer that takes turns."""
        size = located.position.nbytes if isinstance(located.position, np.ndarray) else 64
        if size > _KEPT_BYTES // 4:  # the last one alone
            self._kept, self._lately, self._bytes = {key: located}, [], 0
            return located
        for other in self._lately:
            if _is_same(located, other):
                located = other
                break
        else:
            self._lately = [located, *self._lately[:3]]
            self._bytes += size
        if self._bytes > _KEPT_BYTES:
            self._kept.clear()
            self._bytes = 0
        self._kept[key] = located
        return located

    def _locate(self, frame: Frame) -> Located:
        total: Value = _ZERO
        outside: Mask | None = None
        most: Any = 0  # how far the last element is that the bounds allow
        step: Value = 0
        for index, size, stride in self._indices:
            at, limit = index.run(frame), size.run(frame)
            if isinstance(at, np.ndarray):
                at = at.astype(np.int64, copy=False)
            wrong = _beyond(at, limit)
            if wrong is not None:
                outside = wrong if outside is None else outside | wrong
            step = stride.run(frame)
            known = limit.__class__ is int and step.__class__ is int and step >= 0
            most = most + (limit - 1) * step if known else math.inf
            term = at if step.__class__ is int and step == 1 else at * step
            total = term if total is _ZERO else total + term
        start = int(self._start.run(frame))
        room = self.memory.room(self.kind, start)
        wrong = None if outside is None and most < room else _beyond(total, room)
        if wrong is not None:
            outside = wrong if outside is None else outside | wrong
        if outside is not None:
            total = np.where(outside, 0, total)
        crooked = self._crooked(total, start) if self.aligned > 1 else None
        if self._arrange is not None:
            if crooked is not None:
                crooked = np.asarray(self._arrange(np.broadcast_to(crooked, np.shape(total))).any(axis=0))
            total = self._arrange(total)
            outside = None if outside is None else self._arrange(outside)
        in_runs = outside is None and step.__class__ is int and step == 1
        return Located(self._at(total, start, in_runs), outside, crooked)

    def _at(self, total: Value, start: int, in_runs: bool) -> Position:
        """The position of elements; in_runs: elements that follow one another lie side by side."""
        memory = self.memory
        if in_runs and self.run > 1 and not start and isinstance(memory, Pages) and isinstance(total, np.ndarray):
            whole = memory.kind == self.kind and total.ndim == 3 and total.size and len(total) % self.run == 0
            if whole and (total[self.run - 1 :: self.run] - total[:: self.run] == self.run - 1).all():
                return memory.locate_runs(total, self.run)
        return memory.locate(total, self.kind, start)

    def _crooked(self, total: Value, start: int) -> Mask | None:
        """The lanes whose first element is not aligned; None for none."""
        first = total[0] if isinstance(total, np.ndarray) and total.ndim == 3 else total
        wrong: Mask = np.atleast_2d(np.asarray((first * self.kind.bits // 8 + start) % self.aligned != 0))
        return wrong if wrong.any() else None


def refuse_outside(place: Place, octets: Array, kind: Kind, what: str, by: tuple[int, int]) -> None:
    """Raise Illegal where elements at these bytes of an allocation are not in it. by: the world and lane that ask."""
    memory = place.memory
    if octets.size and (octets.min() < 0 or octets.max() * 8 // kind.bits >= memory.room(kind, 0)):
        raise Illegal(f"{what} {place.name} beyond the end of its memory", place.state.line, *by, place.name)


def _is_same(a: Located, b: Located) -> bool:
    x, y = a.position, b.position
    if not isinstance(x, np.ndarray) or not isinstance(y, np.ndarray):
        return False
    if a.outside is not None or b.outside is not None or a.crooked is not None or b.crooked is not None:
        return False
    return x.shape == y.shape and (not x.size or bool(x.flat[0] == y.flat[0])) and np.array_equal(x, y)


def _beyond(index: Value, limit: Value) -> Mask | None:
    """Return which lanes of an index are not in 0 .. limit - 1; None for none."""
    if not isinstance(index, np.ndarray) and not isinstance(limit, np.ndarray):
        return None if 0 <= index < limit else np.ones((1, 1), np.bool_)
    if isinstance(index, np.ndarray) and not index.size:
        return None
    if not isinstance(limit, np.ndarray) and index.view(np.uint64).max() < limit:  # type: ignore[union-attr]
        return None
    wrong: Mask = np.atleast_2d(np.less(index, 0) | np.greater_equal(index, limit))
    return wrong if wrong.any() else None
