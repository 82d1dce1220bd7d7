"""Whether two sets of times differ: a stated test, so that the same code compared with itself shows no change."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

ALPHA = 1e-4  # of the two-sided Mann-Whitney test on the medians of rounds
LEAST = 0.02  # relative: what two processes with the same code may differ by, for where their memory lies
RESOLUTION = 5e-4  # milliseconds, of CUDA events


@dataclass(frozen=True)
class TimeChange:
    """old, new: medians in milliseconds. p: of the test. spread: relative, of rounds of one side.

    verdict: `slower`, `faster` or `same`.
    """

    old: float
    new: float
    p: float
    spread: float
    verdict: str


def change(old: Sequence[float], new: Sequence[float]) -> TimeChange:
    """Compare the medians of rounds that were run in turns.

    A change needs all of: p below ALPHA; medians further apart than the interquartile range of either side, than
    LEAST of the old one, and than RESOLUTION.
    """
    a, b = statistics.median(old), statistics.median(new)
    spread = max(_quartiles(old), _quartiles(new)) / a
    p = mann_whitney(old, new)
    apart = abs(b - a) > max(spread * a, LEAST * a, RESOLUTION)
    verdict = "same" if p >= ALPHA or not apart else "slower" if b > a else "faster"
    return TimeChange(a, b, p, spread, verdict)


def _quartiles(values: Sequence[float]) -> float:
    low, _, high = statistics.quantiles(values, n=4)
    return high - low


def mann_whitney(a: Sequence[float], b: Sequence[float]) -> float:
    """Exact two-sided p of the hypothesis that both come from one distribution; ties count half each way."""
    u = sum((x > y) + (x == y) / 2 for x in a for y in b)
    smaller = math.floor(min(u, len(a) * len(b) - u) + 0.5)
    tail = sum(_arrangements(len(a), len(b), value) for value in range(smaller + 1))
    return min(1.0, 2 * tail / math.comb(len(a) + len(b), len(a)))


@cache
def _arrangements(m: int, n: int, u: int) -> int:
    """Orders of m and n values in which just u pairs are the wrong way round."""
    if u < 0 or u > m * n:
        return 0
    if m == 0 or n == 0:
        return 1
    return _arrangements(m - 1, n, u - n) + _arrangements(m, n - 1, u)
