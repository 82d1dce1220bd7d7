"""Integers of 32 bits that leave their type in the source: TileLang simplifies as if none did.

It makes `(i * 4 + 8) // 4` to `i + 2`, which is another number where the product wraps. In C++ such a sum has no value,
and so it is here: an output that is right if sums and products have 64 bits is not wrong. Nor is one that depends on
what a float becomes that int32 does not hold.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tlcheck import reasons
from tlcheck.execute.compare import output_outcome as comparison
from tlcheck.execute.compare.output_outcome import OutputOutcome
from tlcheck.execute.stops import Stopped
from tlcheck.execute.worlds import inputs
from tlcheck.execute.worlds.invocation import Invocation
from tlcheck.execute.worlds.levels import BothLevels
from tlcheck.program.wraps import overflows
from tlcheck.reasons import Reason

_OVERFLOW = Reason(reasons.OVERFLOW, "as written, integers become larger than int32 holds")


@dataclass(frozen=True)
class Overflows:
    """These integers on one draw, looked for where an output is refuted. source, lowered: what has run."""

    levels: BothLevels
    draw: inputs.Draw
    source: Invocation
    lowered: Invocation

    def of_refuted(self, outcome: OutputOutcome) -> OutputOutcome:
        """An output that both levels leave alike in 64 bits is not refuted where the source leaves 32 alone."""
        found = outcome.difference
        if outcome.verdict != "refuted" or not self.levels.plain or found is None:
            return outcome
        if found.special or found.rounded or found.early or not overflows(self.levels.source):
            return outcome
        seeds = dict.fromkeys(world.seed for world in self.levels.worlds)
        if all(self._is_in_source(outcome.name, seed) and self._is_alike(outcome.name, seed) for seed in seeds):
            return OutputOutcome(outcome.name, "undecided", _OVERFLOW)
        return outcome

    def _is_in_source(self, name: str, seed: int) -> bool:
        """Whether no element differs, or one that does is another one in the source with 64 bits."""
        if self._wide_source is None:
            return False
        differ = self._unlike(name, seed, self.source, self.lowered)
        moved = self._unlike(name, seed, self.source, self._wide_source)
        return differ is not None and moved is not None and bool((differ & moved).any() or not differ.any())

    def _is_alike(self, name: str, seed: int) -> bool:
        """Whether both levels leave the same with 64 bits."""
        if self._wide_source is None or self._wide_lowered is None:
            return False
        remaining = self._unlike(name, seed, self._wide_source, self._wide_lowered)
        return remaining is not None and not remaining.any()

    def _unlike(self, name: str, seed: int, one: Invocation, other: Invocation) -> comparison.Mask | None:
        """The elements that two invocations leave unlike; None where they write different ones."""
        expected, got = one.left[name].outcome(seed), comparison.left_of(other.left, name, seed)
        if not np.array_equal(expected.elements, got.elements):
            return None
        initial = self.source.left[name].initial(seed, expected.elements)
        return comparison.compare(expected, got, initial, expected.elements).differs

    @cached_property
    def _wide_source(self) -> Invocation | None:
        return _ended(self.levels.source_invocation(self.draw, wide=True))

    @cached_property
    def _wide_lowered(self) -> Invocation | None:
        return _ended(self.levels.lowered_invocation(self.draw, wide=True))


def _ended(invocation: Invocation) -> Invocation | None:
    """An invocation that has run to its end; None for another one."""
    try:
        invocation.run()
    except Stopped:
        return None
    return invocation
