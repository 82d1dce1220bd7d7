"""Elements that handlers load and store: what they do there is published."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from tlcheck.execute.events import Observer, Observers
from tlcheck.execute.memory.codes import Code
from tlcheck.execute.memory.frame import Frame, Mask, everywhere
from tlcheck.execute.memory.places import Arrange, Place
from tlcheck.execute.memory.state import RunState
from tlcheck.execute.memory.values import Array, Kind, Value


class BufferElement(Place):
    """A place whose accesses are published. otherwise: what it reads as out of bounds."""

    def __init__(
        self,
        state: RunState,
        observers: Observers,
        name: str,
        kind: Kind,
        root: int,
        start: Code,
        indices: list[tuple[Code, Code, Code]],
        arrange: Arrange | None = None,
        otherwise: int | float = 0,
    ) -> None:
        super().__init__(state, name, kind, root, start, indices, arrange)
        self.observers, self.otherwise = observers, otherwise
        self._observed = observers.hear(Observer.covers, Observer.acting, Observer.tensor_left)
        self._is_traced = observers.hear(Observer.strayed)

    @contextmanager
    def only_where(self, frame: Frame, condition: Value) -> Iterator[None]:
        """Restrict accesses to these lanes, or lanes of a vector."""
        saved = frame.active
        frame.active = frame.among(np.atleast_2d(np.asarray(condition, np.bool_)))
        yield
        frame.active = saved

    def load(self, frame: Frame) -> Array:
        """The elements; where the access is dropped, the buffer's safe value."""
        located = self.located(frame)
        position, mask = self.allowed(located, frame)
        if self._observed:
            observers = self.observers
            if observers.covers(self):
                observers.read(self, position, everywhere(mask, frame), self.state.origin(frame))
            observers.acting(frame)
        found = self.memory.take(position, self.kind)
        if self._is_traced:
            self.observers.strayed(_left_out(located.outside, mask))
        if located.outside is None:
            return found
        self._left(frame, located.outside, stores=False)
        return np.where(located.outside, found.dtype.type(self.otherwise), found)

    def _left(self, frame: Frame, outside: Mask, stores: bool) -> None:
        """Publish that active lanes leave a tensor."""
        if self.observers.hear(Observer.tensor_left) and self.is_left(outside, frame):
            self.observers.tensor_left(self, frame, outside, stores)

    def store(self, frame: Frame, value: Value) -> None:
        """Write in the active lanes."""
        located = self.located(frame)
        position, mask = self.allowed(located, frame)
        if not self._observed:
            self.memory.put(position, value, mask, self.kind)
            return
        if located.outside is not None:
            self._left(frame, located.outside, stores=True)
        observers = self.observers
        watched = observers.covers(self)
        if watched:
            lanes, origin = everywhere(mask, frame), self.state.origin(frame)
            observers.write(self, position, lanes, origin, value)
        observers.acting(frame)
        self.memory.put(position, value, mask, self.kind)
        if watched:
            observers.written(self, position, lanes, origin, value)


def _left_out(outside: Mask | None, mask: Mask | None) -> Mask | None:
    """Return where nothing is read: out of bounds, and in lanes that take no part."""
    if mask is None or mask.all():
        return outside
    inactive: Mask = ~mask
    return inactive if outside is None else np.asarray(outside | inactive)
