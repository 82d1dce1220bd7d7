"""How often a slowdown on a GPU comes with a `slower-risk` of the gate, and the other way round.

    python benchmarks/cost_prediction.py GATE.json:TIMES.json... -o results/cost/prediction.csv

GATE.json: of `tlcheck gate --from A --to B cases --arch sm_90 --format json`. TIMES.json: of `tlcheck run cases --from
A --to B --format json` on the GPU. Both of the same two releases; kernels that one of them lacks are counted apart.
"""

from __future__ import annotations

import argparse
import csv
import json
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from typing import Any

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
        gate, times = (json.loads(Path(file).read_text(encoding="utf-8")) for file in pair.split(":"))
        found = list(compared(gate, times))
        rows += found
        left = len(times["cases"]) - len(found)
        print(f"{pair}: {times['date'][:10]}, {times['device']['name']}; {left} kernels not timed or not compared")
    with args.output.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow([field.name for field in fields(Compared)])
        table.writerows([astuple(row) for row in rows])
    print(rates(rows))


if __name__ == "__main__":
    main()
