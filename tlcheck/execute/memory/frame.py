"""Define what statements run in: the values of variables and the lanes that are active."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt

from tlcheck.execute.memory.values import Array, Value
from tlcheck.execute.stops import SourceUnclear

Mask = npt.NDArray[np.bool_]
Made = TypeVar("Made")


class Frame:
    """The state of one flow of control over worlds x lanes.

    variables: uid -> value. active: the lanes that execute, None for all of them; it broadcasts to (worlds, lanes).
    broken, skipped, ended: lanes that left the loop, its iteration, the kernel; None for none.
    leaders: of a frame with one lane for each block, the thread that it stands for, (worlds,); None for the first one.
    """

    __slots__ = ("active", "broken", "ended", "lanes", "leaders", "skipped", "variables", "worlds")

    def __init__(self, variables: dict[int, Value], worlds: int, lanes: int, active: Mask | None = None) -> None:
        self.variables = variables
        self.worlds = worlds
        self.lanes = lanes
        self.active = active
        self.broken: Mask | None = None
        self.skipped: Mask | None = None
        self.ended: Mask | None = None
        self.leaders: Array | None = None

    def mask(self) -> Mask:
        """The active lanes, (worlds, lanes), read-only."""
        return everywhere(self.active, self)

    def of_worlds(self) -> Mask | None:
        """The worlds with an active lane, (worlds, 1); None for all."""
        if self.active is None:
            return None
        return np.asarray(self.active.any(axis=-1, keepdims=True))

    def idle(self) -> bool:
        """Whether no lane is active."""
        return self.active is not None and not self.active.any()

    def among(self, condition: Mask) -> Mask | None:
        """The active lanes in which `condition` holds; None for all lanes of the frame."""
        if self.active is not None:
            condition = np.logical_and(self.active, condition)
        return None if condition.all() else condition

    def remaining(self, saved: Mask | None) -> Mask | None:
        """`saved` without the lanes that have left since."""
        for gone in (self.broken, self.skipped, self.ended):
            if gone is not None:
                saved = ~gone if saved is None else saved & ~gone
        return saved

    @contextmanager
    def narrowed(self, active: Mask | None) -> Iterator[None]:
        """Run with other active lanes; those that leave meanwhile are not active again afterwards."""
        saved, self.active = self.active, active
        try:
            yield
        finally:
            self.active = self.remaining(saved)


class LastMask:
    """The last mask of a statement: the same object while it does not change, so that what was made of it is kept."""

    __slots__ = ("_last",)

    def __init__(self) -> None:
        self._last: Mask | None = None

    def of(self, mask: Mask | None) -> Mask | None:
        """A mask, or the one before it that is equal."""
        last = self._last
        if mask is None or last is None or last.shape != mask.shape or (last != mask).any():
            self._last = mask
        return self._last


class OfLanes(Generic[Made]):
    """A record of what was made of a frame's active lanes: the same object while these are."""

    __slots__ = ("_active", "_made", "_make")

    def __init__(self, make: Callable[[Frame], Made]) -> None:
        self._make = make
        self._made: Made | None = None
        self._active: Mask | None = None

    def of(self, frame: Frame) -> Made:
        if self._made is None or self._active is not frame.active:
            self._made, self._active = self._make(frame), frame.active
        return self._made


def everywhere(mask: Mask | None, frame: Frame) -> Mask:
    """A mask of all worlds and lanes, read-only; one of vector lanes keeps them."""
    if mask is None:
        return _all(frame.worlds, frame.lanes)
    shape = (*mask.shape[:-2], frame.worlds, frame.lanes)
    return mask if mask.shape == shape else np.broadcast_to(mask, shape)


@lru_cache(maxsize=64)
def _all(worlds: int, lanes: int) -> Mask:
    return np.broadcast_to(np.True_, (worlds, lanes))


def one_value(value: Value, what: str) -> int:
    """A value that has to be the same in all lanes. Raises SourceUnclear."""
    if not isinstance(value, np.ndarray):
        return int(value)
    first = value.flat[0]
    if not (value == first).all():
        raise SourceUnclear(f"{what} differs between threads")
    return int(first)


def one_per_world(value: Value, what: str) -> Value:
    """A value that has to be the same in all lanes of a world: a scalar or (worlds, 1). Raises SourceUnclear."""
    if not isinstance(value, np.ndarray) or value.shape[-1] == 1:
        return value
    first = value[..., :1]
    if not ((value == first) | ((value != value) & (first != first))).all():
        raise SourceUnclear(f"{what} differs between threads")
    return first
