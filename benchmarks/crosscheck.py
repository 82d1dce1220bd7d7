"""Holds the prover of atomics against the execution: `python benchmarks/crosscheck.py [SNAPSHOT ...]`.

Without snapshots all committed ones, and all their mutants at the last checkpoint. Exit code 1 if one proves what the
other refutes.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.cpu.mutations.crosscheck import Opinions, mutated, of_fixture, of_mutants, opinions
from tests.fixtures.index import read
from tlcheck.snapshot import codec


def everything(paths: list[str]) -> Iterator[Opinions]:
    """Opinions on the given snapshots, or on all committed ones and their mutants."""
    for path in paths:
        yield from opinions(path, codec.loads(Path(path).read_text(encoding="utf-8")))
    if not paths:
        for fixture in read().fixtures:
            yield from of_fixture(fixture)
        for fixture in mutated():
            yield from of_mutants(fixture)


def main(paths: list[str]) -> int:
    """Print how often which verdicts meet, and each contradiction."""
    counts: Counter[tuple[str, str]] = Counter()
    wrong = 0
    for found in everything(paths):
        counts[" and ".join(sorted(found.proofs)), found.executed] += 1
        if found.contradict:
            wrong += 1
            print(f"{found.kernel}, {found.tensor}: proved, and refuted by execution: {found.reason}", flush=True)
    for (proofs, executed), number in sorted(counts.items()):
        print(f"{number:6} {proofs} by proof, {executed} by execution")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
