"""The lowered kernel run once more, with counters alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial

from tlcheck.execute.machine import Machine
from tlcheck.execute.observe.cost.counter import Counter
from tlcheck.execute.worlds.levels import BothLevels
from tlcheck.snapshot.ir import Function


@dataclass(frozen=True, eq=False)
class Counted:
    """A record of what was counted. counters: of each machine that ran. tensors: bytes of each, by name.

    source, lowered: the kernel's levels. sizes: chosen for symbolic ones.
    """

    counters: tuple[Counter, ...]
    tensors: Mapping[str, int]
    source: Function
    lowered: Function
    sizes: Mapping[str, int]


def counted(levels: BothLevels) -> Counted:
    """Count in the worlds of the first seed, on inputs that keep the source in bounds. Raises Stopped."""
    _, draw = levels.source_run
    first = levels.of_first_seed()
    counters: list[Counter] = []

    def observing(machine: Machine) -> Iterable[Counter]:
        counters.append(Counter(machine))
        return counters[-1:]

    lowered = first.lowered_invocation(draw)
    first.run(lowered, partial(first.lowered_invocation, draw), observing)
    tensors = {name: pages.size * pages.kind.bits // 8 for name, pages in lowered.left.items()}
    return Counted(tuple(counters), tensors, levels.source, levels.lowered, dict(levels.sizes))
