"""No kernel is proved by the one and refuted by the other. A sample: `make bench` takes all."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.cpu.mutations.crosscheck import Opinions, mutated, of_fixture, of_mutants
from tests.fixtures.index import Fixture, read
from tlcheck.verdicts.claim import PROVED, REFUTED, UNDECIDED

LARGE = ("attention",)
FIXTURES = [f for f in read().fixtures if not any(word in f.path for word in LARGE)][::9]
MUTATED = [f for f in mutated() if not any(word in f.path for word in LARGE)][::4]


@pytest.mark.parametrize("fixture", FIXTURES, ids=[f.path for f in FIXTURES])
def test_of_fixtures(fixture: Fixture) -> None:
    found = list(of_fixture(fixture))
    assert not [f for f in found if f.contradict]


@pytest.mark.parametrize("number", range(len(MUTATED)), ids=[f.path for f in MUTATED])
def test_of_mutants(number: int) -> None:
    found = list(of_mutants(MUTATED[number], number % 7, 7))
    assert not [f for f in found if f.contradict]


def test_the_sample_is_decided_by_both() -> None:
    """Of both ways there are enough in which a contradiction could show."""
    found = [o for f in FIXTURES[:12] for o in of_fixture(f)]
    counts = Counter((min(o.proofs), o.executed) for o in found)
    assert counts[PROVED, "agreed"] >= 3


@pytest.mark.parametrize(
    ("proofs", "executed", "expected"),
    [
        ({PROVED}, "refuted", True),
        ({PROVED}, "agreed", False),
        ({REFUTED}, "refuted", False),
        ({PROVED, REFUTED}, "refuted", False),
        ({UNDECIDED}, "refuted", False),
    ],
)
def test_what_contradicts(proofs: set[str], executed: str, expected: bool) -> None:
    assert Opinions("k", "O", frozenset(proofs), executed, "").contradict is expected
