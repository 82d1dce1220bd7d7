"""The kernels that are mutated, and how much of that the oracle judges."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.cpu.mutations.judge import Judged
from tests.cpu.mutations.mutants import LOWERED, Mutant, mutants
from tests.fixtures.index import Fixture, read
from tlcheck.snapshot.ir import Snapshot
from tlcheck.verdicts.claim import UNDECIDED

RELEASES = ("0.1.7", "0.1.15")
LARGE = (  # too large for the oracle at every checkpoint: only the last one, and the layouts
    "annotated_gemm",
    "annotated_source",
    "attention",
    "cast_bf16",
    "loop_pipelined",
    "loop_ragged",
    "loop_serial",
    "pitch_symbolic",
    "tail_parallel_odd",
    "tail_tile_odd",
    "tail_tile_symbolic",
    "tile_x4",
)
OPEN = ("loop_ragged",)  # its loop's bounds are read from memory: what differs for some bounds may stay undecided
TABLE = Path(__file__).with_name("coverage.csv")


@dataclass(frozen=True)
class Coverage:
    """A record of how many mutants of a kernel the oracle judges, and of how many it has no opinion."""

    judged: int
    left: int


def kernels() -> list[Fixture]:
    others = ("rules/", "edges/", "wrong/", "tensor_memory/", "blackwell/", "clusters/")
    return [f for f in read().fixtures if f.release in RELEASES and not f.path.startswith(others)]


def all_mutants(fixture: Fixture, snapshot: Snapshot) -> list[Mutant]:
    large = any(name in fixture.path for name in LARGE)
    return list(mutants(snapshot, ("device-tir",) if large else LOWERED))


def mistakes(fixture: Fixture, found: Iterable[Judged]) -> list[Judged]:
    """Return the mutants that tlcheck judges wrong."""
    may_be_open = any(name in fixture.path for name in OPEN)
    return [j for j in found if j.wrong and not (may_be_open and j.verdict == UNDECIDED)]


def coverage(found: Sequence[Judged]) -> Coverage:
    judged = sum(j.covered for j in found)
    return Coverage(judged, len(found) - judged)


def read_table() -> dict[str, Coverage]:
    """Return the coverage that is expected, by the kernel's path."""
    with TABLE.open(encoding="utf-8", newline="") as file:
        return {row["kernel"]: Coverage(int(row["judged"]), int(row["left"])) for row in csv.DictReader(file)}


def write_table(found: Mapping[str, Coverage]) -> None:
    rows: Iterable[tuple[str, int, int]] = ((path, c.judged, c.left) for path, c in sorted(found.items()))
    with TABLE.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([("kernel", "judged", "left"), *rows])
