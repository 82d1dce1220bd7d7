"""Bytes of asynchronous copies that are under way at once."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from tlcheck.execute.memory.values import Array


@dataclass(eq=False)
class Flights:
    """The bytes under way in each world by what waits for them, and the most that there have been."""

    worlds: int
    under_way: dict[object, Array] = field(default_factory=dict)
    most: Array = field(init=False)

    def __post_init__(self) -> None:
        self.most = np.zeros(self.worlds, np.int64)

    def begin(self, key: object, octets: Array) -> None:
        """Copies begin; octets: (worlds,). key: the barrier that waits for them, None for groups of threads."""
        known = self.under_way.setdefault(key, np.zeros(self.worlds, np.int64))
        known += octets
        np.maximum(self.most, sum(self.under_way.values()), out=self.most)

    def end(self, key: object, octets: Array) -> None:
        """Some of them have landed."""
        known = self.under_way.get(key)
        if known is not None:
            np.maximum(known - octets, 0, out=known)

    def landed(self, key: object, world: int) -> None:
        """All that a barrier waits for has landed in a world."""
        known = self.under_way.get(key)
        if known is not None and world < self.worlds:
            known[world] = 0
