"""Random choice that the same number makes again, with weights toward what was seldom reached."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import TypeVar

_Thing = TypeVar("_Thing")


class Chance:
    """Draws for one kernel. number: makes the same draws again. weights: of productions, 1 where one is not named.

    drawn: the productions until now.
    """

    def __init__(self, number: int, weights: Mapping[str, float] | None = None) -> None:
        self._random, self._weights = random.Random(number), weights or {}
        self.drawn: set[str] = set()

    def among(self, things: Sequence[_Thing]) -> _Thing:
        """Draw one of these, each as likely as the others."""
        return self._random.choice(things)

    def production(self, wanted: Mapping[str, float]) -> str:
        """Draw one of the productions, by how often each is wanted and by its weight."""
        names = list(wanted)
        chosen = self._random.choices(names, [wanted[n] * self._weights.get(n, 1.0) for n in names])[0]
        self.drawn.add(chosen)
        return chosen

    def of(self, share: float) -> bool:
        """Return true in a share of the draws."""
        return self._random.random() < share

    def weighted(self, things: Sequence[_Thing], weights: Sequence[float]) -> _Thing:
        """Draw one of these by its weight."""
        return self._random.choices(things, weights)[0]

    def number(self, low: int, high: int) -> int:
        """Draw an integer from low to high, both included."""
        return self._random.randint(low, high)

    def some(self, things: Sequence[_Thing], count: int) -> list[_Thing]:
        """Draw several, in an order of chance."""
        return self._random.sample(things, min(count, len(things)))


def boundary(chance: Chance, size: int) -> int:
    """Return a size about another one: one less, the same, one more, 1, a prime, or a vector's less one."""
    near = [size - 1, size, size + 1, 1, 3, 7, 17, 31, 2 * size, size // 2, size + 8, size - 8, size * 3 // 2, 100]
    return max(1, chance.among(near))
