"""The test that says whether times differ."""

from __future__ import annotations

import itertools
import random

import pytest

from tlcheck.run.statistics import ALPHA, change, mann_whitney


def exact(a: list[float], b: list[float]) -> float:
    """The definition: the share of all ways to choose the first group whose U is as extreme."""

    def u(chosen: tuple[int, ...], values: list[float]) -> int:
        rest = [i for i in range(len(values)) if i not in chosen]
        return sum(values[i] > values[j] for i in chosen for j in rest)

    values, middle = a + b, len(a) * len(b) / 2
    seen = abs(u(tuple(range(len(a))), values) - middle)
    every = [abs(u(chosen, values) - middle) for chosen in itertools.combinations(range(len(values)), len(a))]
    return sum(distance >= seen for distance in every) / len(every)


def test_p_is_exact() -> None:
    rng = random.Random(1)
    for m, n in itertools.product((2, 3, 5), repeat=2):
        for _ in range(10):
            a, b = [rng.random() for _ in range(m)], [rng.random() + 0.3 for _ in range(n)]
            assert mann_whitney(a, b) == pytest.approx(exact(a, b))


def test_the_same_code_shows_no_change() -> None:
    rng = random.Random(2)
    verdicts = []
    for _ in range(2000):
        level = rng.choice((0.004, 0.5, 3.0))
        old, new = ([level * rng.gauss(1, 0.01) for _ in range(10)] for _ in range(2))
        verdicts.append(change(old, new).verdict)
    assert verdicts.count("same") == len(verdicts)


def test_a_change_beyond_the_spread_is_reported() -> None:
    rng = random.Random(3)
    for ratio, verdict in ((1.1, "slower"), (0.9, "faster")):
        old, new = ([level * rng.gauss(1, 0.01) for _ in range(10)] for level in (1.0, ratio))
        found = change(old, new)
        assert found.verdict == verdict
        assert found.p < ALPHA
        assert found.new / found.old == pytest.approx(ratio, rel=0.02)


def test_differences_that_two_processes_may_have_are_none() -> None:
    assert change([1.0 + i * 1e-5 for i in range(10)], [1.015 + i * 1e-5 for i in range(10)]).verdict == "same"
    assert change([0.004] * 5 + [0.0041] * 5, [0.0043] * 5 + [0.0044] * 5).verdict == "same"
    assert change([1.0] * 10, [1.0] * 10).p == 1.0
