"""Test how slowdowns and risks are counted together, on reports made up here."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.cost_prediction import compared, rates


def change(old: float, new: float, verdict: str) -> dict[str, Any]:
    return {"old": old, "new": new, "p": 0.0, "spread": 0.0, "verdict": verdict}


# Kernel -> its times, and the kinds of its risks.
KERNELS: dict[str, tuple[dict[str, Any] | None, list[str]]] = {
    "told": (change(1.0, 1.2, "slower"), ["sectors", "occupancy"]),
    "untold": (change(1.0, 1.2, "slower"), ["lowering time"]),
    "little": (change(1.0, 1.04, "slower"), ["occupancy"]),
    "scattered": (change(1.0, 1.2, "same"), []),
    "untimed": (None, ["sectors"]),
}


def reports(timed: str = "0.1.12") -> tuple[dict[str, Any], dict[str, Any]]:
    comparisons = [
        {"case": name, "target": "sm_90", "outcomes": [{"class": "slower-risk", "kind": kind} for kind in kinds]}
        for name, (_, kinds) in KERNELS.items()
    ]
    cases = [{"case": name, "target": "sm_90", "change": times} for name, (times, _) in KERNELS.items()]
    gate = {
        "from": {"versions": {"tilelang": "0.1.9"}},
        "to": {"versions": {"tilelang": "0.1.12"}},
        "comparisons": comparisons,
    }
    return gate, {"device": {"versions": {"tilelang": timed}}, "cases": cases}


def test_slowdowns_and_risks_are_counted_both_ways() -> None:
    rows = list(compared(*reports()))
    assert [row.kernel for row in rows] == ["told", "untold", "little", "scattered"]
    assert rates(rows) == (
        "4 pairs: of 2 slowdowns above 5%, 1 come with a slower-risk; of 2 with a slower-risk, 1 slow down"
    )


def test_times_of_another_release_are_refused() -> None:
    with pytest.raises(ValueError, match=r"the gate compares tilelang 0\.1\.9 and 0\.1\.12, the times are of 0\.1\.15"):
        list(compared(*reports("0.1.15")))
