"""Test what the table says of kernels that add, against what an H200 did with them: see tests/hardware/adds.py."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tlcheck.program.device_library import OK, REFUSED, STOPS, WRONG, LibraryCall, device_library

ROOT = Path(__file__).parents[3]
EXPECTED = json.loads((ROOT / "tests" / "hardware" / "adds-expected.json").read_text())
SEEN = {path.stem.removeprefix("adds-"): path for path in sorted((ROOT / "results" / "h200").glob("adds-*.json"))}
# It adds four floats, 16 bytes, where four halves lie: a wrong value at every other place, and at this one no value.
MISALIGNED = {"0.1.9": {"vectors_f16_x4": "stops"}}
BY_TIR = ("TLA001", "TLA002", "TLA003", "TLA005", "TLA006", "TLA007", "TLA008", "TLA009", "TLA012")


def every_call() -> dict[str, LibraryCall]:
    from tlcheck.probes.calls import calls

    return {str(call): call for call in calls()}


@pytest.mark.parametrize("release", sorted(EXPECTED))
def test_what_is_expected_is_what_the_table_says(release: str) -> None:
    """The box of a descriptor may be longer than what was probed."""
    known, table, compared = every_call(), device_library(), 0
    for case, expected in EXPECTED[release].items():
        for spelled, verdict in expected["calls"].items():
            call = known.get(spelled)
            if call is not None and verdict != "not measured":
                behaviour = table.behaviour(release, 90, call)
                assert behaviour is not None, case
                assert behaviour.verdict == verdict, case
                compared += 1
    assert compared > 60


def predicted(expected: dict[str, Any]) -> str:
    """Return what a run of a kernel has to show."""
    found = set(expected["calls"].values())
    for verdict, seen in ((REFUSED, "does not compile"), (STOPS, "stops"), (WRONG, "wrong")):
        if verdict in found:
            return seen
    return "wrong" if set(expected["rules"]) & set(BY_TIR) else "right"


@pytest.mark.parametrize("release", sorted(EXPECTED))
def test_no_kernel_is_proved_that_the_table_has_wrong(release: str) -> None:
    for case, expected in EXPECTED[release].items():
        assert expected["verdicts"] in (["proved"], ["refuted"]), case
        if expected["verdicts"] == ["proved"]:
            assert set(expected["calls"].values()) == {OK}, case


@pytest.mark.parametrize("release", sorted(EXPECTED))
def test_the_device_did_what_the_table_says(release: str) -> None:
    if release not in SEEN:
        pytest.skip(f"nothing of {release} was run on a GPU yet")
    seen = json.loads(SEEN[release].read_text())
    assert seen["about"]["tilelang"].startswith(release)
    assert seen["cases"].keys() == EXPECTED[release].keys()
    told = {case: found["seen"] for case, found in seen["cases"].items()}
    told_before = {case: predicted(expected) for case, expected in EXPECTED[release].items()}
    assert told == {**told_before, **MISALIGNED.get(release, {})}
    assert len(told) >= 40
