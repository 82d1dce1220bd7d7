"""Holds the counts of `tlcheck cost` against those of Nsight Compute, kernel by kernel.

    python -m benchmarks.cost_truth MEASURED.json COSTS.json -o results/cost/h100.csv

MEASURED.json: of `tests.hardware.costs measure` on the GPU. COSTS.json: of `tests.hardware.costs_pack`, which made the
pack that was measured.
"""

from __future__ import annotations

import argparse
import csv
import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

CLOSE = 0.02
_SASS = "smsp__sass_inst_executed_op_"
_WAVES = "smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_"
_GLOBAL = "_pipe_lsu_mem_global_op_"
_REQUESTS, _SECTORS = f"l1tex__t_requests{_GLOBAL}", f"l1tex__t_sectors{_GLOBAL}"
_ATOMIC = f"smsp__sass_l1tex_t_sectors{_GLOBAL}"  # the hardware's counter has sectors that come back, too
_CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_"
_TENSOR = "sm__inst_executed_pipe_tensor_op_"

# What a counter is called here -> metrics of ncu, with the sign that they count with.
COUNTERS: Mapping[str, Mapping[str, int]] = {
    "global load requests": {f"{_REQUESTS}ld": 1},
    "global load sectors": {f"{_SECTORS}ld": 1},
    "global store requests": {f"{_REQUESTS}st": 1},
    "global store sectors": {f"{_SECTORS}st": 1},
    "global atomic requests": {f"{_REQUESTS}red": 1, f"{_REQUESTS}atom": 1},
    "global atomic sectors": {f"{_ATOMIC}red": 1, f"{_ATOMIC}atom": 1},
    "shared load requests": {f"{_SASS}shared_ld": 1},
    "shared load wavefronts": {f"{_WAVES}ld": 1},
    "shared store requests": {f"{_SASS}shared_st": 1},
    "shared store wavefronts": {f"{_WAVES}st": 1},
    "ldmatrix requests": {f"{_SASS}ldsm": 1},
    "ldmatrix wavefronts": {f"{_WAVES}ldsm": 1},
    "stmatrix requests": {f"{_SASS}shared_stsm": 1},
    "stmatrix wavefronts": {f"{_WAVES}stsm": 1},
    "cp.async requests": {f"{_SASS}ldgsts": 1},
    "cp.async wavefronts": {f"{_WAVES}ldgsts": 1},
    "load bank conflicts": {f"{_CONFLICTS}ld": 1},
    "store bank conflicts": {f"{_CONFLICTS}st": 1},
    "mma instructions": {f"{_TENSOR}hmma": 1, f"{_TENSOR}hmma_type_hfma2": -1, f"{_TENSOR}gmma": -1},
    "wgmma instructions": {f"{_TENSOR}gmma": 1},
    "bulk copies": {"sm__sass_inst_executed_op_tma": 1},
    "bulk load sectors": {"l1tex__m_xbar2l1tex_read_sectors_pipe_tma": 1},
    "bulk store sectors": {"l1tex__m_l1tex2xbar_write_sectors_pipe_tma": 1},
}
# Metrics that are kept beside: time, and bytes of the memory.
BESIDE = ("gpu__time_duration.sum", "dram__bytes_read.sum", "dram__bytes_write.sum")
METRICS = (*sorted({f"{metric}.sum" for parts in COUNTERS.values() for metric in parts}), *BESIDE)
_DONE = {"read": "load", "write": "store", "atomic": "atomic"}
_WARPS = 4  # of a warpgroup, each of which issues a wgmma


@dataclass(frozen=True, slots=True)
class Compared:
    """One counter of one kernel."""

    kernel: str
    counter: str
    ncu: int
    tlcheck: int

    @property
    def error(self) -> float:
        """Relative to what ncu has."""
        return abs(self.tlcheck - self.ncu) / max(self.ncu, 1)


def counted(sites: list[dict[str, Any]]) -> dict[str, int]:
    """The counters of one kernel, as tlcheck has them."""
    found: dict[str, int] = defaultdict(int)
    for site in sites:
        _COUNT[site["space"]](site, found)
    return found


