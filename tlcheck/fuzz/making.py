"""Make a kernel of a number: composed by the grammar, or a mutant of a seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tlcheck.fuzz.chance import Chance
from tlcheck.fuzz.grammar import compose
from tlcheck.fuzz.mutations import mutated
from tlcheck.fuzz.seeds import SeedKernel
from tlcheck.fuzz.writer import NAME

_MUTANTS = 0.6  # of all kernels, where there are seeds
_ODD = 0.2  # of composed kernels, that are mutated as well


@dataclass(frozen=True)
class FuzzedKernel:
    """A kernel that nobody wrote. number: that it is made of. name: of the function that makes it.

    made: `grammar`, or the place of the seed. changes: the mutations, in words. drawn: productions and mutations.
    """

    number: int
    text: str
    name: str
    made: str
    changes: tuple[str, ...] = ()
    drawn: frozenset[str] = frozenset()


def make(number: int, seeds: Sequence[SeedKernel] = (), weights: Mapping[str, float] | None = None) -> FuzzedKernel:
    """Return the kernel of a number. The same seeds and weights make the same one."""
    chance = Chance(number, weights)
    if seeds and chance.of(_MUTANTS):
        seed = chance.weighted(seeds, [seed.weight for seed in seeds])
        text, changes = mutated(seed.text, chance, chance.number(1, 4))
        return FuzzedKernel(number, text, seed.function, seed.place, changes, frozenset(chance.drawn))
    text, changes = compose(chance), ()
    if chance.of(_ODD):
        text, changes = mutated(text, chance, chance.number(1, 2))
    return FuzzedKernel(number, text, NAME, "grammar", changes, frozenset(chance.drawn))
