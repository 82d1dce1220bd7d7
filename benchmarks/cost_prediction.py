"""How often a slowdown on a GPU comes with a `slower-risk` of the gate, and the other way round.

    python benchmarks/cost_prediction.py GATE.json:TIMES.json... -o results/cost/prediction.csv
    python -m benchmarks.cost_prediction MEASURED.json:COSTS.json:FOLDER -o results/cost/prediction.csv

GATE.json: of `tlcheck gate --from A --to B cases --arch sm_90 --format json`. TIMES.json: of `tlcheck run cases --from
A --to B --format json` on the GPU. Both of the same two releases; kernels that one of them lacks are counted apart.
MEASURED.json: of `tests.hardware.costs measure`; COSTS.json and FOLDER: of its pack. The risks are then those that
facts and counted costs tell: claims are not judged, and nvcc is not asked.
"""

from __future__ import annotations

import argparse
import csv
import json
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass, fields
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
from packaging.version import Version

from tests.hardware.costs_pack import snapshots
from tlcheck.cost.kernel_cost import KernelCost
from tlcheck.cost.risen_cost import risen
from tlcheck.facts import changes
from tlcheck.facts.extract import facts_of
from tlcheck.run.statistics import change
from tlcheck.snapshot import codec

SLOWER = 1.05  # times the time of before, from which on a kernel has slowed down
_OTHER_TIMES = ("lowering time", "compile time")  # risks that say nothing of the kernel's own time


@dataclass(frozen=True, slots=True)
class Compared:
    """A kernel in two releases. before, after: milliseconds. risks: kinds of the gate's `slower-risk`, or empty."""

    releases: str
    kernel: str
    target: str
    before: float
    after: float
    verdict: str
    risks: str

    @property
    def has_slowed(self) -> bool:
        """By more than `SLOWER`, and by more than the rounds scatter."""
        return self.verdict == "slower" and self.after > SLOWER * self.before


def compared(gate: dict[str, Any], times: dict[str, Any]) -> Iterator[Compared]:
    """The kernels that are timed in both releases and compared by the gate. Raises ValueError for other releases."""
    old, new = (gate[side]["versions"]["tilelang"] for side in ("from", "to"))
    timed = times["device"]["versions"]["tilelang"]
    if timed not in (old, new):
        raise ValueError(f"the gate compares tilelang {old} and {new}, the times are of {timed}")
    risks = {(one["case"], one["target"]): _risks(one["outcomes"]) for one in gate["comparisons"]}
    for case in times["cases"]:
        key, change = (case["case"], case["target"]), case["change"]
        if change is not None and key in risks:
            yield Compared(f"{old} -> {new}", *key, change["old"], change["new"], change["verdict"], risks[key])


def packed(measured: dict[str, Any], costs: dict[str, Any], folder: Path) -> Iterator[Compared]:
    """The kernels of a pack in each two releases that follow one another, and in the first and the last."""
    times, cost = measured["milliseconds"], msgspec.convert(costs, dict[str, KernelCost])
    files = {f"{name} {release}": path for name, release, path in snapshots(folder)}
    releases = sorted({name.rpartition(" ")[2] for name in times}, key=Version)
    facts = cache(lambda name: facts_of(codec.loads(files[name].read_text(encoding="utf-8"))))
    for old, new in (*pairwise(releases), (releases[0], releases[-1])):
        for case in sorted(name.removesuffix(f" {old}") for name in times if name.endswith(f" {old}")):
            one, other = f"{case} {old}", f"{case} {new}"
            if other in times and one in cost and other in cost:
                risks = {found.kind for found in changes(facts(one), facts(other)) if found.slower}
                if (cost[one].of, cost[one].sizes) == (cost[other].of, cost[other].sizes):
                    risks |= {found.kind for found in risen(cost[one], cost[other])}
                found = change(times[one], times[other])
                name, _, arch = case.rpartition("-")
                words = ", ".join(sorted(risks))
                yield Compared(f"{old} -> {new}", name, arch, found.old, found.new, found.verdict, words)


def _risks(outcomes: Sequence[dict[str, Any]]) -> str:
    found = {one["kind"] for one in outcomes if one["class"] == "slower-risk" and one["kind"] not in _OTHER_TIMES}
    return ", ".join(sorted(found))


def rates(rows: Sequence[Compared]) -> str:
    """Both rates in words."""
    slowed, warned = [r for r in rows if r.has_slowed], [r for r in rows if r.risks]
    both = sum(bool(r.risks) for r in slowed)
    return (
        f"{len(rows)} pairs: of {len(slowed)} slowdowns above {SLOWER - 1:.0%}, {both} come with a slower-risk;"
        f" of {len(warned)} with a slower-risk, {both} slow down"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("reports", nargs="+", metavar="GATE.json:TIMES.json")
    parser.add_argument("-o", "--output", type=Path, required=True)
    args = parser.parse_args()
    rows: list[Compared] = []
    for pair in args.reports:
        if pair.count(":") == 2:
            measured, costs, folder = pair.split(":")
            rows += packed(
                *(json.loads(Path(file).read_text(encoding="utf-8")) for file in (measured, costs)), Path(folder)
            )
            continue
        gate, times = (json.loads(Path(file).read_text(encoding="utf-8")) for file in pair.split(":"))
        found = list(compared(gate, times))
        rows += found
        left = len(times["cases"]) - len(found)
        print(f"{pair}: {times['date'][:10]}, {times['device']['name']}; {left} kernels not timed or not compared")
    with args.output.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow([field.name for field in fields(Compared)])
        table.writerows([astuple(row) for row in rows])
    for releases in dict.fromkeys(row.releases for row in rows):
        print(f"{releases}: {rates([row for row in rows if row.releases == releases])}")


if __name__ == "__main__":
    main()
