"""Rounds of a loop that do the same to the clocks as the rounds before them: these are counted, not carried out.

A glance hands in every event: an access to cells, a barrier. If the events repeat themselves, the states before and
after a round are compared: clocks, and the times of the last accesses. Each of these times either stays, or moves on as
far as its agent's own time does. If two rounds in succession do that in the same way, and no time of an agent that
stays is as late as one that moves, the next round does the same: it only compares and joins times of the same agents,
so that each comparison comes out as before. It is counted. In the end the times move on by the number of rounds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from tlcheck.execute.memory.values import Array
from tlcheck.execute.observe.clock import EPOCH, PENDING, Times

_MOST = 1 << 16  # events that are remembered
_WORTH = 8  # events of a round: for fewer no arrays are compared
_AGAIN = 2  # rounds that were as the first one, before arrays are compared
Event = tuple[object, ...]
Act = Callable[[], None]
Sign = tuple[object, ...]  # what an event was made of, by identity: told apart without looking


class Clocks(Protocol):
    """The state that a round may change."""

    def own_times(self) -> Array:
        """The time of each agent of a cluster at its first world, (worlds, agents); 0 elsewhere."""

    @property
    def rows(self) -> int:
        """Return how many of the agents are warps, which come first."""

    def times(self) -> Iterator[Times]:
        """All other times."""

    def marks(self) -> Iterator[Array]:
        """Yield what else is remembered of accesses."""


@dataclass(frozen=True, slots=True, eq=False)
class _State:
    """The clocks at the end of a round."""

    own: Array
    times: Sequence[Array]
    marks: Sequence[Array]

    @classmethod
    def of(cls, clocks: Clocks) -> _State:
        times, marks = [found.array.copy() for found in clocks.times()], [array.copy() for array in clocks.marks()]
        return cls(clocks.own_times(), times, marks)


@dataclass(frozen=True, slots=True, eq=False)
class _Round:
    """A record of what a round does. steps: of each agent's own time. moved: where times move with it, in each array.

    apart: whether every time that moves is later than those of its agent that stay. Where one is not, a later round may
    find them the other way round.
    """

    steps: Array
    moved: Sequence[tuple[Array, ...]]
    apart: bool

    @classmethod
    def between(cls, before: _State, after: _State, clocks: Clocks) -> _Round | None:
        """None where something moves in another way."""
        if not _are_alike(before.times, after.times) or not _are_alike(before.marks, after.marks):
            return None
        steps = after.own - before.own
        if (steps[:, : clocks.rows] % EPOCH).any():
            return None
        if any((old != new).any() for old, new in zip(before.marks, after.marks, strict=True)):
            return None
        moved = []
        for old, new, times in zip(before.times, after.times, clocks.times(), strict=True):
            at = np.nonzero(new != old)
            if (new[at] - old[at] != times.steps(steps, at)).any():
                return None
            moved.append(at)
        return cls(steps, moved, _are_apart(after, moved, steps, clocks))

    def is_like(self, other: _Round) -> bool:
        """Whether another round does the same."""
        pairs = zip(self.moved, other.moved, strict=True)
        return np.array_equal(self.steps, other.steps) and all(
            all(map(np.array_equal, mine, others)) for mine, others in pairs
        )

    def again(self, times: int, clocks: Clocks) -> None:
        """Move the clocks on by so many rounds."""
        for found, at in zip(clocks.times(), self.moved, strict=True):
            found.array[at] += found.steps(self.steps, at) * times


class Recurrence:
    """Carries out events until they recur, then counts them."""

    def __init__(self, clocks: Clocks) -> None:
        self._clocks = clocks
        self._begin()
        self._counting: _Round | None = None
        self._signs: list[Sign] = []
        self._held: list[object] = []
        self._rounds = self._at = 0

    def _begin(self) -> None:
        self._seen: list[tuple[Event, Act]] = []
        self._last: dict[Event, int] = {}
        self._length = self._matched = 0  # of a round; events that were as in the round before
        self._states: list[_State] = []
        self._wanted = _AGAIN  # rounds after which the state is looked at

    def is_known(self, sign: Sign) -> bool:
        """Whether what comes is the event that is next in a round that is counted; then it has been counted."""
        if self._counting is None or self._signs[self._at] != sign:
            return False
        self._count()
        return True

    def __call__(self, event: Event, act: Act, sign: Sign = (), held: object = None) -> None:
        """Carry out an event, unless nothing can come of it. held: keeps alive what its sign is made of."""
        if self._counting is not None:
            if self._seen[self._at][0] == event:
                self._signs[self._at], self._held[self._at] = sign, held
                self._count()
                return
            self.settle()
        act()
        at = len(self._seen)
        if self._length and self._seen[at - self._length][0] == event:
            self._matched += 1
        else:
            self._length, self._matched = at - self._last.get(event, at), 0
            self._states, self._wanted = [], _AGAIN
        self._last[event] = at
        self._seen.append((event, act))
        if self._length >= _WORTH and self._matched == self._wanted * self._length:
            self._look()
        if len(self._seen) > _MOST:
            self._begin()

    def _count(self) -> None:
        self._at += 1
        if self._at == self._length:
            self._at, self._rounds = 0, self._rounds + 1

    def settle(self) -> None:
        """Make the clocks what they are after all that was counted."""
        if self._counting is None:
            return
        did, period, at = self._counting, self._seen, self._at
        self._counting, self._at = None, 0
        did.again(self._rounds, self._clocks)
        self._begin()
        for _, act in period[:at]:
            act()

    def _look(self) -> None:
        """Compare a round that ends with the one before: does it do the same?"""
        self._wanted += 1
        self._states.append(_State.of(self._clocks))
        if len(self._states) < 3:
            return
        first, second, third = self._states
        self._states = []
        one, other = _Round.between(first, second, self._clocks), _Round.between(second, third, self._clocks)
        if one is None or other is None or not one.is_like(other) or not other.apart:
            self._wanted *= 2
            return
        self._seen, self._counting, self._rounds, self._at = self._seen[-self._length :], other, 0, 0
        self._signs, self._held = [()] * self._length, [None] * self._length


def _are_alike(some: Sequence[Array], others: Sequence[Array]) -> bool:
    return [array.shape for array in some] == [array.shape for array in others]


def _are_apart(state: _State, moved: Sequence[tuple[Array, ...]], steps: Array, clocks: Clocks) -> bool:
    """Whether the times that move are later than those that stay, of each agent; for warps in epochs."""
    first, last = state.own.flatten(), np.zeros(state.own.size, state.own.dtype)
    for now, at, times in zip(state.times, moved, clocks.times(), strict=True):
        stays = (now > 0) & (now < PENDING)
        stays[at] = False
        np.minimum.at(first, times.owners(at), now[at])
        np.maximum.at(last, times.owners(np.nonzero(stays)), now[stays])
    length = np.where(np.arange(steps.shape[1]) < clocks.rows, EPOCH, 1)
    before = last.reshape(steps.shape) // length < first.reshape(steps.shape) // length
    return bool((before | (steps == 0)).all())