def _global(site: dict[str, Any], found: dict[str, int]) -> None:
    done = _DONE[site["operation"]]
    if site["instruction"].startswith("bulk"):
        found[f"bulk {'load' if done == 'load' else 'store'} sectors"] += site["sectors"]
        return
    found[f"global {done} requests"] += site["requests"]
    found[f"global {done} sectors"] += site["sectors"]


def _shared(site: dict[str, Any], found: dict[str, int]) -> None:
    if site["instruction"].startswith("bulk"):  # the global side has none that are wholly outside of their tensor
        found["bulk copies"] += site["requests"]
        return
    if site["operation"] == "atomic":
        return
    done, kind = _DONE[site["operation"]], site["instruction"].split()[0]
    name = kind if kind in ("ldmatrix", "stmatrix", "cp.async") else f"shared {done}"
    found[f"{name} requests"] += site["requests"]
    found[f"{name} wavefronts"] += site["wavefronts"]
    if kind != "cp.async":
        found[f"{done} bank conflicts"] += site["wavefronts"] - site["ideal"]


def _products(site: dict[str, Any], found: dict[str, int]) -> None:
    if site["instruction"].startswith("mma"):
        found["mma instructions"] += site["requests"]
    else:
        found["wgmma instructions"] += site["requests"] * _WARPS


_COUNT: Mapping[str, Callable[[dict[str, Any], dict[str, int]], None]] = {
    "global": _global,
    "shared": _shared,
    "tensor cores": _products,
    "arithmetic": lambda site, found: None,
    "barrier": lambda site, found: None,
}


def launches(file: Path, names: Sequence[str]) -> dict[str, dict[str, float]]:
    """ncu's counters of each kernel, those of several launches added up.

    names: of the kernel of each launch. A kernel of which ncu has not seen all launches is left out.
    """
    rows = [row for row in csv.reader(file.read_text(encoding="utf-8").splitlines()) if row]
    start = next(number for number, row in enumerate(rows) if row[0] == "ID")
    seen = rows[start + 2 :]
    unfinished = names[len(seen) :]
    found: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for name, row in zip(names, seen, strict=False):
        if name not in unfinished:
            for metric in METRICS:
                found[name][metric] += float(dict(zip(rows[start], row, strict=True))[metric].replace(",", ""))
    return {name: dict(values) for name, values in found.items()}


def in_words(metrics: Mapping[str, float]) -> dict[str, int]:
    """The counters that ncu's metrics are."""
    return {
        counter: round(sum(sign * metrics[f"{name}.sum"] for name, sign in parts.items()))
        for counter, parts in COUNTERS.items()
    }


def compared(counters: Mapping[str, Mapping[str, float]], costs: Mapping[str, Any]) -> Iterator[Compared]:
    """Each counter that either side has, of each kernel that both have."""
    for name in sorted(counters.keys() & costs.keys()):
        ours, theirs = counted(costs[name]["sites"]), in_words(counters[name])
        for counter in COUNTERS:
            if ours[counter] or theirs[counter]:
                yield Compared(name, counter, theirs[counter], ours[counter])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("measured", type=Path)
    parser.add_argument("costs", type=Path)
    parser.add_argument("-o", "--output", type=Path, required=True)
    args = parser.parse_args()
    measured, costs = (json.loads(file.read_text(encoding="utf-8")) for file in (args.measured, args.costs))
    rows = list(compared(measured["counters"], costs))
    with args.output.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(["kernel", "counter", "ncu", "tlcheck", "error"])
        table.writerows([[r.kernel, r.counter, r.ncu, r.tlcheck, f"{r.error:.4f}"] for r in rows])
    if left := measured["counters"].keys() - costs.keys():
        print(f"{len(left)} kernels have no counts of tlcheck, and are left out: {', '.join(sorted(left))}")
    print(summary(rows))


def summary(rows: Sequence[Compared]) -> str:
    """How true the counts are."""
    errors = [row.error for row in rows]
    equal, close = (sum(error <= bound for error in errors) / len(errors) for bound in (0.0, CLOSE))
    kernels = len({row.kernel for row in rows})
    return (
        f"{len(rows)} counters of {kernels} kernels: median error {median(errors):.4f}, {equal:.1%} equal,"
        f" {close:.1%} within {CLOSE:.0%}"
    )


if __name__ == "__main__":
    main()
