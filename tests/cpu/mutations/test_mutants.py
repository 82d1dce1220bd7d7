"""Each way of lowering a kernel wrong that changes what it adds is refuted; what does not change it is not.

A sample: `make mutants` judges all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest

from tests.cpu.mutations.judge import judged
from tests.cpu.mutations.kernels import Coverage, all_mutants, coverage, kernels, mistakes, read_table
from tests.cpu.mutations.mutants import Mutant
from tlcheck.verdicts.claim import REFUTED

KERNELS = kernels()
STEP = 20  # one mutant of so many; which, differs by kernel
# Kinds that this leaves out.
RARE = ("halve the replicas", "swap two layout axes", "swap destination indices", "drop the memory order")
SWAPPED = "swap two layout inputs"  # as rare, but slow: one of each kernel


def sample(number: int, every: Sequence[Mutant]) -> list[Mutant]:
    """Draw from all mutants of a kernel."""
    first = next((m for m in every if m.kind == SWAPPED), None)
    return [m for place, m in enumerate(every) if place % STEP == number % STEP or m.kind in RARE or m is first]


@pytest.mark.slow
@pytest.mark.parametrize("number", range(len(KERNELS)), ids=[f.path for f in KERNELS])
def test_a_sample_of_mutants(number: int) -> None:
    fixture = KERNELS[number]
    snapshot, expected = fixture.snapshot(), read_table()[fixture.path]
    every = all_mutants(fixture, snapshot)
    assert len(every) == expected.judged + expected.left, "run `make mutants`"
    found = list(judged(snapshot, sample(number, every)))
    wrong = mistakes(fixture, found)
    assert not wrong, "\n".join(map(str, wrong))
    assert coverage(found).left <= expected.left


def test_another_operation_is_refuted_in_a_loop_whose_bound_is_read_from_memory() -> None:
    """No instance says how often it runs: one of its own iterations is shown."""
    fixture = next(f for f in KERNELS if f.path == "era/loop_ragged_pipelined-0.1.7")
    snapshot = fixture.snapshot()
    (mutant,) = (m for m in all_mutants(fixture, snapshot) if m.kind == "add becomes max")
    (found,) = judged(snapshot, [mutant])
    assert found.verdict == REFUTED
    assert found.why == "TLA012: AtomicMax where the kernel says add"


def test_the_sample_has_every_kind_of_mutant() -> None:
    made: Counter[str] = Counter()
    sampled: Counter[str] = Counter()
    for number, fixture in enumerate(KERNELS):
        every = all_mutants(fixture, fixture.snapshot())
        made.update(mutant.kind for mutant in every)
        sampled.update(mutant.kind for mutant in sample(number, every))
    assert set(sampled) == set(made)
    assert len(made) >= 20


def test_the_table_is_of_these_kernels_and_most_mutants_are_judged() -> None:
    table = read_table()
    assert set(table) == {fixture.path for fixture in KERNELS}
    whole = Coverage(sum(c.judged for c in table.values()), sum(c.left for c in table.values()))
    assert whole.judged > 0.9 * (whole.judged + whole.left)
